"""The counts of all tenants' queues, for metrics and pages: each asked at most once a second."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import trio

from musterd.manager.duties.duty import METRICS
from musterd.manager.metrics.metrics import Metrics
from musterd.manager.tenancy.tenancy import Tenancy
from musterd.store.queue import Counts

AT_ONCE = 4  # tenants asked at the same time: their stores have other things to do
REFRESH_SECONDS = 5.0


@attrs.define(eq=False)
class TenantCounts:
    """`tenancies` are those of the moment, by name. A store that is away or slow gives None."""

    tenancies: Mapping[str, Tenancy]
    metrics: Metrics

    async def counts(self, name: str) -> Counts | None:
        """Of one tenant; None also where it is not served."""
        tenancy = self.tenancies.get(name)
        if tenancy is None:
            await trio.lowlevel.checkpoint()
            return None
        return await tenancy.duties.counts.get()

    async def refresh(self) -> None:
        """Tells the metrics of the queues that this node exports, within a bound: who is too slow
        is told of next time.
        """
        limit = trio.CapacityLimiter(AT_ONCE)
        with trio.move_on_after(REFRESH_SECONDS):
            async with trio.open_nursery() as nursery:
                for name in self._exported():
                    nursery.start_soon(self._refresh_one, name, limit)

    def _exported(self) -> list[str]:
        found = self.tenancies.items()
        return [name for name, tenancy in found if tenancy.duties.holds(METRICS)]

    async def _refresh_one(self, name: str, limit: trio.CapacityLimiter) -> None:
        async with limit:
            await self.counts(name)
            await self._refresh_health(name)
            if name not in self.tenancies:  # it has left meanwhile
                self.metrics.forget(name)

    async def _refresh_health(self, name: str) -> None:
        tenancy = self.tenancies.get(name)
        if tenancy is not None:
            await tenancy.duties.health.refresh()
