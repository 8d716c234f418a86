"""A trace: when past attempts were due and how long they ran. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cached_property
from itertools import accumulate
from math import isnan

import attrs

MICRO = 1_000_000
NONE = -1  # no further attempt


@attrs.frozen
class LeftOut:
    """Parts of the log that a simulation cannot use. `cut`: it was too long to read whole."""

    running: int = 0  # attempts whose end is not in the log
    waiting: int = 0  # jobs that never started
    unstarted: int = 0  # ends without a start: the log begins in between
    undue: int = 0  # attempts that are used, though the log does not say when they were due
    cut: bool = False


@attrs.frozen(slots=False)
class Trace:
    """One entry per attempt in each column, in order of their ends; seconds count from `begun_at`.
    A further attempt of a job is due `pause_seconds` after the previous one ends in the simulation.
    `tick_seconds`: when a decision was made; the others are whole intervals before and after it.
    """

    begun_at: datetime
    span_seconds: float
    due_seconds: Sequence[float]
    run_seconds: Sequence[float]
    waited_seconds: Sequence[float]  # as it was; nan = not known
    next_attempt: Sequence[int]  # the entry that follows this one; NONE = it was the last
    pause_seconds: Sequence[float]  # between its end and when the next was due
    firsts: Sequence[int]  # entries that follow no other, in claim order
    kinds: Sequence[str]
    left_out: LeftOut = attrs.field(factory=LeftOut)
    tick_seconds: float = 0.0
    # Without any: 0, none, and as soon as it was due.
    priorities: Sequence[int] = ()
    targets: Sequence[str] = ()
    made_seconds: Sequence[float] = ()  # of a first attempt: since when its job was there
    nodes: int = 1  # that were there at the same time, on average
    guarded: Sequence[tuple[float, float]] = ()  # when the guard kept a crew from growing
    pick_up_seconds: float = 0.0  # until an idle worker has a job that is due
    handover_seconds: float = 0.0  # until a worker who is done has the next job that is due

    def __len__(self) -> int:
        return len(self.run_seconds)

    def priority(self, entry: int) -> int:
        return self.priorities[entry] if self.priorities else 0

    def target(self, entry: int) -> str:
        """Empty = none."""
        return self.targets[entry] if self.targets else ""

    def is_made(self, entry: int, now: float) -> bool:
        """Whether its job is in the queue by then, due or not."""
        return (self.made_seconds or self.due_seconds)[entry] <= now

    @cached_property
    def waits(self) -> Sequence[float]:
        """The known waits, sorted."""
        return sorted(one for one in self.waited_seconds if not isnan(one))

    @cached_property
    def busy_seconds(self) -> float:
        return sum(self.run_seconds)

    @cached_property
    def most_at_once(self) -> int:
        """How many attempts really ran at the same time."""
        known = ((0.0 if isnan(one) else one) for one in self.waited_seconds)
        starts = (due + wait for due, wait in zip(self.due_seconds, known, strict=True))
        return _overlap(starts, self.run_seconds)

    @cached_property
    def most_wanted(self) -> int:
        """How many would have run at once if none had waited: a larger crew could not help."""
        return _overlap(self.due_seconds, self.run_seconds)


def _overlap(starts: Iterable[float], runs: Iterable[float]) -> int:
    """At least 1; attempts that only touch do not overlap."""
    changes: list[tuple[int, int]] = []  # in microseconds, as events have them: sums are not
    for start, run in zip(starts, runs, strict=True):
        changes += ((round(start * MICRO), 1), (round((start + run) * MICRO), -1))
    changes.sort()  # ends before starts
    return max(1, *accumulate(change for _, change in changes))
