"""The queue of an engine on SQLite: observed, counted, paused; and what a target is about."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from uuid import UUID

import attrs

from musterd.store.lifecycle import JobState
from musterd.store.nodes import PAUSES_OF_THE_DEAD
from musterd.store.queue import (
    BEHIND_BOUND,
    FIRST_BEHIND,
    LINE_MAX,
    WORK_BOUND,
    Counts,
    Hint,
    Line,
    QueueView,
    SpareCapacity,
    TargetView,
    Waiting,
)
from musterd.store.sqlite import rows
from musterd.store.sqlite.database import Database, Part, answers, called
from musterd.store.sqlite.jobs import jobs_of

DEPTH_BOUND = 10_000  # due jobs are counted one by one up to here
HALTED_BOUND = 1_000  # and so are halted targets
WAITING = ("not_yet_due", "count_parked", "count_behind")


def observe(
    database: Database,
    limit: int,
    me: UUID | None = None,
    leased_max: int | None = None,
    horizon_seconds: float | None = None,
) -> QueueView:
    with database.reading("observing the queue") as now:
        view = _view(database, limit, now)
        if leased_max is not None:
            leased: int = sum(number for _, number in database.rows("leased_kinds"))
            view = attrs.evolve(view, room=max(0, leased_max - leased))
        if horizon_seconds is not None:
            view = attrs.evolve(view, line=_line(database, horizon_seconds, now))
        if me is None:
            return view
        params = {"me": me.bytes, "now": now, "pauses": rows.microseconds(PAUSES_OF_THE_DEAD)}
        (row,) = database.rows("others", params)
    return attrs.evolve(view, others=SpareCapacity(*row))


def _view(database: Database, limit: int, now: int) -> QueueView:
    due, oldest = 0, now
    for priority, run_at in database.execute("due_priorities", {"now": now}):
        if due >= limit:
            break
        wanted = {"priority": priority, "now": now, "count": limit - due}
        due += database.rows("observe", wanted)[0][0]
        oldest = min(oldest, run_at)
    paused_at = database.rows("queue_state")[0][0]
    parked = database.rows("count_parked", {"count": 1})[0][0] > 0
    waits = (now - oldest) / rows.SECOND
    return QueueView(due, waits, paused_at is not None, parked, lot=oldest if due else 0)


def _line(database: Database, horizon_seconds: float, now: int) -> Line:
    until = now + rows.microseconds(horizon_seconds)
    found: list[tuple[int, str, int]] = []
    for priority, _ in database.execute("due_priorities", {"now": until}):
        wanted = {"priority": priority, "until": until, "count": LINE_MAX - len(found)}
        found += database.rows("line", wanted)
    alike = [(key, list(jobs)) for key, jobs in groupby(found, lambda row: (row[1], row[2]))]
    waiting = [
        Waiting(kind, len(jobs), jobs[-1][0], (now - run_at) / rows.SECOND)
        for (kind, run_at), jobs in alike
    ]
    if len(found) < LINE_MAX:
        return Line(waiting)
    number: dict[str, int] = dict(database.rows("counts"))
    return Line(waiting, max(0, number[JobState.QUEUED] - len(found)))


def next_due_seconds(database: Database) -> float | None:
    with database.reading("looking for the next due job") as now:
        run_at = database.rows("next_due", {"now": now})[0][0]
    return None if run_at is None else (run_at - now) / rows.SECOND


def counts(database: Database) -> Counts:
    with database.reading("counting jobs") as now:
        number: dict[str, int] = dict(database.rows("counts"))
        view = _view(database, DEPTH_BOUND, now)
        bound = {"now": now, "count": DEPTH_BOUND}
        waiting = sum(database.rows(name, bound)[0][0] for name in WAITING)
        paused_at, paused_by = database.rows("queue_state")[0]
        targets_halted = database.rows("count_halted", {"count": HALTED_BOUND})[0][0]
    due = view.due
    if due >= DEPTH_BOUND > waiting:
        due = max(due, number[JobState.QUEUED] - waiting)
    return Counts(
        by_state={state: number[state] for state in JobState},
        enqueued_total=number["enqueued"],
        due=due,
        oldest_due_seconds=view.oldest_due_seconds,
        paused_at=rows.moment(paused_at),
        paused_by=paused_by,
        targets_halted=targets_halted,
    )


def waiting_kinds(database: Database, bound: int) -> dict[str, int]:
    with database.reading("looking at the kinds of the first jobs") as now:
        due = _first_kinds(database, "due_kinds", bound, now)
        later = _first_kinds(database, "later_kinds", bound, now)
    return dict(due + later)


def _first_kinds(database: Database, name: str, bound: int, now: int) -> Counter[str]:
    """From one priority to the next."""
    found: Counter[str] = Counter()
    for (priority,) in database.rows("waiting_priorities"):
        wanted = {"priority": priority, "now": now, "count": bound - found.total()}
        found.update(dict(database.rows(name, wanted)))
        if found.total() >= bound:
            break
    return found


def work_ahead(database: Database, horizon_seconds: float) -> int:
    with database.reading("counting the work for nodes") as now:
        until = now + rows.microseconds(horizon_seconds)
        in_hand: int = sum(number for _, number in database.rows("leased_kinds"))
        view = _view(database, WORK_BOUND, until)
        message_due_at = database.rows("next_webhook")[0][0]
    waiting = 0 if view.paused else max(view.due, int(view.parked and not in_hand))
    has_message = message_due_at is not None and message_due_at <= until
    return max(in_hand + waiting, int(has_message))


def target(database: Database, name: str) -> TargetView | None:
    with database.reading("looking at a target"):
        found = database.rows("target", {"target": name})
        holder = jobs_of(database, [found[0][0]]) if found else []
        if not holder:
            return None
        behind = database.rows("behind", {"target": name, "count": BEHIND_BOUND})
    first = tuple(row[0] for row in behind[:FIRST_BEHIND])
    return TargetView(name, holder[0], bool(found[0][1]), len(behind), first)


def pause_queue(database: Database, by: str) -> bool:
    with database.writing("pausing the queue") as now:
        return database.execute("pause_queue", {"now": now, "by": by}).rowcount == 1


def resume_queue(database: Database) -> bool:
    with database.writing("resuming the queue"):
        return database.execute("resume_queue").rowcount == 1


class SqliteQueue(Part):
    """See `store.queue.Queue`."""

    observe = called(observe)
    next_due_seconds = called(next_due_seconds)
    counts = called(counts)
    waiting_kinds = called(waiting_kinds)
    work_ahead = called(work_ahead)
    target = called(target)
    pause = called(pause_queue)

    async def resume(self) -> bool:
        resumed = await self.call(resume_queue)
        self._hints.ring()
        return resumed

    async def wait_for_hint(self) -> Hint:
        return await self._hints.wait()


class SqliteIdleChecks(Part):
    """See `store.queue.IdleChecks`. A writer of the file rings after its commit, or never."""

    check = answers(None)
