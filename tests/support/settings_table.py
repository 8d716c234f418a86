"""What is made from the declared settings: the comments of default.toml, the reference of
docs/configuration.md, and the list that the manual page shows. `make reference` renews them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin

from attrs import frozen

from musterd.config import settings as shapes
from musterd.config.load import SHIPPED_FILE
from musterd.config.outside import HttpToken, WebhookReceiver
from musterd.config.retention import Ages
from musterd.config.scaling import Candidate, Guard, Hours
from musterd.config.settings import keys, sections
from musterd.config.validators import Between, Check
from tests.support.pages import DOCS

PAGE = DOCS / "configuration.md"
COMMENT_COLUMN = 29
LINE_LENGTH_MAX = 110

_BETWEEN_MARKS = re.compile(
    r"(<!-- settings: begin.*? -->\n).*?(<!-- settings: end -->)", re.DOTALL
)
_TABLE = re.compile(r"\[(\w+)\]")
_SETTING = re.compile(r'(\w+) = ((?:"[^"]*"|[^#])*?)\s*(?:#.*)?')
_UNITS: Mapping[str, str] = {"ms": "ms", "seconds": "s", "hours": "h", "bytes": "bytes", "mb": "MB"}

_WITHOUT_CHECK: Mapping[Any, str] = {
    bool: "`true`, `false`",
    str: "text",
    Ages: "table of the two keys above",
    Candidate: "table",
    Guard: "table",
    tuple[Hours, ...]: "list of tables",
    tuple[HttpToken, ...]: "list of tables",
    tuple[WebhookReceiver, ...]: "list of tables",
    tuple[Path, ...]: "list of paths",
}


@frozen
class Line:
    """A key of default.toml, or the header of a table, which has no name."""

    section: str
    name: str
    default: str
    what: str


def shipped_lines(text: str) -> Iterator[Line | str]:
    """The lines of default.toml up to the examples of tables with names; each that is none of
    ours as it is, but for comments of ours that stand above their key.
    """
    section = ""
    for line in text.splitlines():
        if found := _TABLE.match(line):
            section = found[1]
            yield Line(section, "", "", _summary(section))
        elif section and (found := _SETTING.fullmatch(line)):
            yield Line(section, found[1], found[2], _what(f"{section}.{found[1]}"))
        elif line.removeprefix("# ") not in _OWN:
            yield line


def shipped() -> Iterator[Line]:
    """Each table of default.toml and its keys, in order."""
    lines = shipped_lines(Path(SHIPPED_FILE).read_text("utf-8"))
    return (line for line in lines if isinstance(line, Line))


def commented(text: str) -> str:
    """default.toml with the comments that it has to have: beside each key, above tables and long
    keys.
    """
    made: list[str] = []
    for line in shipped_lines(text):
        if isinstance(line, str):
            made.append(line)
            continue
        said = f"{line.name} = {line.default}" if line.name else f"[{line.section}]"
        beside = f"{said.ljust(COMMENT_COLUMN - 1)} # {line.what}"
        is_above = not line.name or len(beside) > LINE_LENGTH_MAX
        made += [f"# {line.what}", said] if is_above else [beside]
    return "\n".join(made) + "\n"


def renewed(page: str) -> str:
    """The page with the reference as it has to be, between its two marks."""
    assert _BETWEEN_MARKS.search(page), "the page has lost its marks"
    return _BETWEEN_MARKS.sub(lambda marks: f"{marks[1]}\n{settings_tables()}\n{marks[2]}", page)


def settings_tables() -> str:
    """One table a section, a line a key: name, default, what is allowed, when a reload applies
    it, what it means.
    """
    lines: list[str] = []
    for line in shipped():
        if not line.name:
            lines += ["", f"### `[{line.section}]`", "", f"{line.what}", ""]
            lines += ["| key | default | allowed | reload | what it is |", "|---|---|---|---|---|"]
        else:
            key = f"{line.section}.{line.name}"
            what = line.what.replace("|", "\\|")
            when = keys()[key].metadata["applies"]
            lines.append(
                f"| `{line.name}` | `{line.default}` | {_allowed(key)} | {when} | {what} |"
            )
    return "\n".join(lines).strip() + "\n"


def _what(key: str) -> str:
    return cast(str, keys()[key].metadata["what"])


def _summary(section: str) -> str:
    return (sections()[section].__doc__ or "").strip()


def _allowed(key: str) -> str:
    attribute = keys()[key]
    kind: Any = getattr(shapes, str(attribute.type), attribute.type)
    if get_origin(kind) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(kind))
    if attribute.validator is None:
        return _WITHOUT_CHECK[kind]
    whole = "whole, " if kind is int else ""
    unit = _UNITS.get(key.rpartition("_")[2], "")
    return f"{whole}{cast(Check | Between, attribute.validator).allowed} {unit}".rstrip()


_OWN = frozenset([*map(_what, keys()), *map(_summary, sections())])


if __name__ == "__main__":
    SHIPPED = Path(SHIPPED_FILE)
    SHIPPED.write_text(commented(SHIPPED.read_text("utf-8")), "utf-8")
    PAGE.write_text(renewed(PAGE.read_text("utf-8")), "utf-8")
