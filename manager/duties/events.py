"""Keeps the log of events: in order where nobody reads it, and within its time."""

from __future__ import annotations

import random
from collections.abc import Callable

import attrs
import trio

from musterd.config.live import LiveSettings
from musterd.manager.duties.duty import rest_after
from musterd.store.errors import StoreError
from musterd.store.events import ORDERED_AT_ONCE, EventLog
from musterd.store.waiting import Bell

ORDER_SECONDS = 3.0  # after something has happened
ORDER_SECONDS_OTHERS = 30.0  # after something has happened here, while another has the duty
TRIM_SECONDS = 60.0
RESTED_TRIM_SECONDS = 3600.0  # where nothing has happened since
TRIMMED_ROWS = 1_000  # at once
HOUR_SECONDS = 3_600.0


@attrs.define(eq=False)
class EventKeeper:
    """Owned by a tenancy. Puts in order the events of its own node, soon where it has the duty and
    later where another has it, who may know nothing of it; where its node does nothing, it asks
    nothing of the store. To forget what has become too old is the duty, and `trim` one batch of it.
    """

    events: EventLog
    settings: LiveSettings
    rng: random.Random
    is_on_duty: Callable[[], bool] = lambda: True
    _bell: Bell = attrs.field(factory=Bell, init=False)
    _has_grown: bool = attrs.field(default=True, init=False)  # since the last look for old ones
    _newest: int = attrs.field(default=0, init=False)

    def news(self) -> None:
        """This node has done something."""
        self._bell.ring()

    async def run(self) -> None:
        rest_seconds = 0.0
        while True:
            await self._bell.wait()
            pause_seconds = ORDER_SECONDS if self.is_on_duty() else ORDER_SECONDS_OTHERS
            await trio.sleep(max(pause_seconds, rest_seconds))
            self._bell.clear()
            self._has_grown = True
            began = trio.current_time()
            try:
                await self._order()
            except StoreError:  # the engine has logged it
                self._bell.ring()
            rest_seconds = rest_after(trio.current_time() - began)

    async def trim(self) -> int:
        """One batch; gives how many events were forgotten."""
        trimmed = await self.events.trim(self._keep_seconds, TRIMMED_ROWS)
        if trimmed < TRIMMED_ROWS:
            self._has_grown = False
        return trimmed

    def trim_seconds(self) -> float:
        """How long the next look may wait: longer where nothing is added."""
        if self._has_grown:
            return TRIM_SECONDS
        return max(TRIM_SECONDS, min(self._keep_seconds, RESTED_TRIM_SECONDS))

    async def wait(self, seconds: float) -> None:
        """So long, where nothing is added meanwhile."""
        left_seconds = seconds
        while left_seconds > 0:
            await trio.sleep(min(TRIM_SECONDS, left_seconds))
            left_seconds = 0.0 if self._has_grown else left_seconds - TRIM_SECONDS

    @property
    def _keep_seconds(self) -> float:
        return self.settings.now.events.keep_hours * HOUR_SECONDS

    async def _order(self) -> None:
        grown = ORDERED_AT_ONCE
        while grown >= ORDERED_AT_ONCE:
            before, self._newest = self._newest, await self.events.order()
            grown = self._newest - before
