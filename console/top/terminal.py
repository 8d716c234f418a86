"""The terminal: text on its cells, of which no character commands it; painting; keys."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import signal
import sys
import termios
import threading
import unicodedata
from collections.abc import Generator, Iterable, Sequence
from typing import Literal, NamedTuple

import trio

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
        found.append(Span(" " * left, found[-1].style if found else "plain"))
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


class Size(NamedTuple):
    columns: int
    rows: int


CHUNK_BYTES = 512  # what a terminal that says it can take something takes without a wait
READ_BYTES = 4096
FALLBACK = Size(80, 24)
# Places in what termios gives, and the flags that are taken away: keys come one by one, are not
# shown, and are keys also where they would be signals.
INPUT, LOCAL = 0, 3
NO_INPUT_FLAGS = termios.IXON | termios.ICRNL
NO_LOCAL_FLAGS = termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN


class Terminal:
    """Standard input and output, if both are one terminal."""

    def __init__(self) -> None:
        self._input, self._output = sys.stdin.fileno(), sys.stdout.fileno()
        self._before = termios.tcgetattr(self._input)
        self.encoding = sys.stdout.encoding or "ascii"

    def size(self) -> Size:
        try:
            columns, rows = os.get_terminal_size(self._output)
        except OSError:
            return FALLBACK
        return Size(columns, rows) if columns and rows else FALLBACK

    @contextlib.contextmanager
    def taken(self) -> Generator[None, None, None]:
        """The screen is ours within the block, and restored however it ends."""
        try:
            self.resume()
            yield
        finally:
            self._give_back()

    def suspend(self) -> None:
        """Restores the terminal and stops, like Ctrl-Z; takes it again on resuming."""
        self._give_back()
        try:
            before = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            # At this thread, so that it has happened when the call returns.
            signal.pthread_kill(threading.get_ident(), signal.SIGTSTP)
            signal.signal(signal.SIGTSTP, before)
        finally:
            self.resume()

    def resume(self) -> None:
        """Takes it, also after somebody else stopped the process."""
        wanted = termios.tcgetattr(self._input)
        wanted[INPUT] &= ~NO_INPUT_FLAGS
        wanted[LOCAL] &= ~NO_LOCAL_FLAGS
        termios.tcsetattr(self._input, termios.TCSADRAIN, wanted)
        os.write(self._output, ENTER.encode())

    async def read(self) -> bytes:
        """The typed bytes; empty = the terminal is gone."""
        await trio.lowlevel.wait_readable(self._input)
        try:
            return os.read(self._input, READ_BYTES)
        except OSError:
            return b""

    async def write(self, data: bytes) -> None:
        """A stuck terminal delays only its own picture. Raises OSError if it is gone."""
        left = memoryview(data)
        while left:
            await trio.lowlevel.wait_writable(self._output)
            left = left[os.write(self._output, left[:CHUNK_BYTES]) :]

    def _give_back(self) -> None:
        # The terminal may have gone.
        with contextlib.suppress(OSError):
            os.write(self._output, LEAVE.encode())
        with contextlib.suppress(OSError, termios.error):
            termios.tcsetattr(self._input, termios.TCSADRAIN, self._before)


ESCAPE = "\x1b"
# ESC, then [ or O, then what a terminal may put before the last character.
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?<=>]*[ -/]*([@-~])|O([@-~]))")
_UNFINISHED = re.compile(r"\x1b(?:\[[0-9;?<=>]*[ -/]*|O)?\Z")
LETTERS = {"A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end"}
NUMBERS = {"1": "home", "4": "end", "5": "pgup", "6": "pgdn", "7": "home", "8": "end", "3": "del"}
CONTROLS = {
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x03": "ctrl-c",
    "\x04": "ctrl-d",
    "\x0c": "ctrl-l",
    "\x15": "ctrl-u",
    "\x1a": "ctrl-z",
}
UNFINISHED_MAX = 64  # a sequence that goes on for longer is none


class Keys:
    """Reads keys from bytes that come in pieces. A key that types a character is that character."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._left = ""

    @property
    def is_waiting(self) -> bool:
        """Whether more may follow: an Escape is that key, or the start of another."""
        return bool(self._left)

    def feed(self, data: bytes) -> list[str]:
        return self._read(self._left + self._decoder.decode(data))

    def flush(self) -> list[str]:
        """Nothing followed: an Escape is that key."""
        left, self._left = self._left, ""
        return ["esc"] if left.startswith(ESCAPE) else []

    def _read(self, text: str) -> list[str]:
        found: list[str] = []
        place, self._left = 0, ""
        while place < len(text):
            if text[place] == ESCAPE:
                sequence = _SEQUENCE.match(text, place)
                if sequence is not None:
                    found += _named(sequence)
                    place = sequence.end()
                    continue
                if _UNFINISHED.match(text, place) and len(text) - place <= UNFINISHED_MAX:
                    self._left = text[place:]
                    break
                found.append("esc")
            else:
                found += _typed(text[place])
            place += 1
        return found


def _typed(character: str) -> list[str]:
    if character in CONTROLS:
        return [CONTROLS[character]]
    return [character] if character.isprintable() else []


def _named(sequence: re.Match[str]) -> list[str]:
    last = sequence[1] or sequence[2]
    if last == "~":
        number = sequence[0][2:-1].split(";")[0]
        return [NUMBERS[number]] if number in NUMBERS else []
    return [LETTERS[last]] if last in LETTERS else []
