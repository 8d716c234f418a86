"""The policy `latency`: as many workers as it takes to start each job within the time promised for
its kind, and no more. Pure, but for `Arrivals`, which is told the time.

W workers who never lack a job start one after at most (R + S) / W seconds: R is what is left of the
jobs in hand, S the work of the jobs before it. Of these, a job that goes on beyond the time when
that one has to start keeps one worker until then, however long it is: without it, one worker less
does the rest. The promise of each waiting job sets a lower bound on W; the largest of them counts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from itertools import accumulate
from math import ceil, sqrt
from typing import Literal, NamedTuple

import attrs

from musterd.store.estimate import SIGMAS, Service
from musterd.store.queue import Line, Waiting

MEASURED_RUNS = 3  # fewer say nothing about a kind
ROUNDING = 1e-9  # a hair more than a whole number of workers needs no further one
SOON = 4  # parts of an interval, within one of which a promise that is broken is made up for
LONG_KINDS_MAX = 100  # those of more kinds count as a whole, so that a look stays short

Because = Literal["steady", "drain", "upcoming", "floor", "demand", "depth"]
Kinds = Mapping[str, float]
NO_KINDS: Kinds = {}
NO_TIMES: Mapping[str, Service] = {}
NO_LINE = Line()


@attrs.frozen
class Promises:
    """How long jobs may wait. `interval_seconds`: how soon a decision can follow another."""

    max_wait_seconds: float = 0.0  # of kinds without a promise of their own; 0 = none
    of_kinds: Kinds = NO_KINDS
    headroom: float = 0.85  # how busy the crew may be with what arrives all the time
    interval_seconds: float = 1.0
    hire_seconds: float = 0.0  # how long a new worker takes to be there, as measured

    @property
    def horizon_seconds(self) -> float:
        """A job that becomes due later can be left to the next decision."""
        return self.interval_seconds + self.hire_seconds

    @property
    def are_made(self) -> bool:
        return bool(self.max_wait_seconds) or any(self.of_kinds.values())

    def left(self, promised_seconds: float, waited_seconds: float) -> float:
        """Of one of them. Who is late, or nearly, is not helped by more workers than start
        everybody soon.
        """
        return max(promised_seconds - waited_seconds, self._soon(promised_seconds))

    @property
    def least_left(self) -> float:
        """Of any job."""
        promised = (self.max_wait_seconds, *self.of_kinds.values())
        return min(map(self._soon, filter(None, promised)), default=self.interval_seconds)

    def _soon(self, promised_seconds: float) -> float:
        return min(promised_seconds, self.interval_seconds / SOON)

    def of(self, kind: str) -> float:
        """0 = none."""
        return self.of_kinds.get(kind, self.max_wait_seconds)


@attrs.frozen
class Work:
    """What there is to do. `in_hand`: kind of each job on this node, and how long it has run.
    `times`: how long jobs of each kind keep a worker. `arrivals`: jobs a second that this node
    claims, by kind. `slots`: jobs that schedules are about to make.
    """

    line: Line = NO_LINE
    in_hand: Sequence[tuple[str, float]] = ()
    times: Mapping[str, Service] = NO_TIMES
    arrivals: Kinds = NO_KINDS
    slots: Sequence[Waiting] = ()

    def measured(self, kind: str) -> Service | None:
        found = self.times.get(kind)
        return found if found is not None and found.runs >= MEASURED_RUNS else None

    @property
    def waiting(self) -> Sequence[Waiting]:
        """With those that were not seen, as if they were like the last that was."""
        seen, unseen = self.line.waiting, self.line.unseen
        return [*seen, seen[-1]._replace(number=unseen)] if seen and unseen else seen


def with_handover(times: Mapping[str, Service], handover_seconds: float) -> Mapping[str, Service]:
    """How long jobs keep a worker: until it has the next one."""
    if not handover_seconds:
        return times
    return {
        kind: attrs.evolve(time, mean_seconds=time.mean_seconds + handover_seconds)
        for kind, time in times.items()
    }


@attrs.frozen
class WantedCrew:
    """The wanted crew regardless of bounds; None = unknown. `decided_by`: the kind and the id of
    the job whose promise takes most workers. `slack_seconds`: what is left of the promise of the
    worst job that waits; below 0 it is broken.
    """

    workers: int | None
    because: Because | None = None
    decided_by: tuple[str, int] | None = None
    slack_seconds: float | None = None


def latency_wish(work: Work, part: float, promises: Promises) -> WantedCrew:
    """`part`: this node's part of what waits, from 0 to 1. Jobs of a kind that is not yet measured
    have a worker each, as under `demand`, beside those that do the measured work.
    """
    hand = _in_hand(work)
    waiting = work.waiting
    now = _due(waiting)
    due = _drain(now, hand, part, work, promises)
    soon = due  # with what becomes due before the next decision
    if len(now) < len(waiting) or work.slots:
        later = [*(one for one in waiting if one.waited_seconds < 0), *work.slots]
        later.sort(key=lambda one: -one.waited_seconds)
        soon = _drain([*now, *later], hand, part, work, promises)
    unmeasured = sum(one.number for one in now if work.measured(one.kind) is None)
    apart = hand.unmeasured + ceil(part * unmeasured)
    stuck = apart + hand.overrun
    wishes: list[tuple[int, Because, tuple[str, int] | None]] = [
        (stuck + due.workers if due.workers else 0, "drain", due.decided_by),
        (stuck + soon.workers if soon.workers > due.workers else 0, "upcoming", soon.decided_by),
        (apart, "demand", None),
        (apart + _steady(work, promises), "steady", None),
    ]
    workers, because, by = max(wishes, key=lambda wish: wish[0])  # the first of equals
    return WantedCrew(workers, because, by, _slack_seconds(now, promises))


def slack_seconds(work: Work, promises: Promises) -> float | None:
    """What is left of the promise of the worst job that is due; None = no such job has one."""
    return _slack_seconds(_due(work.waiting), promises)


def _due(waiting: Iterable[Waiting]) -> list[Waiting]:
    return [one for one in waiting if one.waited_seconds >= 0]


def _slack_seconds(due: Iterable[Waiting], promises: Promises) -> float | None:
    """None = no job with a promise waits."""
    promised = ((promises.of(one.kind), one.waited_seconds) for one in due)
    return min((seconds - waited for seconds, waited in promised if seconds), default=None)


class _Before(NamedTuple):
    """What is to be done in some time: so many workers are busy all of it, others for `seconds`."""

    whole: int
    seconds: float


@attrs.frozen
class _InHand:
    unmeasured: int  # jobs that may take any time
    overrun: int  # jobs that take longer than their kind does: nobody knows for how long
    rests: Sequence[float]  # what is left of each of the others, the shortest first
    sums: Sequence[float]  # of the shortest so many

    def within(self, seconds: float) -> _Before:
        place = bisect_right(self.rests, seconds)
        return _Before(len(self.rests) - place, self.sums[place])


def _in_hand(work: Work) -> _InHand:
    unmeasured = overrun = 0
    rests: list[float] = []
    for kind, ran_seconds in work.in_hand:
        time = work.measured(kind)
        if time is None:
            unmeasured += 1
        elif ran_seconds <= time.mean_seconds:
            rests.append(time.mean_seconds - ran_seconds)
        elif ran_seconds <= time.long_seconds:
            rests.append(time.long_seconds - ran_seconds)
        else:
            overrun += 1
    rests.sort()
    return _InHand(unmeasured, overrun, rests, [0.0, *accumulate(rests)])


def _steady(work: Work, promises: Promises) -> int:
    """So many workers are busy with what arrives, once they have some headroom."""
    busy = sum(
        rate * time.mean_seconds
        for kind, rate in work.arrivals.items()
        if (time := work.measured(kind)) is not None
    )
    return ceil(busy / promises.headroom - ROUNDING)


@attrs.define
class _Ahead:
    """The work before a job, as one goes along the line. Of kinds that may take longer than the job
    has time, the jobs are counted.
    """

    long: Mapping[str, Service]
    seconds: float = 0.0
    variance: float = 0.0
    numbers: dict[str, int] = attrs.field(factory=dict[str, int])

    def add(self, kind: str, number: int, time: Service | None) -> None:
        if kind in self.long:
            self.numbers[kind] = self.numbers.get(kind, 0) + number
        elif time is not None:
            self.seconds += number * time.mean_seconds
            self.variance += number * time.deviation_seconds**2

    def within(self, seconds: float) -> _Before:
        """By chance it may be more, by twice the deviation; that of what is between 0 and some time
        is never more than half of that time.
        """
        whole, work, variance = 0, self.seconds, self.variance
        for kind, number in self.numbers.items():
            time = self.long[kind]
            if time.mean_seconds > seconds:
                whole += number
            else:
                work += number * time.mean_seconds
            variance += number * min(time.deviation_seconds, seconds / 2) ** 2
        return _Before(whole, work + SIGMAS * sqrt(variance))


def _long_kinds(work: Work, promises: Promises) -> Mapping[str, Service]:
    """Those that may take longer than a job has time; of many, the longest."""
    least = promises.least_left
    long = (
        (time.mean_seconds, kind, time)
        for kind in work.times
        if (time := work.measured(kind)) is not None
        and (time.mean_seconds > least or time.deviation_seconds > least / 2)
    )
    return {kind: time for _, kind, time in nlargest(LONG_KINDS_MAX, long)}


@attrs.frozen
class _Drain:
    workers: int = 0
    decided_by: tuple[str, int] | None = None


def _drain(
    line: Iterable[Waiting], hand: _InHand, part: float, work: Work, promises: Promises
) -> _Drain:
    """How many workers keep the promises of these jobs, and whose takes most. A kind without a
    promise is only work before others, which one worker does in the end. Jobs of one that is not
    measured only wait: each has a worker of its own, who has to be free first.
    """
    workers, decided_by = 0, None
    ahead = _Ahead(_long_kinds(work, promises))
    for kind, number, last_id, waited_seconds in line:
        promised, time = promises.of(kind), work.measured(kind)
        own = int(time is None)
        if promised:
            ahead.add(kind, number - 1, time)  # the last of them waits for these
            left = promises.left(promised, waited_seconds)
            needed = _needed(hand.within(left), ahead.within(left), part, left) - own
            if needed > workers:
                workers, decided_by = needed, (kind, last_id)
        elif not workers:
            workers = 1 - own
        ahead.add(kind, 1 if promised else number, time)
    return _Drain(workers, decided_by)


def _needed(hand: _Before, ahead: _Before, part: float, left: float) -> int:
    """The job itself needs a worker beside those who are busy all the time."""
    whole, seconds = part * ahead.whole, hand.seconds + part * ahead.seconds
    some = max(ceil(whole - ROUNDING) + 1, ceil(whole + seconds / left - ROUNDING))
    return hand.whole + some
