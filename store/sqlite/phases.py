"""The phases of jobs: begun, advanced, and ended with their attempt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from musterd.store.leases import Settlement
from musterd.store.lifecycle import JobState
from musterd.store.phases import (
    PhaseEnd,
    PhaseStart,
    PhaseState,
    PhaseStep,
    Results,
    rounded,
    share_percent,
)
from musterd.store.sqlite import rows
from musterd.store.sqlite.database import Database, Part, called
from musterd.store.sqlite.job_events import About, Held, JobEvents, held, record_start


def begin(database: Database, starts: Sequence[PhaseStart]) -> Mapping[int, Results]:
    begun: dict[int, Results] = {}
    with database.writing("beginning phases") as now:
        events = JobEvents(database, now)
        for start in starts:
            job = held(database, _fence(start))
            if job is not None:
                begun[start.id] = _begin(events, job, start)
        events.write()
    return begun


def _begin(events: JobEvents, job: Held, start: PhaseStart) -> Results:
    database = events.database
    known = {row[0]: row[1:] for row in database.rows("begun_phases", {"job_id": job.id})}
    for name in known.keys() - set(start.names):
        database.execute("forget_phase", {"job_id": job.id, "name": name})
    _place(database, job, start.names)
    finished = {
        name: known[name][1]
        for name in start.names
        if name in known and known[name][0] == PhaseState.SUCCEEDED
    }
    rest = [name for name in start.names if name not in finished]
    if rest:
        _begin_phase(events, job, rest[0])
    started = {
        **_fence(start),
        "worker": start.worker,
        "started_at": rows.at(start.started_epoch),
        "percent": share_percent(len(finished), 0.0, len(start.names)),
    }
    database.execute("mark_running", started)
    if job.state == JobState.ASSIGNED:
        record_start(events, job, start.worker)
    return finished


def advance(database: Database, steps: Sequence[PhaseStep]) -> frozenset[int]:
    taken: set[int] = set()
    with database.writing("advancing phases") as now:
        events = JobEvents(database, now)
        for step in steps:
            job = held(database, _fence(step))
            if job is not None:
                _advance(events, job, step)
                taken.add(step.id)
        events.write()
    return frozenset(taken)


def _advance(events: JobEvents, job: Held, step: PhaseStep) -> None:
    end = PhaseEnd(step.finished, PhaseState.SUCCEEDED, step.result, names=step.names)
    percent = _end_phase(events, job, end)
    if percent is None:
        return  # it was taken before
    _begin_phase(events, job, step.next)
    moved = {**_fence(step), "percent": percent, "spent": step.spent, "now": events.now}
    events.database.execute("move_on", moved)


def settle_phase(events: JobEvents, settlement: Settlement) -> None:
    """How the phase ended in which this attempt does; to be called before that is written."""
    if settlement.phase is None:
        return
    job = held(events.database, _fence(settlement))
    if job is not None:
        _end_phase(events, job, settlement.phase)


def _begin_phase(events: JobEvents, job: Held, name: str) -> None:
    begun = {"job_id": job.id, "name": name, "attempt": job.attempt, "now": events.now}
    events.database.execute("begin_phase", begun)


def _end_phase(events: JobEvents, job: Held, end: PhaseEnd) -> float | None:
    """How far the job has come that way; None = that phase was finished before."""
    ended = {
        "job_id": job.id,
        "name": end.name,
        "state": end.state.value,
        "result": end.result,
        "progress": end.progress,
        "now": events.now,
    }
    if not events.database.execute("end_phase", ended).rowcount:
        if not _restored(events, job, end):
            return None
        events.database.execute("end_phase", ended)
    percent: float = events.database.rows("share_of_phases", {"job_id": job.id})[0][0]
    if end.state is PhaseState.SUCCEEDED:
        data = {"phase": end.name, "progress": 100, "overall": rounded(percent)}
        events.record("job.phase_completed", About(*job[:4]), data)
    return percent


def _restored(events: JobEvents, job: Held, end: PhaseEnd) -> bool:
    """Makes phases known again that a store has lost, as one that was put back in time may have."""
    database = events.database
    known = {row[0] for row in database.rows("begun_phases", {"job_id": job.id})}
    if end.name in known or end.state is not PhaseState.SUCCEEDED:
        return False
    _place(database, job, end.names or (end.name,))
    _begin_phase(events, job, end.name)
    return True


def _place(database: Database, job: Held, names: Sequence[str]) -> None:
    for place, name in enumerate(names, start=1):
        database.execute("place_phase", {"job_id": job.id, "place": place, "name": name})


def _fence(named: PhaseStart | PhaseStep | Settlement) -> rows.Params:
    return {"id": named.id, "token": named.token.bytes}


class SqlitePhases(Part):
    """See `store.phases` for what each method promises."""

    begin = called(begin)
    advance = called(advance)
