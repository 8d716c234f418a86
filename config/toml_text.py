"""Values and keys written as TOML, for what is shown and for what is complained about."""

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
    """Writes `value` as a TOML value on one line; dates and tables too."""
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
    """Writes `value` for a line of complaint: as TOML, cut to what fits; tables not at all."""
    if _holds_tables(value):
        return sort_of(value)
    text = toml_text(value)
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 3]}..."


def sort_of(value: object) -> str:
    """Says what sort of TOML value it is, and nothing of what it holds."""
    if isinstance(value, list) and _holds_tables(cast(object, value)):
        return "a list of tables"
    return next((name for kind, name in _SORTS if isinstance(value, kind)), "a date or time")


def key_text(path: Iterable[str | int]) -> str:
    """Writes a dotted key; parts that need quotes get them."""
    return ".".join(_key_part(str(part)) for part in path)


def plain_number(value: float) -> int | float:
    """Gives a whole number for a float that is one, so that 30 does not become 30.0."""
    return int(value) if float(value).is_integer() else value


def plain(value: object) -> object:
    """Gives a setting in JSON's types, numbers as they would be written by hand."""
    if isinstance(value, tuple):
        return [plain(each) for each in cast(Sequence[object], value)]
    if isinstance(value, float):
        return plain_number(value)
    if attrs.has(type(value)):
        fields = attrs.asdict(cast(AttrsInstance, value), recurse=False)
        return {name: plain(each) for name, each in fields.items() if each is not None}
    return str(value) if isinstance(value, Path) else value


def _holds_tables(value: object) -> bool:
    if isinstance(value, list):
        return any(map(_holds_tables, cast(list[object], value)))
    return isinstance(value, dict)


def _key_part(part: str) -> str:
    return part if _BARE_KEY.fullmatch(part) else _quoted(part)


def _quoted(text: str) -> str:
    printable = text.encode("utf-8", "backslashreplace").decode()
    return json.dumps(printable, ensure_ascii=False).replace("\x7f", "\\u007f")
