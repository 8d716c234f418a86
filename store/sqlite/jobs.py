"""The jobs of an engine on SQLite: enqueued, and read with all that is known of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

import attrs

from musterd.store.errors import InputRefused
from musterd.store.jobs import (
    BRIEF_CHARACTERS,
    JOB_COLUMNS,
    MARGIN_SECONDS,
    AttemptRecord,
    Enqueued,
    JobFilter,
    JobLook,
    JobRecord,
    NewJob,
    job_record,
)
from musterd.store.lifecycle import LEASED, JobState
from musterd.store.phases import PhaseRecord, made_whole
from musterd.store.sqlite import rows
from musterd.store.sqlite.claiming import ClaimOrder, bar
from musterd.store.sqlite.database import Database, Part, called
from musterd.store.sqlite.job_events import About, JobEvents, record_new
from musterd.store.sqlite.logs import LOG_COLUMN, job_log
from musterd.store.sqlite.outbox import webhook_of
from musterd.store.sqlite.rows import ID_MAX
from musterd.store.sqlite.why import why_facts

BRIEF = {
    "payload": "'{}'",
    "result": "null",
    "spent": "null",
    "log": "null",
    "error": "case when length(error) <= 4000 then error when json_valid(error) then"
    " json_object('type', json_extract(error, '$.type'), 'message',"
    f" substr(coalesce(json_extract(error, '$.message'), error), 1, {BRIEF_CHARACTERS}))"
    f" else substr(error, 1, {BRIEF_CHARACTERS}) end",
    "reason": f"substr(reason, 1, {BRIEF_CHARACTERS})",
}
BRIEF_COLUMNS = ", ".join(BRIEF.get(name, name) for name in JOB_COLUMNS)
COLUMNS = ", ".join(LOG_COLUMN if name == "log" else name for name in JOB_COLUMNS)


def enqueue(database: Database, jobs: Sequence[NewJob]) -> list[Enqueued]:
    with database.writing("enqueue") as now:
        return make(database, jobs, now)


def make(database: Database, jobs: Sequence[NewJob], now: int) -> list[Enqueued]:
    """As `enqueue`, within the caller's transaction."""
    maker = _Maker(JobEvents(database, now))
    made = [
        maker.made(job, f"job {number} of {len(jobs)} ({job.kind!r})")
        for number, job in enumerate(jobs, start=1)
    ]
    maker.events.write()
    return made


@attrs.define
class _Maker:
    events: JobEvents
    _bars: dict[str, ClaimOrder] = attrs.field(factory=dict[str, ClaimOrder], init=False)

    def made(self, job: NewJob, which: str) -> Enqueued:
        if job.dedup_key is None:
            return Enqueued(self._insert(job, which), is_new=True)
        holder = self.database.rows("key_holder", {"key": job.dedup_key, "now": self.now})
        if holder:
            return Enqueued(holder[0][0], is_new=False)
        made = self._insert(job, which)
        self.database.execute("take_key", rows.key_of(job, made, self.now))
        return Enqueued(made, is_new=True)

    @property
    def database(self) -> Database:
        return self.events.database

    @property
    def now(self) -> int:
        return self.events.now

    def _insert(self, job: NewJob, which: str) -> int:
        try:
            row = rows.new_job(job, self.now)
            row["behind"] = self._is_behind(job, row["run_at"])
            ((made, priority),) = self.database.rows("enqueue", row)
        except (sqlite3.IntegrityError, UnicodeEncodeError, OverflowError, InputRefused) as error:
            raise InputRefused(f"enqueue: {self.database.where}: {which}: {error}") from error
        record_new(self.events, About(made, job.kind, job.target), row, priority)
        return int(made)

    def _is_behind(self, job: NewJob, run_at: int) -> bool:
        """Whether it is due, but not its turn: then no claim needs to meet it."""
        target = job.target
        if target is None or job.hold or run_at > self.now:
            return False
        if target not in self._bars:
            self._bars[target] = bar(self.database, target).place
        priority = job.priority
        if priority is None:
            ((priority,),) = self.database.rows("priority_of_kind", {"kind": job.kind})
        return ClaimOrder(-priority, run_at, rows.ID_MAX) >= self._bars[target]


def job(database: Database, job_id: int) -> JobRecord | None:
    if abs(job_id) > ID_MAX:
        return None
    with database.reading("reading a job"):
        return next(iter(jobs_of(database, [job_id])), None)


def record(database: Database, job_id: int) -> JobRecord:
    """A job that is there, as part of a transaction."""
    (found,) = jobs_of(database, [job_id])
    return found


def look(database: Database, which: JobFilter) -> JobLook:
    with database.reading("listing jobs"):
        walks = _walked(database, which)
        ends = [at for walk in walks for at in walk if at.nth == which.looked_max]
        through = max(ends, key=attrgetter("id"), default=None)
        if through is not None:
            walks = [[at for at in walk if at.id >= through.id] for walk in walks]
        ids = sorted((at.id for walk in walks for at in walk if at.fits), reverse=True)
        found = jobs_of(database, ids[: which.limit])
    looked = sum(max((at.nth for at in walk), default=0) for walk in walks)
    if found and len(found) == which.limit:
        return JobLook(found, found[-1].id, found[-1].created_at, looked)
    if through is None:
        return JobLook(found, None, None, looked)
    return JobLook(found, through.id, rows.moment_at(through.created_at), looked)


