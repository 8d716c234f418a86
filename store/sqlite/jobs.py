"""The jobs of an engine on SQLite: enqueued, and read with all that is known of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence

import attrs

from musterd.store.errors import InputRefused
from musterd.store.jobs import (
    JOB_COLUMNS,
    AttemptRecord,
    Enqueued,
    JobFilter,
    JobRecord,
    NewJob,
    job_record,
)
from musterd.store.lifecycle import JobState
from musterd.store.phases import PhaseRecord, made_whole
from musterd.store.sqlite import rows
from musterd.store.sqlite.claiming import ClaimOrder, bar
from musterd.store.sqlite.database import Database, Part, called
from musterd.store.sqlite.job_events import About, JobEvents, record_new
from musterd.store.sqlite.logs import LOG_COLUMN, job_log
from musterd.store.sqlite.outbox import webhook_of
from musterd.store.sqlite.rows import ID_MAX
from musterd.store.sqlite.why import why_facts

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
        found = read_page(database, f"id = {job_id:d}", JobFilter(limit=1))
    return found[0] if found else None


def record(database: Database, job_id: int) -> JobRecord:
    """A job that is there, as part of a transaction."""
    (found,) = read_page(database, f"id = {job_id:d}", JobFilter(limit=1))
    return found


def jobs(database: Database, which: JobFilter) -> list[JobRecord]:
    # One look a state, each along its own index, and the newest of them all.
    parts = [f"state = '{JobState(state).value}'" for state in which.states] or ["true"]
    with database.reading("listing jobs"):
        found = [record for part in parts for record in read_page(database, part, which)]
    return sorted(found, key=lambda record: -record.id)[: which.limit]


def read_page(database: Database, which: str, page: JobFilter) -> list[JobRecord]:
    before = ID_MAX if page.before_id is None else min(page.before_id, ID_MAX)
    params = {"before": before, "kind": page.kind, "target": page.target, "count": page.limit}
    found = database.execute_filled("jobs", params, which=which, columns=COLUMNS)
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


def traceparents(database: Database, ids: Sequence[int]) -> Mapping[int, str]:
    with database.reading("reading traces"):
        return dict(database.rows("traceparents", {"ids": json.dumps(list(ids))}))


class SqliteJobs(Part):
    """See `store.jobs.Jobs`."""

    get = called(job)
    find = called(jobs)
    why_facts = called(why_facts)
    log = called(job_log)
    traceparents = called(traceparents)

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[int]:
        return [one.id for one in await self.enqueue_keyed(jobs)]

    async def enqueue_keyed(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        made = await self.call(enqueue, jobs)
        self._hints.ring()
        return made
