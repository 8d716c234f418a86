"""Lists as PostgreSQL array literals. Written here since a driver that types each element costs ten
times as much.
"""

from __future__ import annotations

from collections.abc import Iterable


def numbers(values: Iterable[float | None]) -> str:
    """For numbers and booleans."""
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def words(values: Iterable[object]) -> str:
    """For values whose text holds no quote, comma, brace, backslash or blank, and is not NULL:
    states, tokens.
    """
    return "{" + ",".join(map(str, values)) + "}"


def texts(values: Iterable[str | None]) -> str:
    """For any text."""
    return "{" + ",".join(["NULL" if value is None else _quoted(value) for value in values]) + "}"


def _quoted(text: str) -> str:
    if "\\" in text:
        text = text.replace("\\", "\\\\")
    return '"' + text.replace('"', '\\"') + '"'
