"""Keeps the log of events in order and within its time, where nobody reads it."""

from __future__ import annotations

import random
from collections.abc import Callable

import attrs
import trio

from musterd.store.errors import StoreError
from musterd.store.events import ORDERED_AT_ONCE, EventLog

ORDER_SECONDS = 3.0  # after something has happened
TRIM_SECONDS = 60.0
RESTED_TRIM_SECONDS = 3600.0  # where nothing has happened since
TRIMMED_ROWS = 1_000  # at once
BUSY_SECONDS = 0.1  # between two batches, where there is more


@attrs.define(eq=False)
class EventKeeper:
    """Owned by a tenancy. Where its node does nothing it asks nothing of the store, but for what
    has become too old.
    """

    events: EventLog
    keep_seconds: Callable[[], float]
    dice: random.Random
    _bell: trio.Event = attrs.field(factory=trio.Event, init=False)
    _has_grown: bool = attrs.field(default=True, init=False)  # since the last look for old ones
    _newest: int = attrs.field(default=0, init=False)

    def news(self) -> None:
        """This node has done something."""
        self._bell.set()

    async def run(self) -> None:
        trim_local = trio.current_time() + TRIM_SECONDS * self.dice.random()
        while True:
            with trio.move_on_at(trim_local):
                await self._bell.wait()
                await trio.sleep(ORDER_SECONDS)
                self._bell, self._has_grown = trio.Event(), True
            try:
                if trio.current_time() < trim_local:
                    await self._order()
                else:
                    trim_local = trio.current_time() + await self._trim()
            except StoreError:  # the store's watcher has told the log
                await trio.sleep(ORDER_SECONDS)

    async def _order(self) -> None:
        grown = ORDERED_AT_ONCE
        while grown >= ORDERED_AT_ONCE:
            before, self._newest = self._newest, await self.events.order()
            grown = self._newest - before

    async def _trim(self) -> float:
        """Gives how long the next time may wait."""
        keep_seconds = self.keep_seconds()
        while await self.events.trim(keep_seconds, TRIMMED_ROWS) >= TRIMMED_ROWS:  # noqa: ASYNC110 - room for others
            await trio.sleep(BUSY_SECONDS)
        has_grown, self._has_grown = self._has_grown, False
        pause = (
            TRIM_SECONDS if has_grown else max(TRIM_SECONDS, min(keep_seconds, RESTED_TRIM_SECONDS))
        )
        return pause * self.dice.uniform(0.9, 1.1)
