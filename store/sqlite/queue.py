"""The queue of an engine on SQLite."""

from __future__ import annotations

from uuid import UUID

from musterd.store.queue import Counts, Hint, QueueView, TargetView
from musterd.store.sqlite import reading, writing
from musterd.store.sqlite.hints import Hints
from musterd.store.sqlite.runner import Call


class SqliteQueue:
    """See `store.queue.Queue`."""

    def __init__(self, call: Call, hints: Hints) -> None:
        self._call, self._hints = call, hints

    async def observe(
        self, limit: int, me: UUID | None = None, leased_max: int | None = None
    ) -> QueueView:
        return await self._call(reading.observe, limit, me, leased_max)

    async def next_due_seconds(self) -> float | None:
        return await self._call(reading.next_due_seconds)

    async def counts(self) -> Counts:
        return await self._call(reading.counts)

    async def target(self, name: str) -> TargetView | None:
        return await self._call(reading.target, name)

    async def pause(self, by: str) -> bool:
        return await self._call(writing.pause_queue, by)

    async def resume(self) -> bool:
        resumed = await self._call(writing.resume_queue)
        self._hints.ring()
        return resumed

    async def wait_for_hint(self) -> Hint:
        return await self._hints.wait()
