"""The leases of an engine on SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from musterd.store.leases import (
    Claim,
    ClaimRequest,
    Exchange,
    Hold,
    ProgressNote,
    Reaped,
    ReapRequest,
    Renewal,
    Settlement,
)
from musterd.store.sqlite import reading, reaping, writing
from musterd.store.sqlite.hints import Hints
from musterd.store.sqlite.runner import Call


class SqliteLeases:
    """See `store.leases.Leases`."""

    def __init__(self, call: Call, hints: Hints) -> None:
        self._call, self._hints = call, hints

    async def exchange(
        self, settlements: Sequence[Settlement], claim: ClaimRequest | None, now_local: float, /
    ) -> Exchange:
        exchange, leaves_work = await self._call(writing.exchange, settlements, claim, now_local)
        if leaves_work:
            self._hints.ring()
        return exchange

    async def claims_under(self, token: UUID) -> list[Claim]:
        return await self._call(reading.claims_under, token)

    async def settled_already(self, settlements: Sequence[Settlement]) -> frozenset[int]:
        return await self._call(reading.settled_already, settlements)

    async def renew(self, holds: Sequence[Hold], lease_seconds: float, now_local: float) -> Renewal:
        return await self._call(writing.renew, holds, lease_seconds, now_local)

    async def note_progress(self, notes: Sequence[ProgressNote]) -> frozenset[int]:
        return await self._call(writing.note_progress, notes)

    async def reap(self, request: ReapRequest) -> list[Reaped]:
        return await self._call(reaping.reap, request)
