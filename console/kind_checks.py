""""""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from types import FrameType

    from musterd.catalog.kinds import Catalog
    from musterd.config.settings import Settings


def check_kinds(catalog: Catalog, settings: Settings) -> Catalog:
    """Gives the catalog with each kind's `broken` as it is on this machine, now.

    Blocks for as long as the modules of Python kinds take to import.
    """
    import os
    import time

    from musterd.catalog.checking import find_broken, surroundings_of
    from musterd.workers.tools import make_tools

    tools = make_tools(settings, time.monotonic, os.environ)
    return find_broken(catalog, surroundings_of(settings, os.environ, tools.environment))


def broken_hooks_of(settings: Settings) -> Mapping[str, str]:
    """Gives what is wrong with the functions that settings name, by key. Blocks as `checked`."""
    import os
    import time

    from musterd.catalog.checking import broken_hooks, surroundings_of
    from musterd.workers.tools import make_tools

    tools = make_tools(settings, time.monotonic, os.environ)
    return broken_hooks(settings, surroundings_of(settings, os.environ, tools.environment))


def log_broken_hooks(settings: Settings, log: logging.Logger) -> None:
    """Says which functions are broken. What they are told of waits until they are mended."""
    from musterd.manager.log import event

    for key, why in broken_hooks_of(settings).items():
        event(log, logging.WARNING, "hook broken", key=key, message=why)


def check_kinds_at_start(catalog: Catalog, settings: Settings, log: logging.Logger) -> Catalog:
    """As `checked`, for a daemon: says which kinds are broken, and goes on with the others.

    A TERM or INT meanwhile ends the process with 0: nothing has begun yet.
    """
    from musterd.catalog.kinds import Deterministic

    with _ended_by_signals():
        log_broken_hooks(settings, log)
    parts = [part for kind in catalog.values() for part in kind.parts]
    if all(isinstance(part.behaviour, Deterministic) for part in parts):
        return catalog  # nothing that another machine might not have
    with _ended_by_signals():
        catalog = check_kinds(catalog, settings)
    return log_broken_kinds(catalog, log)


def log_broken_kinds(catalog: Catalog, log: logging.Logger) -> Catalog:
    """Says which kinds are broken; gives the catalog as it is."""
    from musterd.manager.log import event_of_list

    for kind in catalog.values():
        if kind.broken is not None:
            told = {"kind": kind.name, "message": kind.broken}
            event_of_list(log, logging.WARNING, "kind broken", **told)
    return catalog


@contextlib.contextmanager
def _ended_by_signals() -> Generator[None, None, None]:
    """An exception, not the signal's own death: whoever runs a child then ends it first."""

    def end(_number: int, _frame: FrameType | None) -> None:
        sys.exit(0)

    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, end) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
