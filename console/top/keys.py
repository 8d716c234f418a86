"""From the bytes of a terminal to the names of keys. Pure."""

from __future__ import annotations

import codecs
import re

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
    """Reads keys from bytes that come in pieces. A key that types something is that character."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._left = ""

    @property
    def is_waiting(self) -> bool:
        """Whether what came last may go on: an Escape is either that key or the start of one."""
        return bool(self._left)

    def feed(self, data: bytes) -> list[str]:
        return self._read(self._left + self._decoder.decode(data))

    def flush(self) -> list[str]:
        """Nothing more came: an Escape is that key."""
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
