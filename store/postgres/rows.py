"""Values to parameters and rows to values. No decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import attrs

from musterd.config.job_options import OPTIONS
from musterd.store.control import ControlResult
from musterd.store.jobs import JOB_COLUMNS, AttemptRecord, JobFilter, NewJob
from musterd.store.leases import (
    NONE_TURNED,
    Hold,
    ProgressNote,
    Reaped,
    ReapRequest,
    Renewal,
    Settlement,
)
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.postgres.arrays import ages, numbers, texts, tokens, words
from musterd.store.postgres.telling import phases_of
from musterd.store.queue import Counts, QueueView, Room

Params = Mapping[str, Any]
Row = tuple[Any, ...]

_AS_TEXT = frozenset({"payload", "result", "error", "spent"})  # JSON that is decoded elsewhere
SELECTED = ", ".join(f"{name}::text" if name in _AS_TEXT else name for name in JOB_COLUMNS)


def new_jobs(jobs: Sequence[NewJob]) -> Params:
    """An array for the kind, and one for each option, under its name."""
    arrays = {"kind": texts(job.kind for job in jobs)}
    for option in OPTIONS:
        values = [getattr(job, option.name) for job in jobs]
        if option.type.sql in ("integer", "float8", "boolean"):
            arrays[option.name] = numbers(values)
        else:
            arrays[option.name] = texts([None if one is None else str(one) for one in values])
    return arrays


def holds(held: Sequence[Hold], lease_seconds: float, now_local: float) -> Params:
    in_order = sorted(held, key=itemgetter(0))
    return {
        "ids": numbers(hold.id for hold in in_order),
        "tokens": tokens(one.token for one in in_order),
        "workers": numbers(hold.worker for hold in in_order),
        "started_ages": ages([hold.started_local for hold in in_order], now_local),
        "lease_seconds": lease_seconds,
    }


def renewal(found: Sequence[Row]) -> Renewal:
    kept = frozenset(row[0] for row in found)
    return Renewal(kept, {job_id: request for job_id, request in found if request is not None})


def progress_notes(notes: Sequence[ProgressNote]) -> Params:
    in_order = sorted(notes, key=itemgetter(0))
    return {
        "ids": numbers(note.id for note in in_order),
        "tokens": tokens(one.token for one in in_order),
        "percents": numbers(note.percent for note in in_order),
        "notes": texts(note.note for note in in_order),
        "spents": texts(note.spent for note in in_order),
        **phases_of(in_order),
    }


def control_result(row: Row) -> ControlResult:
    found, before, after, requested, allowed = row
    if not found:
        return ControlResult(found, None, None, requested, allowed)
    return ControlResult(found, JobState(before), JobState(after), requested, allowed)


def targets_of(settled: Sequence[Settlement]) -> str | None:
    """In the order in which whoever locks several takes them; None = there are none."""
    found = {one.target for one in settled if one.target is not None}
    return texts(sorted(found)) if found else None


def rejected_and_turned(row: Row | None) -> tuple[frozenset[int], Mapping[int, JobState]]:
    if row is None:
        return frozenset(), NONE_TURNED
    rejected, canceled, paused = row
    if not (canceled or paused):
        return frozenset(rejected), NONE_TURNED
    turned = dict.fromkeys(canceled, JobState.CANCELED) | dict.fromkeys(paused, JobState.PAUSED)
    return frozenset(rejected), turned


def reap_request(request: ReapRequest) -> Params:
    return {
        "batch": request.batch,
        "kinds": texts(request.rules),
        "on_lease_lost": words(rule.on_lease_lost for rule in request.rules.values()),
        "max_attempts": numbers(rule.max_attempts for rule in request.rules.values()),
        "default_on_lease_lost": request.default.on_lease_lost,
        "default_max_attempts": request.default.max_attempts,
    }


def job_filter(which: JobFilter) -> Params:
    return {
        "id": None,
        "states": words(which.states) if which.states else None,
        "kind": which.kind,
        "before_id": which.before_id,
        "target": which.target,
        "bound": which.limit,
    }


def job_ids(found: Iterable[Row]) -> Params:
    return {"ids": numbers(row[0] for row in found)}


def one_job(job_id: int) -> Params:
    return {**job_filter(JobFilter(limit=1)), "id": job_id}


def queue_view(row: Row) -> QueueView:
    due, oldest_due_seconds, paused, parked, *others, lot, room = row
    return QueueView(due, max(0.0, oldest_due_seconds), paused, parked, Room(*others), lot, room)


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


def counts(row: Row, view: QueueView) -> Counts:
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


def beyond_bound(counts: Counts, waiting: int, bound: int) -> Counts:
    """What is due, where it was counted up to a bound only: what is queued and does not wait."""
    if counts.due < bound or waiting >= bound:
        return counts
    return attrs.evolve(counts, due=max(counts.due, counts.by_state[JobState.QUEUED] - waiting))


def reaped(row: Row) -> Reaped:
    job_id, kind, attempt, node, state = row[:5]
    return Reaped(job_id, kind, attempt, node, JobState(state))


def attempt_record(row: Row) -> AttemptRecord:
    _job_id, attempt, node, worker, started_at, finished_at, outcome, error, log = row
    return AttemptRecord(
        attempt, node, worker, started_at, finished_at, AttemptOutcome(outcome), error, log
    )
