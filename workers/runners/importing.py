"""The user's functions, imported into the daemon itself: for kinds whose code it is told to trust.

Their folders are searched before Python's own path, so that a module of theirs may have any name.
Only the standard library and musterd can't be hidden by them. What has been imported stays until
the daemon is started anew.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from musterd.catalog.kinds import Python


def import_function(behaviour: Python) -> Callable[..., Any]:
    """Raises what the import raises; AttributeError or TypeError if there is no such function."""
    with _IMPORTING:
        _FINDER.add(behaviour.search_path)
        found: Any = importlib.import_module(behaviour.module)
    for name in behaviour.function.split("."):
        found = getattr(found, name)
    if not callable(found):
        what = f"{behaviour.module}:{behaviour.function}"
        raise TypeError(f"{what} is no function but {type(found).__name__}")
    function: Callable[..., Any] = found
    return function


class _UsersFolders:
    """A finder for top-level modules in the users' folders."""

    def __init__(self) -> None:
        self._folders: list[str] = []

    def add(self, folders: Sequence[Path]) -> None:
        new = [str(each) for each in folders if str(each) not in self._folders]
        if new:
            self._folders += new
            importlib.invalidate_caches()
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is not None or name == "musterd" or name in sys.stdlib_module_names:
            return None
        return PathFinder.find_spec(name, self._folders, target)


_IMPORTING = threading.Lock()
_FINDER = _UsersFolders()
