"""The log of an attempt: a text in which each line has its time, its stream and its level in front.

    2030-01-01T09:00:00.123Z stdout info Hello

What wrote it, and what it is made of, is here once for those who write it (`workers/joblog.py`) and
for those who show it. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from musterd.store.words import time_text


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


def prefixes(at_epoch: float) -> str:
    """The time as it stands in front of a line."""
    return time_text(datetime.fromtimestamp(at_epoch, UTC), "milliseconds") or ""


def written(lines: Iterable[tuple[float, Voice, bytes]]) -> str:
    """The text of lines that have a time on the clock of the store."""
    parts: list[str] = []
    known_at, time = -1.0, ""
    for at, (stream, level), line in lines:
        if at != known_at:
            known_at, time = at, prefixes(at)
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
