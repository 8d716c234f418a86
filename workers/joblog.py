"""What the work of an attempt writes: lines with their time and voice, in the order in which they
came, within bounds.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import attrs

from musterd.store.job_log import HEADING, LEVELS, OWN, STDERR, STDOUT, Voice, not_kept, written

LINE_BYTES_MAX = 8_192  # of a longer line the rest is cut
LINE_BYTES_MIN = 64  # is kept, however small the log
FRAME_BYTES = len("2030-01-01T09:00:00.123Z   \n")  # of a stored line beside voice and text
MARK = b"\0\1"  # in what a child writes: two letters follow, which say whose the next bytes are
LETTERS = 2
STREAM_LETTERS = {b"o": "stdout", b"e": "stderr", b"l": "logging", b"j": "job", b"m": "musterd"}
LEVEL_LETTERS = {level[:1].encode(): level for level in LEVELS}
_VOICES = {
    stream + level: Voice(STREAM_LETTERS[stream], LEVEL_LETTERS[level])
    for stream in STREAM_LETTERS
    for level in LEVEL_LETTERS
}
_PRIORITY = re.compile(rb"<([0-7])>")  # sd-daemon(3): how a program says a line's level
_LEVEL_OF_PRIORITY = ("critical",) * 3 + ("error", "warning", "info", "info", "debug")


@attrs.define
class Head:
    """The first bytes, up to `bytes_max`. `overflowed` = there were more."""

    bytes_max: int
    kept: bytearray = attrs.field(factory=bytearray, init=False)
    overflowed: bool = attrs.field(default=False, init=False)

    def add(self, chunk: bytes | bytearray) -> None:
        room = self.bytes_max - len(self.kept)
        self.overflowed = self.overflowed or len(chunk) > room
        self.kept += chunk[:room]


@attrs.frozen
class LogBounds:
    """How much of the log of an attempt is kept: its end."""

    bytes_max: int
    lines_max: int


@attrs.define
class _Rest:
    """A line that has begun. `cut_bytes` of it were not kept."""

    kept: bytes = b""
    cut_bytes: int = 0


class LogStretch(NamedTuple):
    """Lines of a log: the numbers of the first and the last, how many older ones are no longer
    kept, and their text.
    """

    first: int
    last: int
    dropped: int
    text: str


class JobLog:
    """One attempt's. Takes bytes from any thread; a line counts when it is whole.

    Of a log that is too long the oldest lines are dropped, and a line in their place says how many.
    `on_line` is called with the first line since the log was last `read`.
    """

    def __init__(
        self,
        bounds: LogBounds,
        now_epoch: Callable[[], float],
        on_line: Callable[[], None] | None = None,
    ) -> None:
        self._bounds, self._now_epoch, self._on_line = bounds, now_epoch, on_line
        self._line_bytes_max = min(LINE_BYTES_MAX, max(LINE_BYTES_MIN, bounds.bytes_max // 4))
        self._lines: deque[tuple[float, Voice, bytes]] = deque()
        self._bytes = 0
        self._rests: dict[Voice, _Rest] = {}
        self._heading: bytes | None = None
        self._announced = False
        self._lock = threading.Lock()
        self.last = 0  # the number of the last line

    def add(self, chunk: bytes | bytearray, voice: Voice = STDOUT) -> None:
        with self._lock:
            rest = self._rests.pop(voice, None)
            cut_bytes = rest.cut_bytes if rest else 0
            data = rest.kept + chunk if rest and rest.kept else bytes(chunk)
            whole, newline, tail = data.rpartition(b"\n")
            if newline:
                self._take(whole, voice, cut_bytes)
                cut_bytes = 0
            if tail or cut_bytes:
                self._rests[voice] = self._rest(tail, cut_bytes)

    def say(self, text: str, voice: Voice = OWN) -> None:
        """Whole lines of ours."""
        self.add(f"{text}\n".encode("utf-8", "replace"), voice)

    def close(self) -> None:
        """The attempt has ended: nobody is told of lines any more. What is told holds the attempt,
        which holds its log: such a ring would stay in memory until the next look for garbage.
        """
        self._on_line = None

    def begin_phase(self, name: str) -> None:
        """What comes now, if anything does, was written in this phase."""
        self._heading = f"phase {name}".encode("utf-8", "replace")

    @property
    def dropped(self) -> int:
        """How many lines are no longer kept: the oldest."""
        return self.last - len(self._lines)

    def read(self, after: int, bytes_max: int) -> LogStretch:
        """The newest lines behind the one of this number, as many as have room. Lines that are
        kept from now on are announced again.
        """
        with self._lock:
            self._announced = False
            found: list[tuple[float, Voice, bytes]] = []
            room, number = bytes_max, self.last
            for line in reversed(self._lines):
                room -= _cost(line)
                if number <= after or (room < 0 and found):
                    break
                found.append(line)
                number -= 1
            last, dropped = self.last, self.dropped
        return LogStretch(number + 1, last, dropped, written(reversed(found)))

    def text(self) -> str | None:
        """All that is kept, as it is stored; None = nothing was written. Lines that have begun
        count as whole.
        """
        if not self._lines and not self._rests:
            return None
        with self._lock:
            for voice, rest in [*self._rests.items()]:
                self._take(rest.kept, voice, rest.cut_bytes)
            self._rests.clear()
            if not self._lines:
                return None
            lines = [*self._lines]
            if self.dropped:
                lines.insert(0, (lines[0][0], OWN, not_kept(self.dropped).encode()))
        return written(lines)

    def _rest(self, tail: bytes, cut_bytes: int) -> _Rest:
        most = self._line_bytes_max
        if len(tail) > most:
            tail = tail.rpartition(b"\r")[2]  # what a terminal would show of it
        return _Rest(tail[:most], cut_bytes + max(0, len(tail) - most))

    def _take(self, whole: bytes, voice: Voice, cut_bytes: int) -> None:
        lines = _clean(whole).split(b"\n")
        if b"\r" in whole:
            lines = [line.removesuffix(b"\r").rpartition(b"\r")[2] for line in lines]
        says_levels = whole.startswith(b"<") or b"\n<" in whole
        if cut_bytes or max(map(len, lines)) > self._line_bytes_max:
            lines[0] = self._cut(lines[0], cut_bytes)
            lines[1:] = [self._cut(line, 0) for line in lines[1:]]
        if self._heading is not None:
            heading, self._heading = self._heading, None
            self._keep([heading], HEADING)
        if says_levels and voice in (STDOUT, STDERR):
            for line in lines:
                self._keep_at_its_level(line, voice)
        else:
            self._keep(lines, voice)

    def _cut(self, line: bytes, beyond_bytes: int) -> bytes:
        excess = len(line) - self._line_bytes_max
        if excess <= 0 and not beyond_bytes:
            return line
        kept = line[: self._line_bytes_max].decode("utf-8", "ignore").encode()
        return kept + f" [{max(0, excess) + beyond_bytes} bytes were cut]".encode()

    def _keep_at_its_level(self, line: bytes, voice: Voice) -> None:
        said = _PRIORITY.match(line)
        if said is None:
            self._keep([line], voice)
        else:
            level = _LEVEL_OF_PRIORITY[int(said[1])]
            self._keep([line[said.end() :]], voice._replace(level=level))

    def _keep(self, lines: Sequence[bytes], voice: Voice) -> None:
        self.last += len(lines)
        newest, at = lines[-self._bounds.lines_max :], self._now_epoch()
        self._lines.extend((at, voice, line) for line in newest)
        self._bytes += sum(map(len, newest)) + len(newest) * _cost((at, voice, b""))
        while len(self._lines) > 1 and (
            len(self._lines) > self._bounds.lines_max or self._bytes > self._bounds.bytes_max
        ):
            self._bytes -= _cost(self._lines.popleft())
        on_line = self._on_line
        if on_line is not None and not self._announced:
            self._announced = True
            on_line()


def _cost(line: tuple[float, Voice, bytes]) -> int:
    """How many bytes a line takes in the store."""
    _, (stream, level), text = line
    return FRAME_BYTES + len(stream) + len(level) + len(text)


def _clean(text: bytes) -> bytes:
    """As a store keeps it: UTF-8, without NUL. What is none is shown by its bytes."""
    if b"\0" in text:
        text = text.replace(b"\0", "\N{REPLACEMENT CHARACTER}".encode())
    if text.isascii():
        return text
    return text.decode("utf-8", "backslashreplace").encode()


class MarkedBytes:
    """Tells apart what a child has put into one pipe, so that it stays in order."""

    def __init__(self) -> None:
        self._rest = b""
        self._voice = STDOUT

    def parts(self, chunk: bytes) -> Iterator[tuple[bytes, Voice]]:
        data = self._rest + chunk
        first, *marked = data.split(MARK)
        self._rest = b""
        if marked and len(marked[-1]) < LETTERS:
            self._rest = MARK + marked.pop()
        elif data.endswith(b"\0"):  # half a mark, it may be
            self._rest = b"\0"
            *before, last = first, *marked
            first, *marked = *before, last[:-1]
        if first:
            yield first, self._voice
        for part in marked:
            self._voice = _VOICES.get(part[:2], STDOUT)
            if part[2:]:
                yield part[2:], self._voice
