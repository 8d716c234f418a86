"""Progress as a command tells it on file descriptor 3, a line a note: `50`, `50 half way`, or
`{"percent": 50, "note": "half way"}`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import cast

import attrs

from musterd.workers.running import Note

LINE_BYTES_MAX = 2_000
NOTE_LENGTH_MAX = 200
COMPLAINTS_MAX = 3
SHOWN_LENGTH_MAX = 80
PERCENT_MAX = 100


@attrs.define
class ProgressLines:
    """Takes what arrives, tells the latest note of each arrival; complains of what is no note."""

    tell: Callable[[Note], None]
    complain: Callable[[str], None]
    _rest: bytes = attrs.field(default=b"", init=False)
    _complaints: int = attrs.field(default=0, init=False)

    def add(self, chunk: bytes | bytearray) -> None:
        *lines, self._rest = (self._rest + bytes(chunk)).split(b"\n")
        if len(self._rest) > LINE_BYTES_MAX:
            lines, self._rest = [*lines, self._rest], b""
        self._take(lines)

    def end(self) -> None:
        """Takes a last line that had no end."""
        self._take([self._rest])

    def _take(self, lines: list[bytes]) -> None:
        latest: Note | None = None
        for line in lines:
            text = line.decode("utf-8", "replace").strip()
            if not text:
                continue
            note = note_of(text) if len(line) <= LINE_BYTES_MAX else None
            latest = note or latest
            if note is None:
                self._refuse(text)
        if latest is not None:
            self.tell(latest)

    def _refuse(self, text: str) -> None:
        self._complaints += 1
        if self._complaints <= COMPLAINTS_MAX:
            wanted = 'a percentage from 0 to 100, or {"percent": ..., "note": ...}'
            self.complain(f"ignored on fd 3: {text[:SHOWN_LENGTH_MAX]!r}, wanted {wanted}")


def note_of(line: str) -> Note | None:
    """The note that the line holds, if it holds one."""
    if line.startswith("{"):
        return _from_json(line)
    percent, _, note = line.partition(" ")
    try:
        return _note(float(percent.removesuffix("%")), note)
    except ValueError:
        return None


def _from_json(line: str) -> Note | None:
    try:
        value = cast("dict[str, object]", json.loads(line))
    except (ValueError, RecursionError):
        return None
    percent, note = value.get("percent"), value.get("note")
    if isinstance(percent, bool) or not isinstance(percent, int | float):
        return None
    return _note(percent, note) if note is None or isinstance(note, str) else None


def _note(percent: float, note: str | None) -> Note | None:
    if not math.isfinite(percent) or not 0 <= percent <= PERCENT_MAX:
        return None
    words = " ".join((note or "").replace("\0", "").split())
    return Note(float(percent), words[:NOTE_LENGTH_MAX] or None)
