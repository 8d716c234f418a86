"""The queue as a whole, read along the index that claims walk."""

from __future__ import annotations

from contextlib import suppress
from uuid import UUID

import attrs
import trio

from musterd.store.errors import StoreUnavailable
from musterd.store.lifecycle import JobState
from musterd.store.nodes import PAUSES_OF_THE_DEAD
from musterd.store.postgres.claiming import Claimer, Marks, marks_of, start_params
from musterd.store.postgres.duties import PostgresDuties
from musterd.store.postgres.hints import Hints
from musterd.store.postgres.jobs import PostgresJobs
from musterd.store.postgres.statements import Numbered, Params, Row, Statements
from musterd.store.queue import (
    BEHIND_BOUND,
    FIRST_BEHIND,
    LINE_MAX,
    Counts,
    Hint,
    IdleCheck,
    Line,
    QueueView,
    SpareCapacity,
    TargetView,
    Waiting,
)

DEPTH_BOUND = 10_000  # jobs are counted one by one up to here


@attrs.define
class PostgresQueue:
    """See `store.queue.Queue`."""

    statements: Statements
    jobs: PostgresJobs
    duties: PostgresDuties
    claimer: Claimer
    hints: Hints
    _channel: str | None = attrs.field(default=None, init=False)

    async def observe(
        self,
        limit: int,
        me: UUID | None = None,
        leased_max: int | None = None,
        horizon_seconds: float | None = None,
    ) -> QueueView:
        marks = self.claimer.marks
        if marks.wants_full_walk:
            ((firsts, walked),) = await self.statements.run("first_places", {})
            marks.note_full_walk(marks_of(firsts), int(walked))
        params: dict[str, object] = {
            "bound": limit,
            "me": me,
            "pauses": PAUSES_OF_THE_DEAD,
            "most": leased_max,
        }
        if horizon_seconds is None:
            view = _queue_view(await self._walk("observe", params))
        else:
            params |= {"horizon": horizon_seconds, "rows": LINE_MAX}
            view = _view_with_line(await self._walk("observe_line", params))
        if view.parked:
            self.claimer.expect_limits()
        return view

    async def next_due_seconds(self) -> float | None:
        seconds: float | None = (await self._walk("next_due", {}))[0]
        return seconds

    async def counts(self) -> Counts:
        with suppress(StoreUnavailable):  # full or read-only: what is not folded is summed up
            await self.duties.fold_counts()
        counted = (await self.statements.run("counts", {}))[0]
        view = await self.observe(DEPTH_BOUND)
        # Queued jobs that are not yet due, parked or behind a target.
        waiting: int = (await self._walk("not_yet_due", {"bound": DEPTH_BOUND}))[0]
        return _beyond_bound(_counts(counted, view), waiting, DEPTH_BOUND)

    async def waiting_kinds(self, bound: int) -> dict[str, int]:
        start = start_params(self.claimer.marks.for_walk())
        return dict(await self.statements.run("waiting_kinds", {"bound": bound, **start}))

    async def work_ahead(self, horizon_seconds: float) -> int:
        params = {"horizon": horizon_seconds}
        number: int = (await self.statements.run("work_ahead", params))[0][0]
        return number

    async def target(self, name: str) -> TargetView | None:
        params = {"target": name, "bound": BEHIND_BOUND, "shown": FIRST_BEHIND}
        found = await self.statements.run("target", params)
        holder = await self.jobs.get(found[0][0]) if found else None
        if holder is None:
            return None
        _, reserved, behind, first_behind = found[0]
        return TargetView(name, holder, reserved, behind, tuple(first_behind))

    async def pause(self, by: str) -> bool:
        return await self.statements.execute("pause_queue", {"by": by}) > 0

    async def resume(self) -> bool:
        return await self.statements.execute("resume_queue", {}) > 0

    async def wait_for_hint(self) -> Hint:
        if (channel := self._channel) is None:
            ((channel,),) = await self.statements.run("hint_channel", {})
            self._channel = channel
        return await self.hints.wait(channel)

    def hear_no_more(self) -> None:
        if self._channel is not None:
            self.hints.forget(self._channel)

    async def _walk(self, name: str, params: Params) -> Row:
        """The one row of a statement that walks the index and claims nothing; begins at marks."""
        start = self.claimer.marks.for_walk()
        return (await self.statements.run(name, {**params, **start_params(start)}))[0]


@attrs.frozen
class PostgresIdleChecks:
    """See `store.idle_check` for what each method promises."""

    hints: Hints
    statement: Numbered
    marks: Marks

    async def check(self, me: UUID) -> IdleCheck | None:
        if self.marks.hide_jobs:  # a full walk is dear, and one that may miss a job proves nothing
            await trio.lowlevel.checkpoint()
            return None
        found = await self.hints.ask(self.statement, {"me": me})
        return IdleCheck(*found[0]) if found else None


def _queue_view(row: Row) -> QueueView:
    due, oldest_due_seconds, paused, parked, *others, lot, room = row
    return QueueView(
        due, max(0.0, oldest_due_seconds), paused, parked, SpareCapacity(*others), lot, room
    )


def _view_with_line(row: Row) -> QueueView:
    *view, kinds, sizes, last_ids, waited, unseen = row
    columns = (column or () for column in (kinds, sizes, last_ids, waited))
    waiting = [Waiting(*stretch) for stretch in zip(*columns, strict=True)]
    return attrs.evolve(_queue_view(tuple(view)), line=Line(waiting, unseen))


COUNTED = (
    JobState.PENDING,
    JobState.QUEUED,
    JobState.ASSIGNED,
    JobState.RUNNING,
    JobState.PAUSED,
    JobState.SUCCEEDED,
    JobState.FAILED,
    JobState.CANCELED,
)


def _counts(row: Row, view: QueueView) -> Counts:
    enqueued, *by_state, paused_at, paused_by, targets_halted = row
    return Counts(
        by_state=dict(zip(COUNTED, by_state, strict=True)),
        enqueued_total=enqueued,
        due=view.due,
        oldest_due_seconds=view.oldest_due_seconds,
        paused_at=paused_at,
        paused_by=paused_by,
        targets_halted=targets_halted,
    )


def _beyond_bound(counts: Counts, waiting: int, bound: int) -> Counts:
    """What is due, where it was counted up to a bound only: what is queued and does not wait."""
    if counts.due < bound or waiting >= bound:
        return counts
    return attrs.evolve(counts, due=max(counts.due, counts.by_state[JobState.QUEUED] - waiting))
