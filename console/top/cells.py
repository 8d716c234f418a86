"""Text on cells. All passes `fitted` or `span`, which remove what a terminal would obey. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from musterd.store.words import one_line

Style = Literal["plain", "dim", "bold", "good", "bad", "warn", "busy", "head", "chosen", "prompt"]
ELLIPSIS = "…"


class Span(NamedTuple):
    """A piece of a line without control characters."""

    text: str
    style: Style = "plain"


Line = tuple[Span, ...]


def span(text: str, style: Style = "plain") -> Span:
    return Span(one_line(text), style)


def width(text: str) -> int:
    """In cells. Combining marks take none."""
    if text.isascii():
        return len(text)
    return sum(_cells(character) for character in text)


def cut(text: str, cells: int) -> str:
    """Shortens to `cells`, ending with an ellipsis if something is missing."""
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
    """A text of unknown origin in exactly `cells` cells."""
    shown = cut(one_line(text), cells)
    fill = " " * max(0, cells - width(shown))
    return fill + shown if right else shown + fill


def line(spans: Iterable[Span], cells: int, *, fill: bool = False) -> Line:
    """At most `cells` wide; with `fill` exactly so wide, in the style of the last span."""
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
    return "".join(one.text for one in drawn).rstrip()


def _cells(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


WITHOUT_COLOUR: dict[Style, str] = {
    "dim": "2",
    "bold": "1",
    "bad": "1",
    "warn": "1",
    "head": "7",
    "chosen": "7;1",
    "prompt": "1",
}
COLOURS = WITHOUT_COLOUR | {"good": "32", "bad": "1;31", "warn": "33", "busy": "36"}
ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
LEAVE = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
CLEAR = "\x1b[0m\x1b[2J"
# Where the terminal's encoding has no such characters.
ASCII = str.maketrans("▁▂▃▄▅▆▇█■□·…", "..::||###o.~")


class Painter:
    """Remembers the screen and writes only what has changed."""

    def __init__(self, *, colour: bool, encoding: str) -> None:
        self._styles = COLOURS if colour else WITHOUT_COLOUR
        self._encoding = encoding
        self._shown: list[Line] = []

    def forget(self) -> None:
        """The screen shows something else: the next picture is drawn whole."""
        self._shown = []

    def paint(self, lines: Sequence[Line]) -> bytes:
        """The bytes that turn the last picture into this one."""
        whole = len(self._shown) != len(lines)
        parts = [CLEAR] if whole else []
        for row, drawn in enumerate(lines):
            if whole or drawn != self._shown[row]:
                text = "".join(self._span(one) for one in drawn)
                # Emptied first: after a full line the cursor is still on its last cell.
                parts.append(f"\x1b[{row + 1};1H\x1b[K{text}\x1b[0m")
        self._shown = list(lines)
        return self._encoded("".join(parts))

    def _span(self, one: Span) -> str:
        code = self._styles.get(one.style)
        return f"\x1b[{code}m{one.text}\x1b[0m" if code else one.text

    def _encoded(self, text: str) -> bytes:
        if not self._encoding.lower().replace("-", "").startswith("utf8"):
            text = text.translate(ASCII)
        return text.encode(self._encoding, "replace")
