"""The queue of an engine on PostgreSQL."""

from __future__ import annotations

from contextlib import suppress
from uuid import UUID

import attrs

from musterd.store.errors import StoreUnavailable
from musterd.store.postgres import rows
from musterd.store.postgres.duties import PostgresDuties
from musterd.store.postgres.hints import Hints
from musterd.store.postgres.jobs import PostgresJobs
from musterd.store.postgres.looking import DEPTH_BOUND, Looking
from musterd.store.postgres.parts import Statements
from musterd.store.queue import BEHIND_BOUND, FIRST_BEHIND, Counts, Hint, QueueView, TargetView


@attrs.frozen
class PostgresQueue:
    """See `store.queue.Queue`."""

    statements: Statements
    jobs: PostgresJobs
    duties: PostgresDuties
    looking: Looking
    hints: Hints
    channel: str

    async def observe(
        self, limit: int, me: UUID | None = None, leased_max: int | None = None
    ) -> QueueView:
        return await self.looking.observe(limit, me, leased_max)

    async def next_due_seconds(self) -> float | None:
        return await self.looking.next_due_seconds()

    async def counts(self) -> Counts:
        with suppress(StoreUnavailable):  # full or read-only: what is not folded is summed up
            await self.duties.fold_counts()
        counted = (await self.statements.run("counts", {}))[0]
        view = await self.observe(DEPTH_BOUND)
        waiting = await self.looking.waiting()
        return rows.beyond_bound(rows.counts(counted, view), waiting, DEPTH_BOUND)

    async def target(self, name: str) -> TargetView | None:
        params = {"target": name, "bound": BEHIND_BOUND, "shown": FIRST_BEHIND}
        found = await self.statements.run("target", params)
        holder = await self.jobs.get(found[0][0]) if found else None
        if holder is None:
            return None
        _, reserved, behind, first_behind = found[0]
        return TargetView(name, holder, reserved, behind, tuple(first_behind))

    async def pause(self, by: str) -> bool:
        return await self.statements.execute("pause_queue", {"by": by}) > 0

    async def resume(self) -> bool:
        return await self.statements.execute("resume_queue", {}) > 0

    async def wait_for_hint(self) -> Hint:
        return await self.hints.wait(self.channel)
