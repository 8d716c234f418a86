"""The log of an attempt: a text in which each line has its time, its stream and its level in front.

    2030-01-01T09:00:00.123Z stdout info Hello

What wrote it, and what it is made of, is here once for those who write it (`workers/joblog.py`) and
for those who show it. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from musterd.store.lifecycle import ENDED, JobState
from musterd.store.words import one_line, time_text


class Voice(NamedTuple):
    """Where a line comes from, and how grave it is."""

    stream: str  # stdout | stderr | logging | job | answer | musterd
    level: str  # debug | info | warning | error | critical


STREAMS = ("stdout", "stderr", "logging", "job", "answer", "musterd")
LEVELS = ("debug", "info", "warning", "error", "critical")
STDOUT = Voice("stdout", "info")
STDERR = Voice("stderr", "warning")
OWN = Voice("musterd", "warning")  # musterd's own words in the log of a job
HEADING = Voice("musterd", "info")

_LINE = re.compile(
    rf"(\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ) ({'|'.join(STREAMS)}) ({'|'.join(LEVELS)}) (.*)",
    re.DOTALL,
)
POSITION_PATTERN = r"^[0-9]{1,9}\.[0-9]{1,15}$"
_POSITION = re.compile(POSITION_PATTERN)
_NOT_KEPT = re.compile(r"(\d+) older lines were not kept")


class LogLine(NamedTuple):
    """`number`: its place in the log of its attempt, from 1; lines that were not kept count. A line
    that somebody else has put there has neither time nor stream nor level.
    """

    attempt: int
    number: int
    at: str | None
    stream: str | None
    level: str | None
    text: str


class LogPosition(NamedTuple):
    """How far somebody has read: up to this line of this attempt. 0 = nothing of it."""

    attempt: int = 0
    line: int = 0

    @property
    def text(self) -> str:
        return f"{self.attempt}.{self.line}"


def position_of(text: str) -> LogPosition:
    """Raises ValueError for what is no position."""
    if _POSITION.fullmatch(text) is None:
        raise ValueError(f"found {text!r:.60}, wanted a position such as 1.120")
    attempt, _, line = text.partition(".")
    return LogPosition(int(attempt), int(line))


class LogPart(NamedTuple):
    """What the store has of an attempt's log. `first`: the number of its first line, while the
    attempt runs; None = it has ended, and this is all.
    """

    attempt: int
    first: int | None
    text: str


class LogPage(NamedTuple):
    """Lines in order. `position`: behind them, and behind attempts that have ended."""

    state: JobState
    lines: tuple[LogLine, ...]
    position: LogPosition
    more: bool  # later attempts have been left off

    @property
    def is_whole(self) -> bool:
        """Whether nothing will follow unless somebody resumes the job."""
        return not self.more and (self.state in ENDED or self.state is JobState.PAUSED)


ATTEMPTS_MAX = 5  # of which a page has lines, beside the one that stands in the job's row


def page_of(state: JobState, parts: Sequence[LogPart], after: LogPosition) -> LogPage:
    """`parts` in order: of attempts from that of `after` on."""
    lines: list[LogLine] = []
    position = after
    for part in parts:
        if part.attempt != position.attempt:
            position = LogPosition(part.attempt)
        found = [one for one in _lines_of_part(part, position) if one.number > position.line]
        lines += found
        if part.first is None:
            position = LogPosition(part.attempt + 1)
        elif found:
            position = LogPosition(part.attempt, found[-1].number)
    past = {part.attempt for part in parts if part.first is None}
    return LogPage(state, tuple(lines), position, len(past) >= ATTEMPTS_MAX)


def _lines_of_part(part: LogPart, position: LogPosition) -> Sequence[LogLine]:
    lines = [*lines_of(part.text, part.attempt, part.first or 1)]
    missing = (part.first or 1) - 1 - position.line
    if part.first is not None and missing > 0:
        gap = LogLine(part.attempt, part.first - 1, lines[0].at, *OWN, not_kept(missing))
        return [gap, *lines]
    return lines


def line_object(line: LogLine) -> dict[str, object]:
    """A line as programs read it."""
    return line._asdict()


def shown_line(line: LogLine) -> str:
    """A line as people read it."""
    head = " ".join(part for part in (line.at, line.stream, line.level) if part)
    return f"{head} {one_line(line.text)}" if head else one_line(line.text)


def _line_time(at_epoch: float) -> str:
    """As it stands in front of a line."""
    return time_text(datetime.fromtimestamp(at_epoch, UTC), "milliseconds") or ""


def written(lines: Iterable[tuple[float, Voice, bytes]]) -> str:
    """The text of lines that have a time on the clock of the store."""
    parts: list[str] = []
    known_at, time = -1.0, ""
    for at, (stream, level), line in lines:
        if at != known_at:
            known_at, time = at, _line_time(at)
        parts.append(f"{time} {stream} {level} {line.decode()}\n")
    return "".join(parts)


def not_kept(count: int) -> str:
    """The words in the place of lines that were dropped."""
    return f"{count} older lines were not kept"


def lines_of(text: str, attempt: int = 1, first: int = 1) -> Iterator[LogLine]:
    """The lines of a stored text, whose first line has this number, unless it says which lines are
    missing before it.
    """
    number = first
    for line in text.removesuffix("\n").split("\n"):
        found = _LINE.fullmatch(line)
        if found is None:
            yield LogLine(attempt, number, None, None, None, line)
        else:
            at, stream, level, said = found.groups()
            gap = _NOT_KEPT.fullmatch(said) if stream == OWN.stream else None
            number = max(number, int(gap[1])) if gap else number
            yield LogLine(attempt, number, at, stream, level, said)
        number += 1


def plain(text: str | None) -> str:
    """What was said, without time, stream and level."""
    if not text:
        return ""
    return "".join(f"{line.text}\n" for line in lines_of(text))
