"""The jobs of an engine on SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from musterd.store.jobs import Enqueued, JobFilter, JobRecord, NewJob
from musterd.store.sqlite import reading, standing, writing
from musterd.store.sqlite.hints import Hints
from musterd.store.sqlite.runner import Call
from musterd.store.why_facts import WhyFacts


class SqliteJobs:
    """See `store.jobs.Jobs`."""

    def __init__(self, call: Call, hints: Hints) -> None:
        self._call, self._hints = call, hints

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[int]:
        return [one.id for one in await self.enqueue_keyed(jobs)]

    async def enqueue_keyed(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        made = await self._call(writing.enqueue, jobs)
        self._hints.ring()
        return made

    async def get(self, job_id: int) -> JobRecord | None:
        return await self._call(reading.job, job_id)

    async def find(self, which: JobFilter) -> list[JobRecord]:
        return await self._call(reading.jobs, which)

    async def why_facts(self, job_id: int) -> WhyFacts | None:
        return await self._call(standing.standing, job_id)
