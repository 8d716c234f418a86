"""Writes into the log of events what a node does by itself: hirings, decisions, start and end."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

import attrs
import trio

from musterd.manager.log import Log, event
from musterd.store.errors import StoreError
from musterd.store.events import EventLog, NewEvent
from musterd.store.waiting import Backoff, Bell

WAITING_MAX = 10_000  # a large crew is hired, and retires, at one blow
BATCH = 200
GATHER_SECONDS = 0.5
AWAY_SECONDS_MAX = 10.0
FINISH_SECONDS = 2.0


@attrs.define(eq=False)
class EventWriter:
    """Owned by a tenancy. What is announced is written a moment later, in its order; while the
    store is away the oldest that wait are given up when there are too many, and are counted.
    """

    events: EventLog
    log: Log
    node: str
    on_told: Callable[[], None]
    _waiting: deque[NewEvent] = attrs.field(factory=deque[NewEvent], init=False)
    _dropped: int = attrs.field(default=0, init=False)
    _bell: Bell = attrs.field(factory=Bell, init=False)
    _turn: trio.Lock = attrs.field(factory=trio.Lock, init=False)

    def announce(self, what: str, **data: object) -> None:
        """Returns at once."""
        if len(self._waiting) >= WAITING_MAX:
            self._waiting.popleft()
            self._dropped += 1
        self._waiting.append(NewEvent(what, {"node": self.node, **data}))
        self._bell.ring()

    async def run(self) -> None:
        backoff = Backoff(GATHER_SECONDS, AWAY_SECONDS_MAX)
        while True:
            await self._bell.wait()
            await trio.sleep(GATHER_SECONDS)
            self._bell.clear()
            if await self._write():
                backoff.succeeded()
            else:
                await backoff.sleep()
            if self._waiting:
                self._bell.ring()

    async def finish(self) -> None:
        """Writes what waits, if that can be done in time; nothing is announced after it."""
        with trio.move_on_after(FINISH_SECONDS):
            while self._waiting and await self._write():
                pass
        if self._waiting:
            self._dropped += len(self._waiting)
            self._waiting.clear()
        self._log_dropped()

    async def _write(self) -> bool:
        """Writes a batch; gives False if the store is away. One whose reply was lost is written
        again.
        """
        async with self._turn:
            batch = list(self._waiting)[:BATCH]
            if not batch:
                return True
            try:
                await self.events.record(batch)
            except StoreError:
                return False  # the engine has logged it
            for one in batch:
                if self._waiting and self._waiting[0] is one:
                    self._waiting.popleft()
        self.on_told()
        self._log_dropped()
        return True

    def _log_dropped(self) -> None:
        if self._dropped:
            event(self.log, logging.WARNING, "events of the node given up", count=self._dropped)
            self._dropped = 0
