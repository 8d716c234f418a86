"""What looks over the stores of a stage, and their clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

import attrs
import trio

from musterd.store.idle_tenant_scan import TenantActivity
from musterd.store.jobs import JobFilter
from musterd.store.lifecycle import JobState
from musterd.store.queue import IdleCheck
from tests.support.faulty_engine import FaultyEngine
from tests.support.idle_checks import idle_check_of

EPOCH = 1_800_000_000.0  # where the wall clock stands at the start


@attrs.define
class StageScan:
    """Looks over the stores of a stage as it is done for many databases."""

    stores: Mapping[str, FaultyEngine]
    hears: bool = True  # False = there is nothing that hints could come by
    believes_all: bool = False  # notifications are lost, and nothing shows it
    looks: int = 0
    asked: list[str] = attrs.field(factory=list[str])
    checks: int = 0

    @property
    def tenants(self) -> list[str]:
        return list(self.stores)

    async def look(self, tenants: Sequence[str]) -> dict[str, TenantActivity]:
        self.looks += 1
        self.asked += tenants
        return {name: await self._activity(name) for name in tenants}

    async def check(self, tenants: Sequence[str], me: UUID) -> dict[str, IdleCheck]:
        """None where hints never arrive."""
        self.checks += 1
        heard = [
            name
            for name in tenants
            if self.believes_all or (self.hears and not self.stores[name].deaf)
        ]
        checked = {name: await idle_check_of(self.stores[name].engine, me) for name in heard}
        return {name: check for name, check in checked.items() if check is not None}

    async def _activity(self, name: str) -> TenantActivity:
        engine = self.stores[name].engine
        seen = await engine.queue.observe(1)
        leased = await engine.jobs.find(JobFilter((JobState.ASSIGNED, JobState.RUNNING)))
        ran_out = any(
            one.lease_expires_at is not None and one.lease_expires_at.timestamp() <= wall_clock()
            for one in leased
        )
        return TenantActivity(
            (seen.due > 0 or seen.parked) and not seen.paused, seen.parked or ran_out
        )


def wall_clock() -> float:
    return EPOCH + trio.current_time()
