"""Where a reader begins: with a snapshot, or where it was."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs
import trio

from musterd.manager.events.feed.source import Source
from musterd.store.queue import Counts

SNAPSHOT_SECONDS = 1.0  # for so long a snapshot serves all who come
ASKING_MAX = 4  # readers that ask the store where they may go on, at the same time


@attrs.frozen
class Start:
    """Where a reader begins. `counts`: how the queue stood at `position` or later; None = it goes
    on where it was. `gap`: it asked for what the log does not have.
    """

    position: int
    counts: Counts | None = None
    gap: bool = False


@attrs.define(eq=False)
class Entrance:
    """The calls raise `StoreError`."""

    source: Source
    counts: Callable[[], Awaitable[Counts]]
    _snapshot: tuple[float, Start] | None = attrs.field(default=None, init=False)
    _turn: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    _asking: trio.CapacityLimiter = attrs.field(
        factory=lambda: trio.CapacityLimiter(ASKING_MAX), init=False
    )

    async def start_of(self, last_id: int | None) -> Start:
        """Where somebody begins who has got all up to `last_id`; None = who comes for the first
        time.
        """
        if last_id is None:
            return await self._snapshot_now()
        if self.source.was_lost(last_id):
            return attrs.evolve(await self._snapshot_now(), gap=True)
        if last_id <= self.source.ring.end and self.source.holds(last_id):
            return Start(last_id)
        async with self._asking:
            newest = await self.source.log.order()
            oldest = (await self.source.log.bounds()).oldest
        if max(oldest - 1, 0) <= last_id <= newest:
            return Start(last_id)
        return attrs.evolve(await self._snapshot_now(), gap=True)

    async def _snapshot_now(self) -> Start:
        """The position first: what happens while the queue is counted is told once more."""
        async with self._turn:
            now = trio.current_time()
            if self._snapshot is None or now - self._snapshot[0] >= SNAPSHOT_SECONDS:
                position = await self.source.log.order()
                self._snapshot = now, Start(position, await self.counts())
            return self._snapshot[1]
