"""Lists of jobs for a screen."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from musterd.store.lifecycle import JobState
from musterd.store.overview import (
    COUNTED_MAX,
    ENDS_LOOKED,
    FAILING_KINDS_MAX,
    FAILING_SECONDS,
    NOTE_SHOWN_MAX,
    TARGETS_NAMED,
    TEXT_LENGTH_MAX,
    KindEnds,
    OverviewFilter,
    OverviewJob,
    OverviewView,
    Troubles,
    in_order,
)
from musterd.store.sqlite import rows
from musterd.store.sqlite.database import Database, Part, called

STATE, PARKED, BEHIND = (OverviewJob._fields.index(name) for name in ("state", "parked", "behind"))
TIMES = slice(OverviewJob._fields.index("created_at"), OverviewJob._fields.index("finished_at") + 1)
IN_HAND = "state = 'assigned' or state = 'running'"
QUEUED = (
    ("state = 'queued' and parked = 0 and behind = 0", "priority desc, run_at, id"),
    ("parked = 1", "kind, priority desc, run_at, id"),
    ("behind = 1", "target, priority desc, run_at, id"),
)


def sorts(which: OverviewFilter) -> Iterator[tuple[str, str, str]]:
    """What each look is along, in which order, and what of it is shown."""
    if which.leased:
        yield IN_HAND, "id", "true"
    if JobState.QUEUED in which.states:
        for sort, order in QUEUED:
            yield sort, order, "true"
    for state in which.resting:
        yield f"state = '{JobState(state).value}'", "id desc", "true"
    if JobState.SUCCEEDED in which.states:
        yield "true", "id desc", "state = 'succeeded'"


def jobs(database: Database, which: OverviewFilter) -> OverviewView:
    params = {**attrs.asdict(which), "note": NOTE_SHOWN_MAX, "text": TEXT_LENGTH_MAX}
    with database.reading("listing jobs for a screen") as now:
        found = [
            _job(row)
            for sort, order, shown in sorts(which)
            for row in database.execute_filled(
                "overview", params, which=sort, order=order, shown=shown
            )
        ]
    return OverviewView(rows.moment_at(now), in_order(found, which.states))


def troubles(database: Database) -> Troubles:
    with database.reading("looking for troubles") as now:
        halted = [row[0] for row in database.rows("halted_targets", {"bound": COUNTED_MAX})]
        held = database.rows("oldest_in_hand", {"bound": COUNTED_MAX})
        failing = tuple(_failing(database, now))
    started = [(at, job_id, kind) for job_id, kind, at, _ in held if at is not None]
    late = sum(ends < now for *_, ends in held)
    first = tuple(halted[:TARGETS_NAMED])
    if not started:
        return Troubles(len(halted), first, None, None, None, late, failing)
    at, job_id, kind = min(started)
    seconds = (now - at) / rows.SECOND
    return Troubles(len(halted), first, job_id, kind, seconds, late, failing)


def _failing(database: Database, now: int) -> Iterator[KindEnds]:
    """From one kind of which jobs have failed to the next."""
    params = {"since": now - rows.microseconds(FAILING_SECONDS), "count": ENDS_LOOKED}
    for (kind,) in database.rows("failed_kinds", {"count": FAILING_KINDS_MAX}):
        ((failed, ended),) = database.rows("last_ends", {"kind": kind, **params})
        if failed:
            yield KindEnds(kind, failed, ended)


def _job(row: rows.Row) -> OverviewJob:
    columns = list(row)
    columns[STATE] = JobState(columns[STATE])
    columns[TIMES] = map(rows.moment, columns[TIMES])
    columns[PARKED], columns[BEHIND] = bool(columns[PARKED]), bool(columns[BEHIND])
    return OverviewJob(*columns)


class SqliteOverview(Part):
    """See `store.overview` for what each method promises."""

    jobs = called(jobs)
    troubles = called(troubles)
