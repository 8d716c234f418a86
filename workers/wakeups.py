"""What tells the desk to look before its next poll: hints from the store, and the next due time.
Both may fail; polling is the truth.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import attrs
import trio

from musterd.store.engine import Engine
from musterd.store.errors import StoreError
from musterd.store.waiting import Bell
from musterd.workers.claiming.desk import Desk
from musterd.workers.leases import LeaseKeeper

DEAF_SECONDS = 1.0  # after the source of hints broke
ALARM_SECONDS_MAX = 3600.0


async def listen(
    engine: Engine,
    desk: Desk,
    leases: LeaseKeeper,
    duties_free: Callable[[], None],
    rng: random.Random,
) -> None:
    """Passes the store's hints on, for ever."""
    while True:
        try:
            hint = await engine.queue.wait_for_hint()
        except StoreError:  # the store's own watcher has told the log
            desk.poll()  # until hints come again
            await trio.sleep(DEAF_SECONDS * rng.uniform(0.5, 1.5))
        else:
            leases.ask(hint.requests)
            if hint.new_work:
                desk.hint()
            if hint.duties:
                duties_free()


@attrs.define(eq=False)
class Alarm:
    """Rings when the next delayed job becomes due. Set anew each time the queue runs dry."""

    engine: Engine
    desk: Desk
    _set: Bell = attrs.field(factory=Bell, init=False)

    def set(self) -> None:
        self._set.ring()

    async def run(self) -> None:
        while True:
            await self._set.wait()
            self._set.clear()
            try:
                seconds = await self.engine.queue.next_due_seconds()
            except StoreError:
                continue  # polling finds the job
            if seconds is None:
                continue
            if await self._set.wait(min(seconds, ALARM_SECONDS_MAX)):
                continue
            self.desk.hint()
