"""The queue's counts for everyone who looks, asked of the store at most once a second."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

import trio

from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.manager.metrics import Metrics
from musterd.store.errors import StoreError
from musterd.store.job import Counts

FRESH_SECONDS = 1.0
LIMIT_SECONDS = 2.0


class CountsCache:
    """Shares one answer among all readers.

    A store that is away or slow gives None, for a second too.
    """

    def __init__(
        self,
        ask: Callable[[], Awaitable[Counts]],
        metrics: Metrics,
        tenant: str = DEFAULT_TENANT,
    ) -> None:
        self._ask = ask
        self._metrics = metrics
        self._tenant = tenant
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

    async def _fresh(self) -> Counts | None:
        counts = None
        with trio.move_on_after(LIMIT_SECONDS), suppress(StoreError):  # its watcher has logged it
            counts = await self._ask()
        # What is not known is not exported, rather than kept stale.
        self._metrics.counts(counts, self._tenant)
        return counts
