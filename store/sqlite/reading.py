"""What only looks. Each function sees one moment of the file throughout."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import attrs

from musterd.store.jobs import JOB_COLUMNS, AttemptRecord, JobFilter, JobRecord, job_record
from musterd.store.leases import Claim, Settlement
from musterd.store.lifecycle import JobState
from musterd.store.nodes import PAUSES_OF_THE_DEAD
from musterd.store.phase_states import made_whole
from musterd.store.phases import PhaseRecord
from musterd.store.queue import (
    BEHIND_BOUND,
    FIRST_BEHIND,
    Counts,
    QueueView,
    SpareCapacity,
    TargetView,
)
from musterd.store.sqlite import rows
from musterd.store.sqlite.database import Database
from musterd.store.sqlite.outbox import webhook_of
from musterd.store.sqlite.rows import ID_MAX

DEPTH_BOUND = 10_000  # due jobs are counted one by one up to here
HALTED_BOUND = 1_000  # and so are halted targets
WAITING = ("not_yet_due", "count_parked", "count_behind")


def claims_under(database: Database, token: UUID) -> list[Claim]:
    with database.reading("reading a claim back"):
        found = database.rows("claims_under", {"token": token.bytes})
    return [rows.claim(row, token) for row in found]


def settled_already(database: Database, settlements: Sequence[Settlement]) -> frozenset[int]:
    with database.reading("reading settlements back"):
        return frozenset(
            one.id
            for one in settlements
            if database.rows("settled_already", rows.settlement_key(one))[0][0]
        )


def observe(database: Database, limit: int, me: UUID | None, leased_max: int | None) -> QueueView:
    with database.reading("observing the queue") as now:
        view = _view(database, limit, now)
        if leased_max is not None:
            leased: int = sum(number for _, number in database.rows("leased_kinds"))
            view = attrs.evolve(view, room=max(0, leased_max - leased))
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


def job(database: Database, job_id: int) -> JobRecord | None:
    if abs(job_id) > ID_MAX:
        return None
    with database.reading("reading a job"):
        found = _page(database, f"id = {job_id:d}", JobFilter(limit=1))
    return found[0] if found else None


def record(database: Database, job_id: int) -> JobRecord:
    """A job that is there, as part of a transaction."""
    (found,) = _page(database, f"id = {job_id:d}", JobFilter(limit=1))
    return found


def jobs(database: Database, which: JobFilter) -> list[JobRecord]:
    # One look a state, each along its own index, and the newest of them all.
    parts = [f"state = '{JobState(state).value}'" for state in which.states] or ["true"]
    with database.reading("listing jobs"):
        found = [record for part in parts for record in _page(database, part, which)]
    return sorted(found, key=lambda record: -record.id)[: which.limit]


def target(database: Database, name: str) -> TargetView | None:
    with database.reading("looking at a target"):
        found = database.rows("target", {"target": name})
        holder = _page(database, f"id = {found[0][0]:d}", JobFilter(limit=1)) if found else []
        if not holder:
            return None
        behind = database.rows("behind", {"target": name, "count": BEHIND_BOUND})
    first = tuple(row[0] for row in behind[:FIRST_BEHIND])
    return TargetView(name, holder[0], bool(found[0][1]), len(behind), first)


def _page(database: Database, which: str, page: JobFilter) -> list[JobRecord]:
    before = ID_MAX if page.before_id is None else min(page.before_id, ID_MAX)
    params = {"before": before, "kind": page.kind, "target": page.target, "count": page.limit}
    found = database.execute_filled("jobs", params, which=which, columns=", ".join(JOB_COLUMNS))
    records = [
        job_record(rows.job_columns(row), _past(database, row[0])) for row in found.fetchall()
    ]
    return [
        attrs.evolve(
            record,
            phases=_phases(database, record.id, record.state),
            webhook=webhook_of(database, record.id),
        )
        for record in records
    ]


def _past(database: Database, job_id: int) -> list[AttemptRecord]:
    return [rows.attempt_record(row) for row in database.rows("attempts", {"job_id": job_id})]


def _phases(database: Database, job_id: int, state: JobState) -> tuple[PhaseRecord, ...]:
    found = database.rows("phases", {"job_id": job_id})
    return made_whole([rows.phase_record(row) for row in found], state)
