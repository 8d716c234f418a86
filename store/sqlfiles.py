"""SQL lives in files, one statement each; this loads them by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType


@cache
def load_statements(package: str) -> Mapping[str, str]:
    """All statements of an engine (`musterd.store.postgres` or `.sqlite`): file name without `.sql`
    -> text. Read once in a process, whatever the number of its tenants.
    """
    folder = files(package) / "sql"
    return MappingProxyType(
        {
            entry.name.removesuffix(".sql"): entry.read_text(encoding="utf-8")
            for entry in folder.iterdir()
            if entry.name.endswith(".sql")
        }
    )
