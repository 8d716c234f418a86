"""Values to parameters and rows to values; times to and from whole microseconds. No decisions."""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate, chain, repeat
from typing import Any, NamedTuple
from uuid import UUID

import attrs

from musterd.store.errors import InputRefused
from musterd.store.jobs import JOB_COLUMNS, AttemptRecord, JobRecord, NewJob
from musterd.store.leases import Claim, ProgressNote, Settlement, Successes
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.phases import PhaseRecord, PhaseState

Params = Mapping[str, Any]
Row = tuple[Any, ...]

ID_MAX = 2**63 - 1
SECOND = 1_000_000  # microseconds
FOREVER = ID_MAX
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
TIME_FIRST, TIME_LAST = -62_135_596_800 * SECOND, 253_402_300_800 * SECOND - 1
# The clock may have been put back since a job was made. One that seems to be made later than this
# is taken for one that is made now: somebody changed its row.
MADE_AHEAD = 86_400 * SECOND
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIMES = tuple(one.name for one in attrs.fields(JobRecord) if "datetime" in str(one.type))


def microseconds(seconds: float) -> int:
    """Raises `InputRefused` for what is no finite number."""
    if not math.isfinite(seconds):
        raise InputRefused(f"found {seconds} seconds, wanted a finite number")
    return round(seconds * SECOND)


def moment(at: int | None) -> datetime | None:
    return None if at is None else moment_at(at)


def moment_at(at: Any) -> datetime:
    """Of a row whose checks somebody went past it may be anything: such a time is read as the first
    or the last that there is, so that it spoils no row beside it.
    """
    try:
        return EPOCH + timedelta(microseconds=at)
    except (TypeError, OverflowError):
        return FIRST if isinstance(at, int | float) and at < 0 else LAST


def stamp(at: datetime) -> int:
    return (at - EPOCH) // timedelta(microseconds=1)


def new_job(job: NewJob, now: int) -> dict[str, Any]:
    return {
        **job._asdict(),
        "now": now,
        "run_at": _due(job, now),
        "state": (JobState.PENDING if job.hold else JobState.QUEUED).value,
    }


def key_of(job: NewJob, job_id: int, now: int) -> Params:
    scope = job.dedup_scope
    if scope == "until_finished":
        until = None
    elif scope == "forever":
        until = FOREVER
    else:
        until = now + microseconds(scope)
    return {"key": job.dedup_key, "job_id": job_id, "until": until}


def _due(job: NewJob, now: int) -> int:
    if job.run_at is None:
        return now + microseconds(job.delay_seconds or 0)
    if job.run_at.tzinfo is None:
        raise InputRefused(f"run_at: found {job.run_at} without a time zone, wanted one with it")
    return stamp(job.run_at)


class Due(NamedTuple):
    """A job that may be claimed."""

    id: int
    kind: str
    payload: str | None  # None = it is long: to be read by itself
    attempt: int
    max_attempts: int | None
    forgiven: int
    run_at: int
    spent: str | None
    priority: int
    target: str | None
    schedule: str | None
    slot: int | None  # of its schedule
    created_at: int


def claims(due: Sequence[Due], workers: Sequence[int], token: UUID, now: int) -> list[Claim]:
    return [
        Claim(
            job.id, job.kind, job.payload or "", job.attempt + 1, job.max_attempts, job.forgiven,
            max(0, now - job.run_at) / SECOND, worker, token, job.spent, job.target, job.schedule,
            moment(job.slot), _claimed_at(job, now) / SECOND,
        )
        for job, worker in zip(due, chain(workers, repeat(None)), strict=False)
    ]  # fmt: skip


def _claimed_at(job: Due, now: int) -> int:
    return max(now, job.created_at) if job.created_at < now + MADE_AHEAD else now


def claim(row: Row, token: UUID) -> Claim:
    *fields, waited, worker, spent, target, schedule, slot, claimed_at = row
    waited_seconds = max(0, waited) / SECOND
    rest = (waited_seconds, worker, token, spent, target, schedule, moment(slot))
    return Claim._make((*fields, *rest, claimed_at / SECOND, None))


def listed(stored: bytes) -> list[Any]:
    """A JSON list that SQLite made of rows. One value crosses for less than rows cost while other
    threads run, because each row would ask for the interpreter lock. Bytes that are no text come
    out as in `store.sqlite.database`.
    """
    found: list[Any] = json.loads(stored.decode("utf-8", ESCAPED))
    return found


def _escaped(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    wrong = error.object[error.start : error.end]
    return "".join(f"\\\\x{byte:02x}" for byte in wrong), error.end


ESCAPED = "musterd.sqlite.escaped"
codecs.register_error(ESCAPED, _escaped)


def successes(ended: Successes) -> Params:
    """Columns: tokens one behind the other, numbers of one width, and of the results where each
    stands in a text of all of them.
    """
    known = {number: one.bytes for number, one in {id(one): one for one in ended.tokens}.items()}
    starts, ends = (
        _column([round(one * SECOND) for one in moments])
        for moments in (ended.started_epochs, ended.ended_epochs)
    )
    columns = {
        "ids": json.dumps(ended.ids),
        "tokens": b"".join(map(known.__getitem__, map(id, ended.tokens))),
        "workers": _column(ended.workers),
        "starts": starts,
        "ends": ends,
    }
    if not any(ended.results):
        return {**columns, "results": None, "places": None, "sizes": None}
    texts = [(one or "").encode() for one in ended.results]
    sizes = [
        -1 if one is None else len(text) for one, text in zip(ended.results, texts, strict=True)
    ]
    places = _column([0, *accumulate(map(len, texts))][:-1])
    return {**columns, "results": b"".join(texts), "places": places, "sizes": _column(sizes)}


def _column(numbers: Sequence[int]) -> bytes:
    return ("%20d" * len(numbers) % tuple(numbers)).encode()


def settlement(ended: Settlement, now: int) -> dict[str, Any]:
    """With how far the attempt came, where that is not yet written."""
    delay, phase = ended.delay_seconds, ended.phase
    return {
        **ended._asdict(),
        **settlement_key(ended),
        "run_at": None if delay is None else now + microseconds(delay),
        "started_at": at(ended.started_epoch),
        "finished_at": at(ended.ended_epoch),
        "phase": phase.name if phase else None,
        "phase_percent": phase.progress if phase else None,
    }


def progress_note(note: ProgressNote) -> Params:
    return {**note._asdict(), "token": note.token.bytes}


def settlement_key(ended: Settlement) -> dict[str, Any]:
    return {
        "id": ended.id,
        "token": ended.token.bytes,
        "attempt": ended.attempt,
        "state": ended.state.value,
        "outcome": ended.outcome.value,
    }


def at(epoch: float | None) -> int | None:
    return None if epoch is None else microseconds(epoch)


def job_columns(row: Row) -> dict[str, Any]:
    """The columns of a job's row by their names."""
    columns = dict(zip(JOB_COLUMNS, row, strict=True))
    return {**columns, **{name: moment(columns[name]) for name in TIMES}}


def attempt_record(row: Row) -> AttemptRecord:
    attempt, node, worker, started_at, finished_at, outcome, error, log = row
    times = moment(started_at), moment(finished_at)
    return AttemptRecord(attempt, node, worker, *times, AttemptOutcome(outcome), error, log)


def phase_record(row: Row) -> PhaseRecord:
    name, state, progress, result, attempts, started_at, finished_at = row
    times = moment(started_at), moment(finished_at)
    return PhaseRecord(name, PhaseState(state), progress or 0.0, result, attempts, *times)
