"""The terminal: taken over and always restored; and the keys that its bytes mean."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import signal
import sys
import termios
import threading
from collections.abc import Generator

import trio

from musterd.console.top.cells import ENTER, LEAVE
from musterd.console.top.state import Size

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
