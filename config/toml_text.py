"""Values and keys written as TOML, for output and for complaints."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

import attrs
from attrs import AttrsInstance

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SHORT = 60
_SORTS = (
    (bool, "a boolean"),
    (int | float, "a number"),
    (str, "a string"),
    (list, "a list"),
    (dict, "a table"),
)


def toml_text(value: object) -> str:
    """Writes any TOML value on one line, dates and tables included."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # nan and inf are spelt as in Python
    if isinstance(value, str | Path):
        return _quoted(str(value))
    if isinstance(value, Mapping):
        pairs = cast(Mapping[str, object], value).items()
        return (
            "{" + ", ".join(f"{key_text([key])} = {toml_text(each)}" for key, each in pairs) + "}"
        )
    if isinstance(value, Sequence):
        return f"[{', '.join(map(toml_text, cast(Sequence[object], value)))}]"
    return str(value)


def short_text(value: object) -> str:
    """The value for a complaint: as TOML, shortened; tables are only named."""
    if _holds_tables(value):
        return sort_of(value)
    text = toml_text(value)
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 3]}..."


def sort_of(value: object) -> str:
    """The sort of a TOML value, without its content."""
    if isinstance(value, list) and _holds_tables(cast(object, value)):
        return "a list of tables"
    return next((name for kind, name in _SORTS if isinstance(value, kind)), "a date or time")


def key_text(path: Iterable[str | int]) -> str:
    """A dotted key, its parts quoted where necessary."""
    parts = map(str, path)
    return ".".join(part if _BARE_KEY.fullmatch(part) else _quoted(part) for part in parts)


def plain_number(value: float) -> int | float:
    """An int if the float is a whole number, so that 30 does not become 30.0."""
    return int(value) if float(value).is_integer() else value


def plain(value: object) -> object:
    """A setting in JSON types, numbers as a person would write them."""
    if isinstance(value, tuple):
        return [plain(each) for each in cast(Sequence[object], value)]
    if isinstance(value, float):
        return plain_number(value)
    if attrs.has(type(value)):
        fields = attrs.asdict(cast(AttrsInstance, value), recurse=False)
        written = {name.rstrip("_"): each for name, each in fields.items()}
        return {name: plain(each) for name, each in written.items() if each is not None}
    return str(value) if isinstance(value, Path) else value


def _holds_tables(value: object) -> bool:
    if isinstance(value, list):
        return any(map(_holds_tables, cast(list[object], value)))
    return isinstance(value, dict)


def _quoted(text: str) -> str:
    printable = text.encode("utf-8", "backslashreplace").decode()
    return json.dumps(printable, ensure_ascii=False).replace("\x7f", "\\u007f")
