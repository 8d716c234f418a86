"""The jobs of an engine on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import trio

from musterd.store.jobs import Enqueued, JobFilter, JobRecord, NewJob
from musterd.store.postgres import rows, selecting, standing
from musterd.store.postgres.outbox import with_webhooks
from musterd.store.postgres.parts import Run, Statements
from musterd.store.postgres.records import job_records
from musterd.store.standing import Standing


@attrs.frozen
class PostgresJobs:
    """See `store.jobs.Jobs`."""

    statements: Statements

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[int]:
        if any(job.dedup_key is not None for job in jobs):
            return [one.id for one in await self.enqueue_keyed(jobs)]
        found = await self.statements.run("enqueue", rows.new_jobs(jobs))
        return [row[0] for row in found]

    async def enqueue_keyed(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        found = await self.statements.run("enqueue_keyed", rows.new_jobs(jobs))
        return [Enqueued._make(row) for row in found]

    async def get(self, job_id: int) -> JobRecord | None:
        if abs(job_id) > selecting.ID_MAX:  # no column could hold it
            await trio.lowlevel.checkpoint()
            return None
        return next(iter(await self._records(rows.one_job(job_id))), None)

    async def find(self, which: JobFilter) -> list[JobRecord]:
        return await self._records(rows.job_filter(which))

    async def why_facts(self, job_id: int) -> Standing | None:
        with self.statements.limit("standing"):
            async with self.statements.shared.use("asking why") as conn:
                return await standing.read_standing(conn, self.statements.sql, job_id)

    async def whole(self, found: Sequence[rows.Row], run: Run) -> list[JobRecord]:
        """The records of jobs' rows; what is further asked goes through `run`."""
        ids = rows.job_ids(found)
        past, phases = await run("attempts", ids), await run("phases", ids)
        records = job_records(found, past, phases)
        return with_webhooks(records, await run("webhooks_of", ids))

    async def _records(self, params: rows.Params) -> list[JobRecord]:
        run = self.statements.run
        return await self.whole(await run("jobs", params), run)
