"""Lists as PostgreSQL array literals. Written here since a driver that types each element costs ten
times as much.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID


def numbers(values: Iterable[float | None]) -> str:
    """For numbers and booleans."""
    return "{" + ",".join(map(str, values)).replace("None", "NULL") + "}"


def words(values: Iterable[object]) -> str:
    """For values whose text holds no quote, comma, brace, backslash or blank, and is not NULL:
    states, tokens.
    """
    return "{" + ",".join(map(str, values)) + "}"


def texts(values: Iterable[str | None]) -> str:
    """For any text."""
    return "{" + ",".join(["NULL" if value is None else _quoted(value) for value in values]) + "}"


def texts_if_any(values: Sequence[str | None]) -> str:
    """Empty where all are null: what is shorter than its neighbours is padded with nulls."""
    return "{}" if values.count(None) == len(values) else texts(values)


def tokens(values: Iterable[UUID]) -> str:
    """Of a few different tokens: the text of one is dear, as is its hash."""
    given = list(values)
    known = {number: str(one) for number, one in {id(one): one for one in given}.items()}
    return words(map(known.__getitem__, map(id, given)))


def ages(begun_local: Sequence[float | None], now_local: float) -> str:
    """Seconds since each of these moments."""
    seconds = [None if one is None else now_local - one for one in begun_local]
    if None in seconds:
        return numbers(seconds)
    return "{" + (("%.6f," * len(seconds)) % tuple(seconds))[:-1] + "}"  # at a third of the cost


def _quoted(text: str) -> str:
    if "\\" in text:
        text = text.replace("\\", "\\\\")
    return '"' + text.replace('"', '\\"') + '"'