def find(database: Database, which: JobFilter) -> list[JobRecord]:
    return look(database, which).jobs


class _Met(NamedTuple):
    """A job that a walk came by: one that fits, or its last."""

    id: int
    fits: int
    nth: int
    created_at: int


def _walked(database: Database, which: JobFilter) -> list[list[_Met]]:
    """Along the index of each state that has one; else along the key."""
    walks = list(_walks(database, which))
    below, first = _reach(database, which)
    params = {
        "kind": which.kind,
        "target": which.target,
        "key": which.dedup_key,
        "error": which.error,
        "since": None if which.since is None else rows.stamp(which.since),
        "until": None if which.until is None else rows.stamp(which.until),
        "by_end": which.by_end,
        "before": below,
        "first": first,
        "span": which.looked_max,
    }
    found = [
        database.execute_filled(
            "look_through", params, source=walk[0], which=walk[1], states=walk[2]
        )
        for walk in walks
    ]
    return [[_Met(*row) for row in cursor.fetchall()] for cursor in found]


JOBS = "job_rows"
LINE = (
    ("job_rows indexed by job_rows_claim", "state = 'queued' and parked = 0 and behind = 0"),
    ("job_rows indexed by job_rows_parked", "parked = 1 and behind = 0"),
    ("job_rows indexed by job_rows_behind", "behind = 1"),
)


def _walks(database: Database, which: JobFilter) -> Iterator[tuple[str, str, str]]:
    """What is walked through, which jobs that are, and which of them fit. Where queued jobs are
    wanted and the line is short, that is put in order, which spares the walk through all jobs.
    """
    states = {state: f"state = '{JobState(state).value}'" for state in which.states}
    if not states:
        yield JOBS, "true", "true"
    elif which.walks and not (which.lines_up and _is_short(database, which.looked_max)):
        yield JOBS, "true", f"({' or '.join(states.values())})"
    else:
        yield from ((JOBS, states[one], "true") for one in states if one is not JobState.QUEUED)
        if JobState.QUEUED in states:
            yield from ((*part, "true") for part in LINE)


def _is_short(database: Database, most: int) -> bool:
    ((queued,),) = database.rows("count_queued")
    return int(queued) <= most


def _reach(database: Database, which: JobFilter) -> tuple[int, int]:
    """Below which id the walks begin, and at which they end."""
    margin, first = rows.microseconds(MARGIN_SECONDS), 1 - ID_MAX
    below = [ID_MAX if which.before_id is None else min(which.before_id, ID_MAX)]
    if which.until is not None:
        below.append(_first_made_since(database, rows.stamp(which.until) + margin))
    if which.dedup_key is not None:
        below += [row[0] + 1 for row in database.rows("key_of_job", {"key": which.dedup_key})]
    if which.since is not None and not which.by_end:
        first = _first_made_since(database, rows.stamp(which.since) - margin)
    return min(below), max(first, which.after_id + 1 if which.after_id is not None else first)


def _first_made_since(database: Database, moment: int) -> int:
    """Ids follow the times at which jobs are made: by halves."""
    ((low, high),) = database.rows("ids_in_use")
    if low is None:
        return ID_MAX
    while low <= high:
        middle = (low + high) // 2
        ((found, made_at),) = database.rows("made_before", {"id": middle})
        if made_at >= moment:
            high = found - 1
        else:
            low = middle + 1
    return min(int(low), ID_MAX)


def jobs_of(database: Database, ids: Sequence[int]) -> list[JobRecord]:
    """Those of these jobs that are there, newest first."""
    found = database.execute_filled("jobs_of", {"ids": json.dumps(list(ids))}, columns=COLUMNS)
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


def briefs(database: Database, ids: Sequence[int]) -> list[JobRecord]:
    wanted = {"ids": json.dumps(list(ids))}
    with database.reading("reading jobs"):
        found = database.execute_filled("jobs_of", wanted, columns=BRIEF_COLUMNS).fetchall()
        records = [job_record(rows.job_columns(row), ()) for row in found]
        return [
            attrs.evolve(one, phases=_phases(database, one.id, one.state))
            if one.state in LEASED
            else one
            for one in records
        ]


def _past(database: Database, job_id: int) -> list[AttemptRecord]:
    return [rows.attempt_record(row) for row in database.rows("attempts", {"job_id": job_id})]


def _phases(database: Database, job_id: int, state: JobState) -> tuple[PhaseRecord, ...]:
    found = database.rows("phases", {"job_id": job_id})
    return made_whole([rows.phase_record(row) for row in found], state)


def traceparents(database: Database, ids: Sequence[int]) -> Mapping[int, str]:
    with database.reading("reading traces"):
        return dict(database.rows("traceparents", {"ids": json.dumps(list(ids))}))


class SqliteJobs(Part):
    """See `store.jobs.Jobs`."""

    get = called(job)
    look = called(look)
    find = called(find)
    why_facts = called(why_facts)
    log = called(job_log)
    briefs = called(briefs)
    traceparents = called(traceparents)

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[int]:
        return [one.id for one in await self.enqueue_keyed(jobs)]

    async def enqueue_keyed(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        made = await self.call(enqueue, jobs)
        self._hints.ring()
        return made
