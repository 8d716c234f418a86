"""Text on a grid of cells: how wide it is, cut and filled to fit. Pure.

Whatever is drawn goes through `fitted` or `span`, which let nothing pass that a terminal would
obey.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Literal, NamedTuple

from musterd.store.words import one_line

Style = Literal["plain", "dim", "bold", "good", "bad", "warn", "busy", "head", "chosen", "prompt"]
ELLIPSIS = "…"


class Span(NamedTuple):
    """A piece of a line. Nothing in it moves the cursor."""

    text: str
    style: Style = "plain"


Line = tuple[Span, ...]


def span(text: str, style: Style = "plain") -> Span:
    """Makes a text of unknown origin harmless."""
    return Span(one_line(text), style)


def width(text: str) -> int:
    """How many cells it takes. Marks that join what is before them take none."""
    if text.isascii():
        return len(text)
    return sum(_cells(character) for character in text)


def cut(text: str, cells: int) -> str:
    """Shortens to `cells`, the last one an ellipsis where something is missing."""
    if width(text) <= cells:
        return text
    if cells <= 0:
        return ""
    kept, left = "", cells - 1
    for character in text:
        left -= _cells(character)
        if left < 0:
            break
        kept += character
    return kept + ELLIPSIS


def fitted(text: str, cells: int, *, right: bool = False) -> str:
    """Gives a text of unknown origin in exactly `cells` cells."""
    shown = cut(one_line(text), cells)
    fill = " " * max(0, cells - width(shown))
    return fill + shown if right else shown + fill


def line(spans: Iterable[Span], cells: int, *, fill: bool = False) -> Line:
    """A line of at most `cells`; `fill`: of exactly so many, in the style of its last piece."""
    found: list[Span] = []
    left = cells
    for one in spans:
        text = cut(one.text, left)
        if text:
            found.append(Span(text, one.style))
            left -= width(text)
        if left <= 0:
            break
    if fill and left > 0:
        style = found[-1].style if found else "plain"
        found.append(Span(" " * left, style))
    return tuple(found)


def plain(drawn: Line) -> str:
    """The line without its styles."""
    return "".join(one.text for one in drawn).rstrip()


def _cells(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
