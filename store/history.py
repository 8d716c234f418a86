"""The past of a queue as charts draw it: values, how finely each stretch of it is kept, and how
quantiles come from counts. Pure, but for what an engine promises.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, zip_longest
from typing import Any, NamedTuple, Protocol, TypeAlias

import attrs

# How long each step is, and for how long its rows are kept; the last step's for as long as the
# settings say. Whoever tells something adds it to a row of each.
STEP_SECONDS = 15
STEPS_SECONDS = (STEP_SECONDS, 60, 600)
KEPT_SECONDS = (75 * 60.0, 6.5 * 3600.0)
ADDED_AFTER_SECONDS = STEP_SECONDS / 2  # what is added goes into the step of so long ago
KINDS_NAMED = 50  # by one node at once; the others are only among all
ALL = ""  # stands for all kinds together
MARKS_READ = 200  # the latest
ROWS_READ = 50_000

# Half an octave wide: a quantile is off by a fifth at most. The first ends at a millisecond.
BOUNDS_SECONDS = tuple(0.001 * 2 ** (place / 2) for place in range(55))

Counts = Sequence[int]  # how many values are within each bound and beyond the one before
Rows: TypeAlias = Sequence[Sequence[Any]]


class QueueLook(NamedTuple):
    """The queue and the crews of all nodes; within a row the highest that were seen.

    `stands_seconds`: nothing newer is to be expected for so long.
    """

    depth: int
    oldest_seconds: float
    crew: int
    wish: int  # workers wished for, before limits
    max_count: int
    stands_seconds: float


class EndedJobs(NamedTuple):
    """What became of the jobs of a kind within a step. `retried`: attempts that ended in a retry.
    `waits` are from a job's due time to its claim, `runs` of each attempt.
    """

    kind: str
    succeeded: int = 0
    failed: int = 0
    canceled: int = 0
    retried: int = 0
    waits: Counts = ()
    runs: Counts = ()


class Mark(NamedTuple):
    """Something that happened once, on one node."""

    what: str  # an event's type
    node: str
    said: str = ""


@attrs.frozen
class PastQueue:
    """A row: `at` is where its step begins, in seconds since the epoch."""

    at: int
    look: QueueLook


@attrs.frozen
class PastKind:
    at: int
    ended: EndedJobs


@attrs.frozen
class PastMark:
    at: float
    mark: Mark


@attrs.frozen
class Past:
    """Rows of one step's length, the oldest first."""

    queue: Sequence[PastQueue] = ()
    kinds: Sequence[PastKind] = ()
    marks: Sequence[PastMark] = ()


def steps_at(moment: float) -> Sequence[tuple[int, int]]:
    """How long each step is, and where the one begins that is under way at this moment."""
    return [(step, int(moment) - int(moment) % step) for step in STEPS_SECONDS]


def past_from(
    queue: Rows,
    kinds: Rows,
    marks: Rows,
    ended_from: Callable[[Sequence[Any]], EndedJobs] = EndedJobs._make,
) -> Past:
    """The rows of an engine have the newest first, and each its moment before its values."""
    return Past(
        [PastQueue(at, QueueLook(*look)) for at, *look in reversed(queue)],
        [PastKind(at, ended_from(ended)) for at, *ended in reversed(kinds)],
        [PastMark(at, Mark(*mark)) for at, *mark in reversed(marks)],
    )


class History(Protocol):
    """The past of one store's queue. Errors as for `Engine`."""

    async def add(self, ended: Sequence[EndedJobs], marks: Sequence[Mark]) -> float:
        """Adds what became of jobs lately to the rows of the step that is just over, or nearly.
        Gives the store's time, in seconds since the epoch. Not safe to repeat: it would count
        twice.
        """
        ...

    async def look(self, seen: QueueLook) -> None:
        """Keeps the highest that were seen within each step."""
        ...

    async def read(
        self, step_seconds: int, since: float, until: float, *, by_kind: bool = True
    ) -> Past:
        """Rows of one step's length that begin within these moments; at most `ROWS_READ` of each,
        the latest. Not `by_kind`: of all kinds together only.
        """
        ...

    async def trim(self, keep_seconds: float, batch: int) -> int:
        """Deletes rows whose time is over, at most so many of each sort; gives how many."""
        ...


def kept_seconds(keep_seconds: float) -> Sequence[tuple[int, float]]:
    """Each step's length, and for how long its rows are kept."""
    kept = (*(min(one, keep_seconds) for one in KEPT_SECONDS), keep_seconds)
    return list(zip(STEPS_SECONDS, kept, strict=True))


def step_for(reach_seconds: float, wanted_seconds: float, keep_seconds: float) -> int:
    """The shortest step that is no shorter than wanted, and whose rows reach back so far; the
    longest where none does.
    """
    for step, kept in kept_seconds(keep_seconds):
        if step >= wanted_seconds and kept >= reach_seconds:
            return step
    return STEPS_SECONDS[-1]


def counted(values: Iterable[float]) -> list[int]:
    """How many values are within each bound; trailing zeros are left out."""
    counts: list[int] = []
    add_counts(counts, values)
    return counts


def places(bounds: Sequence[float], values: Iterable[float]) -> Iterator[tuple[int, int]]:
    """Places between the bounds, up to each, and how many of these values are there. Those of a
    batch are mostly alike: to look for each one costs five times as much.
    """
    in_order = sorted(values)
    first = 0
    while first < len(in_order):
        place = bisect_left(bounds, in_order[first])
        is_last = place == len(bounds)
        beyond = len(in_order) if is_last else bisect_right(in_order, bounds[place], first)
        yield place, beyond - first
        first = beyond


def add_counts(counts: list[int], values: Iterable[float]) -> None:
    for place, number in places(BOUNDS_SECONDS, values):
        if place >= len(counts):
            counts.extend([0] * (place + 1 - len(counts)))
        counts[place] += number


def sum_counts(first: Counts, second: Counts) -> Counts:
    return [one + other for one, other in zip_longest(first, second, fillvalue=0)]


def add_ended(one: EndedJobs, other: EndedJobs) -> EndedJobs:
    """Those of two steps, or nodes, together; the kind is that of the first."""
    return EndedJobs(
        one.kind,
        one.succeeded + other.succeeded,
        one.failed + other.failed,
        one.canceled + other.canceled,
        one.retried + other.retried,
        sum_counts(one.waits, other.waits),
        sum_counts(one.runs, other.runs),
    )


def quantile(counts: Counts, share: float) -> float | None:
    """The value that this share of all is not above, as far as the counts tell; None = there are
    none. Within bounds values count as evenly spread, beyond the last as that bound.
    """
    total = sum(counts)
    if not total:
        return None
    wanted = share * total
    for place, so_far in enumerate(accumulate(counts)):
        if so_far >= wanted and counts[place]:
            if place >= len(BOUNDS_SECONDS):
                break
            low = BOUNDS_SECONDS[place - 1] if place else 0.0
            part = 1 - (so_far - wanted) / counts[place]
            return low + (BOUNDS_SECONDS[place] - low) * part
    return BOUNDS_SECONDS[-1]
