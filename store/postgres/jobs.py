"""The jobs of an engine on PostgreSQL: enqueued, and read with all that is known of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from musterd.config.job_options import OPTIONS
from musterd.store.job_log import ATTEMPTS_MAX, LogPage, LogPart, LogPosition, page_of
from musterd.store.jobs import (
    JOB_COLUMNS,
    AttemptRecord,
    Enqueued,
    JobFilter,
    JobLook,
    JobRecord,
    NewJob,
    job_record,
)
from musterd.store.lifecycle import LEASED, AttemptOutcome, JobState
from musterd.store.postgres.control import ID_MAX
from musterd.store.postgres.outbox import with_webhooks
from musterd.store.postgres.phases import phases_by_job
from musterd.store.postgres.statements import (
    SNAPSHOT,
    Params,
    Row,
    Run,
    Statements,
    numbers,
    texts,
    words,
)
from musterd.store.postgres.why import read_why_facts
from musterd.store.why_facts import WhyFacts


@attrs.frozen
class PostgresJobs:
    """See `store.jobs.Jobs`."""

    statements: Statements

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[int]:
        if any(job.dedup_key is not None for job in jobs):
            return [one.id for one in await self.enqueue_keyed(jobs)]
        found = await self.statements.run("enqueue", new_job_params(jobs))
        return [row[0] for row in found]

    async def enqueue_keyed(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        found = await self.statements.run("enqueue_keyed", new_job_params(jobs))
        return [Enqueued._make(row) for row in found]

    async def get(self, job_id: int) -> JobRecord | None:
        if abs(job_id) > ID_MAX:  # no column could hold it
            await _nothing()
            return None
        _, records = await self._looked("jobs_of", {"ids": numbers([job_id])}, 0)
        return next(iter(records), None)

    async def find(self, which: JobFilter) -> list[JobRecord]:
        return (await self.look(which)).jobs

    async def look(self, which: JobFilter) -> JobLook:
        ((through_id, through_at, looked, *_), *_), jobs = await self._looked(
            "jobs", filter_params(which), FOUND_BESIDE
        )
        if jobs and len(jobs) == which.limit:
            through_id, through_at = jobs[-1].id, jobs[-1].created_at
        return JobLook(jobs, through_id, through_at, looked)

    async def briefs(self, ids: Sequence[int]) -> list[JobRecord]:
        found = await self.statements.run("briefs", {"ids": numbers(ids)})
        records = job_records(found, (), ())
        leased = [one.id for one in records if one.state in LEASED]
        if not leased:
            return records
        phases = await self.statements.run("phases", {"ids": numbers(leased)})
        return job_records(found, (), phases)

    async def traceparents(self, ids: Sequence[int]) -> Mapping[int, str]:
        return dict(await self.statements.run("traceparents", {"ids": numbers(ids)}))

    async def why_facts(self, job_id: int) -> WhyFacts | None:
        with self.statements.limit("standing"):
            async with self.statements.shared.use("asking why") as conn:
                return await read_why_facts(conn, self.statements.sql, job_id)

    async def log(self, job_id: int, after: LogPosition) -> LogPage | None:
        if abs(job_id) > ID_MAX:
            await _nothing()
            return None
        wanted = {**after._asdict(), "id": job_id, "bound": ATTEMPTS_MAX}
        found = await self.statements.run("job_log", wanted)
        if not found:
            return None
        parts = [LogPart(*row[1:]) for row in found if row[1] is not None]
        return page_of(JobState(found[0][0]), parts, after)

    async def whole(self, found: Sequence[Row], run: Run) -> list[JobRecord]:
        """The records of jobs' rows; what is further asked goes through `run`."""
        ids = id_params(found)
        past, phases = await run("attempts", ids), await run("phases", ids)
        records = job_records(found, past, phases)
        return with_webhooks(records, await run("webhooks_of", ids))

    async def _looked(
        self, name: str, params: Params, beside: int
    ) -> tuple[list[Row], list[JobRecord]]:
        """The rows of a statement, and the records of the jobs in them, behind so many columns; as
        they were at one moment.
        """
        with self.statements.limit("jobs"):
            async with self.statements.shared.use("jobs") as conn:

                async def run(name: str, params: Params) -> list[Row]:
                    return await (await self.statements.send(conn, name, params)).fetchall()

                async with conn.pipeline():
                    await conn.execute(SNAPSHOT)
                    found = await run(name, params)
                    jobs = [row[beside:] for row in found if row[beside] is not None]
                    records = await self.whole(jobs, run)
                    await conn.execute(b"commit")
        return found, records


FOUND_BESIDE = 3  # columns of `jobs` before those of a job


async def _nothing() -> None:
    from trio.lowlevel import checkpoint  # noqa: PLC0415 - clients load this without Trio

    await checkpoint()


def new_job_params(jobs: Sequence[NewJob]) -> Params:
    """An array for the kind, and one for each option, under its name."""
    arrays = {"kind": texts(job.kind for job in jobs)}
    for option in OPTIONS:
        values = [getattr(job, option.name) for job in jobs]
        if option.type.sql in ("integer", "float8", "boolean"):
            arrays[option.name] = numbers(values)
        else:
            arrays[option.name] = texts([None if one is None else str(one) for one in values])
    return arrays


def filter_params(which: JobFilter) -> Params:
    return {
        "states": words(which.states) if which.states else None,
        "walks": which.walks,
        "lines_up": which.lines_up,
        "resting": words(which.resting),
        "kind": which.kind,
        "before_id": which.before_id,
        "after_id": which.after_id,
        "target": which.target,
        "dedup_key": which.dedup_key,
        "error": which.error,
        "since": which.since,
        "until": which.until,
        "by_end": which.by_end,
        "span": which.looked_max,
        "bound": which.limit,
    }


def id_params(found: Iterable[Row]) -> Params:
    return {"ids": numbers(row[0] for row in found)}


def job_records(
    found: Sequence[Row], past: Sequence[Row], phases: Sequence[Row]
) -> list[JobRecord]:
    """`past` are their earlier attempts, `phases` their phases."""
    records = [
        job_record(
            dict(zip(JOB_COLUMNS, row, strict=True)),
            [_attempt_record(one) for one in past if one[0] == row[0]],
        )
        for row in found
    ]
    by_job = phases_by_job(phases, {record.id: record.state for record in records})
    return [
        attrs.evolve(record, phases=by_job[record.id]) if record.id in by_job else record
        for record in records
    ]


def _attempt_record(row: Row) -> AttemptRecord:
    _job_id, attempt, node, worker, started_at, finished_at, outcome, error, log = row
    return AttemptRecord(
        attempt, node, worker, started_at, finished_at, AttemptOutcome(outcome), error, log
    )
