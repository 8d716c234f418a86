"""From lines to what a terminal obeys. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from musterd.console.top.cells import Line, Span, Style

COLOURS: dict[Style, str] = {
    "dim": "2",
    "bold": "1",
    "good": "32",
    "bad": "1;31",
    "warn": "33",
    "busy": "36",
    "head": "7",
    "chosen": "7;1",
    "prompt": "1",
}
WITHOUT_COLOUR: dict[Style, str] = {
    "dim": "2",
    "bold": "1",
    "bad": "1",
    "warn": "1",
    "head": "7",
    "chosen": "7;1",
    "prompt": "1",
}
ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
LEAVE = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
CLEAR = "\x1b[0m\x1b[2J"
# Where the terminal's encoding has no such characters.
ASCII = str.maketrans("▁▂▃▄▅▆▇█■□·…", "..::||###o.~")


class Painter:
    """Knows what is on the screen, and writes only what has changed."""

    def __init__(self, *, colour: bool, encoding: str) -> None:
        self._styles = COLOURS if colour else WITHOUT_COLOUR
        self._encoding = encoding
        self._shown: list[Line] = []

    def forget(self) -> None:
        """The screen shows something else now: the next picture is drawn whole."""
        self._shown = []

    def paint(self, lines: Sequence[Line]) -> bytes:
        """Gives the bytes that turn the last picture into this one."""
        whole = len(self._shown) != len(lines)
        parts = [CLEAR] if whole else []
        for row, drawn in enumerate(lines):
            if whole or drawn != self._shown[row]:
                text = "".join(self._span(one) for one in drawn)
                # Emptied first: behind a full line the cursor still stands on its last cell.
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
