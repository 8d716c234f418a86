"""Looking over the queues of many tenants at once, so that an idle one costs next to nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from musterd.store.queue import IdleCheck


class TenantActivity(NamedTuple):
    """What there is to do for one queue. A wrong True costs one look, a wrong False is righted by
    the next scan.
    """

    work: bool  # due jobs that may be claimed, or parked ones
    reaping: bool  # leases that ran out, or parked jobs whose kind may have lost its limit


EVERYTHING = TenantActivity(work=True, reaping=True)
NOTHING = TenantActivity(work=False, reaping=False)


class TenantScan(Protocol):
    """Sees the queues that it was made for, by their tenants' names."""

    @property
    def tenants(self) -> Sequence[str]: ...

    async def look(self, tenants: Sequence[str]) -> Mapping[str, TenantActivity]:
        """The queues of these tenants, whose stores are open. Raises `StoreError` if none can be
        seen.
        """
        ...

    async def check(self, tenants: Sequence[str], me: UUID) -> Mapping[str, IdleCheck]:
        """As `IdleChecks.check`, of many queues at once. A tenant without an answer is missing."""
        ...
