"""What a node adds to the history of a tenant's queue: what became of the jobs that it ran, written
once a step; and, where it has the duty, how the queue and the crews are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

import attrs
import trio

from musterd import __version__
from musterd.manager.duties.duty import REST_AFTER_SECONDS
from musterd.manager.node.status import Decision, TenantStatus
from musterd.manager.tenancy.deps import TenancyDeps
from musterd.store.errors import OutcomeUnknown, StoreError
from musterd.store.history import (
    ALL,
    KINDS_NAMED,
    STEP_SECONDS,
    EndedJobs,
    Mark,
    QueueLook,
    add_counts,
    sum_counts,
)
from musterd.store.leases import Reaped, Settlement, Successes
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.nodes import NodeRecord
from musterd.store.queue import Counts
from musterd.store.waiting import Bell
from musterd.workers.idleness import Idleness, IdleState, Move

LATE_SECONDS = 1.0  # after the end of a step it is told of
MARKS_WAITING_MAX = 100  # while the store is away; the oldest go first
FINISH_SECONDS = 2.0
SAID_LENGTH_MAX = 200

_how_it_ended = attrgetter("kind", "outcome", "state")


@attrs.define(eq=False)
class Tally:
    """What became of the jobs of a kind since it was last told; see `EndedJobs`."""

    succeeded: int = 0
    failed: int = 0
    canceled: int = 0
    retried: int = 0
    waits: list[int] = attrs.field(factory=list[int])
    runs: list[int] = attrs.field(factory=list[int])

    def ended(self, kind: str) -> EndedJobs:
        numbers = self.succeeded, self.failed, self.canceled, self.retried
        return EndedJobs(kind, *numbers, self.waits, self.runs)

    def end(self, state: JobState, number: int) -> None:
        if state is JobState.SUCCEEDED:
            self.succeeded += number
        elif state is JobState.FAILED:
            self.failed += number
        elif state is JobState.CANCELED:
            self.canceled += number

    def add(self, other: Tally) -> None:
        self.succeeded += other.succeeded
        self.failed += other.failed
        self.canceled += other.canceled
        self.retried += other.retried
        self.waits = list(sum_counts(self.waits, other.waits))
        self.runs = list(sum_counts(self.runs, other.runs))


@attrs.define(eq=False)
class HistoryWriter:
    """Owned by a tenancy. Counting returns at once and never raises; what was counted is written
    when a step is over. While the store is away it goes on counting: no more than a step's rows
    wait. A tenant without jobs costs nothing.
    """

    deps: TenancyDeps
    _by_kind: dict[str, Tally] = attrs.field(factory=dict[str, Tally], init=False)
    _marks: deque[Mark] = attrs.field(factory=lambda: deque(maxlen=MARKS_WAITING_MAX), init=False)
    _bell: Bell = attrs.field(factory=Bell, init=False)
    _turn: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    _ahead_seconds: float | None = attrs.field(default=None, init=False)  # of Trio's clock

    # -- what there is to tell

    def claimed(self, kind: str, waited_seconds: Sequence[float]) -> None:
        add_counts(self._of(kind).waits, waited_seconds)

    def settled(self, settlements: Iterable[Settlement]) -> None:
        for (kind, outcome, state), alike in groupby(settlements, key=_how_it_ended):
            run_seconds = [settlement.run_seconds for settlement in alike]
            tally = self._of(kind)
            tally.end(state, len(run_seconds))
            if outcome is AttemptOutcome.RETRYING:
                tally.retried += len(run_seconds)
            add_counts(tally.runs, run_seconds)

    def succeeded(self, successes: Successes) -> None:
        for kind, run_seconds in successes.run_seconds_by_kind().items():
            tally = self._of(kind)
            tally.succeeded += len(run_seconds)
            add_counts(tally.runs, run_seconds)

    def reaped(self, reaped: Iterable[Reaped]) -> None:
        """Jobs that were given back are told of when they end."""
        for one in reaped:
            if one.state is not JobState.QUEUED:
                self._of(one.kind).end(one.state, 1)

    def mark(self, what: str, said: str = __version__) -> None:
        self._marks.append(Mark(what, self.deps.node, said[:SAID_LENGTH_MAX]))
        self._bell.ring()

    def _of(self, kind: str) -> Tally:
        found = self._by_kind.get(kind)
        if found is None:
            self._bell.ring()
            name = kind if len(self._by_kind) < KINDS_NAMED else ALL
            found = self._by_kind.setdefault(name, Tally())
        return found

    # -- telling it

    async def run(self) -> None:
        while True:
            await self._bell.wait()
            self._bell.clear()
            await trio.sleep(self._pause_seconds())
            await self.write()

    async def finish(self) -> None:
        """Writes the last of it, within a time limit."""
        self.mark("node.stopped")
        with trio.move_on_after(FINISH_SECONDS):
            await self.write()

    async def write(self) -> None:
        async with self._turn:
            if not self._by_kind and not self._marks:
                return
            by_kind, marks = self._by_kind, list(self._marks)
            self._by_kind = {}
            self._marks.clear()
            ended = _with_all(by_kind)
            try:
                at = await self.deps.engine.history.add(ended, marks)
            except OutcomeUnknown:
                return  # rather missed than told twice
            except StoreError:  # the engine has logged it
                self._take_back(by_kind, marks)
                return
        self._ahead_seconds = at - trio.current_time()

    def _take_back(self, by_kind: dict[str, Tally], marks: Sequence[Mark]) -> None:
        for kind, tally in by_kind.items():
            self._of(kind).add(tally)
        self._marks.extendleft(reversed(marks[: MARKS_WAITING_MAX - len(self._marks)]))
        self._bell.ring()

    def _pause_seconds(self) -> float:
        """Until the step that is under way at the store is just over."""
        if self._ahead_seconds is None:
            now = self.deps.wall_clock()
        else:
            now = trio.current_time() + self._ahead_seconds
        return STEP_SECONDS - (now - LATE_SECONDS) % STEP_SECONDS


def _with_all(by_kind: Mapping[str, Tally]) -> Sequence[EndedJobs]:
    """Each kind, and all kinds together, those too that have not been counted by themselves."""
    whole = Tally()
    for tally in by_kind.values():
        whole.add(tally)
    named = [tally.ended(kind) for kind, tally in by_kind.items() if kind != ALL]
    return [*named, whole.ended(ALL)] if by_kind else []


LOOK_SECONDS = float(STEP_SECONDS)
LOOK_SECONDS_LISTENING = 60.0  # nothing happens without a hint, on any node
LOOK_SECONDS_RESTING = 600.0
QUIET_LOOKS = 4  # and the one before them reach over a row of a minute
TRIM_SECONDS = 60.0
TRIMMED_ROWS = 1_000  # of each sort, at once
HOUR_SECONDS = 3_600.0
SOONEST, LATEST = 0.5, 1.5  # times the pause after a look, the next one comes


@attrs.define(eq=False)
class QueueWatch:
    """Owned by a tenancy; a part of the duty of statistics. Looks at the queue, and forgets what is
    too old.

    Its own decisions tell it what was to be seen between two looks, and what other nodes wish for,
    the store.
    """

    deps: TenancyDeps
    idleness: Idleness
    status: Callable[[], TenantStatus]
    decisions: Callable[[], Sequence[Decision]]
    pause_seconds: float = attrs.field(default=LOOK_SECONDS, init=False)  # until the next look
    _bell: Bell = attrs.field(factory=Bell, init=False)
    _looked_local: float = attrs.field(default=float("-inf"), init=False)
    _trimmed_local: float = attrs.field(default=float("-inf"), init=False)
    _decided_at: float = attrs.field(default=0.0, init=False)
    _quiet_looks: int = attrs.field(default=0, init=False)  # in a row, that saw the same
    _seen: QueueLook | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.idleness.on_move(self._end_rest)

    async def look_if_due(self) -> None:
        now = trio.current_time()
        if now - self._looked_local >= SOONEST * self.pause_seconds:
            await self._look()
            self._looked_local = now
        if now - self._trimmed_local >= TRIM_SECONDS:
            keep_seconds = self.deps.settings.now.metrics.history_hours * HOUR_SECONDS
            if await self.deps.engine.history.trim(keep_seconds, TRIMMED_ROWS) < TRIMMED_ROWS:
                self._trimmed_local = now

    async def _look(self) -> None:
        engine = self.deps.engine
        counts, nodes = await engine.queue.counts(), await engine.nodes.all()
        others = [one for one in nodes if one.is_live and one.id != self.deps.node_id]
        seen = look_of(counts, self.status(), self._news(), others)
        is_quiet = not seen.depth and seen == self._seen
        self._quiet_looks, self._seen = self._quiet_looks + 1 if is_quiet else 0, seen
        self.pause_seconds = self._usual_seconds()
        await engine.history.look(seen._replace(stands_seconds=LATEST * self.pause_seconds))

    def _usual_seconds(self) -> float:
        """Longer only after some quiet looks: what is seen last stands for the time until the next
        look, and a row has the highest of its step.
        """
        is_calm = self._quiet_looks >= QUIET_LOOKS
        return self._resting_seconds() if is_calm else LOOK_SECONDS

    def _resting_seconds(self) -> float:
        if self.idleness.rested_seconds >= REST_AFTER_SECONDS:
            return LOOK_SECONDS_RESTING
        if self.idleness.state is IdleState.LISTENING:
            return LOOK_SECONDS_LISTENING
        return LOOK_SECONDS

    async def wait(self, seconds: float) -> None:
        """Ends early when something happens after a rest, but not at once after a look."""
        await self._bell.wait(seconds)
        if self._bell.is_rung:
            await trio.sleep_until(self._looked_local + SOONEST * LOOK_SECONDS)
        self._bell.clear()

    def _end_rest(self, move: Move) -> None:
        if self.pause_seconds > LOOK_SECONDS and move.after is IdleState.ACTIVE:
            self.pause_seconds = LOOK_SECONDS
            self._bell.ring()

    def _news(self) -> Sequence[Decision]:
        """The decisions since the last look, or else the last of all."""
        known = self.decisions()
        new = [one for one in known if one.at > self._decided_at]
        if known:
            self._decided_at = known[-1].at
        return new or known[-1:]


def look_of(
    counts: Counts, own: TenantStatus, news: Sequence[Decision], others: Sequence[NodeRecord]
) -> QueueLook:
    """The highest that was seen since the last look; of the other nodes, what they said last."""
    depth = max([counts.due, *(one.due for one in news if one.due is not None)])
    wish = max([one.raw_wish for one in news if one.raw_wish is not None], default=0)
    size = max([own.idle + own.busy, *(one.size_before for one in news)])
    return QueueLook(
        depth=depth,
        oldest_seconds=counts.oldest_due_seconds,
        crew=size + sum(one.crew for one in others),
        wish=wish + sum(one.wish or 0 for one in others),
        max_count=own.max_count + sum(one.max_count for one in others),
        stands_seconds=LOOK_SECONDS,
    )
