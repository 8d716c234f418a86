"""The queue's counts for everyone who looks, asked of the store at most once a second."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

import trio

from musterd.store.errors import StoreError
from musterd.store.queue import Counts

FRESH_SECONDS = 1.0
LIMIT_SECONDS = 2.0


class CountsCache:
    """Shares one answer among all readers.

    A store that is away or slow gives None, for a second too. `heard` is told each new answer.
    """

    def __init__(
        self,
        ask: Callable[[], Awaitable[Counts]],
        heard: Callable[[Counts | None], None] = lambda _: None,
    ) -> None:
        self._ask = ask
        self._heard = heard
        self._lock = trio.Lock()
        self._counts: Counts | None = None
        self._asked_local = float("-inf")

    async def get(self) -> Counts | None:
        """Gives counts at most a second old, or None if the store does not say."""
        async with self._lock:
            if trio.current_time() - self._asked_local >= FRESH_SECONDS:
                self._counts = await self._fresh()
                self._asked_local = trio.current_time()
            return self._counts

    async def refresh(self) -> int:
        """As `get`; gives how many answers it has got."""
        return int(await self.get() is not None)

    async def _fresh(self) -> Counts | None:
        counts = None
        with trio.move_on_after(LIMIT_SECONDS), suppress(StoreError):  # its watcher has logged it
            counts = await self._ask()
        self._heard(counts)
        return counts
