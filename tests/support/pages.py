"""The pages under docs/ as tests read them: tables, code blocks, links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import attrs

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_CELL_BORDER = re.compile(r"(?<!\\)\|")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_LINE = re.compile(r"^\|(.*)\|$")

Row = tuple[str, ...]


@attrs.frozen
class Block:
    """A fenced block of code, and the line of the page on which its text begins."""

    language: str
    text: str
    line: int


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def blocks(text: str, language: str) -> list[Block]:
    return [
        Block(found[1], found[2], text.count("\n", 0, found.start(2)) + 1)
        for found in _FENCE.finditer(text)
        if found[1] == language
    ]


def table(text: str, *heads: str) -> list[Row]:
    """The rows of the one table whose heads begin with these. Fails if there is no such table."""
    found = [rows for rows in _tables(text) if rows[0][: len(heads)] == heads]
    assert len(found) == 1, f"{len(found)} tables with the heads {heads}"
    return found[0][2:]


def bare(cell: str) -> str:
    """A cell without the marks of code: what a reader would type."""
    return cell.strip("`")


def codes(cell: str) -> list[str]:
    """Each piece of code in a text."""
    return [found[0].strip("`") for found in _CODE.finditer(cell)]


def links(text: str) -> Iterator[str]:
    """Where the page leads, code left out."""
    yield from _LINK.findall(prose(text))


def anchors(text: str) -> set[str]:
    """The places in a page that a link may name."""
    return {_anchor(heading) for heading in _HEADING.findall(_FENCE.sub("", text))}


def prose(text: str) -> str:
    """The page without its code."""
    return _CODE.sub("", _FENCE.sub("", text))


def inline(text: str) -> str:
    """The page without its blocks of code."""
    return _FENCE.sub("", text)


def _tables(text: str) -> Iterator[list[Row]]:
    rows: list[Row] = []
    for line in [*text.splitlines(), ""]:
        if found := _LINE.match(line):
            cells = _CELL_BORDER.split(found[1])
            rows.append(tuple(cell.strip().replace("\\|", "|") for cell in cells))
        elif rows:
            yield rows
            rows = []


def _anchor(heading: str) -> str:
    kept = re.sub(r"[^\w\- ]", "", heading.lower())
    return kept.replace(" ", "-")
