"""The leases of an engine on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import attrs

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
from musterd.store.postgres import claim_rows, ends, rows
from musterd.store.postgres.exchanging import Exchanging
from musterd.store.postgres.parts import Statements
from musterd.store.postgres.pool import Pool
from musterd.store.postgres.reaping import Reaping


@attrs.frozen
class PostgresLeases:
    """See `store.leases.Leases`. Exchanges and renewals have connections of their own."""

    statements: Statements
    exchanging: Exchanging
    reaping: Reaping
    for_exchanges: Pool
    for_renewals: Pool

    async def exchange(
        self, settlements: Sequence[Settlement], claim: ClaimRequest | None, now_local: float, /
    ) -> Exchange:
        return await self.exchanging.exchange(settlements, claim, now_local)

    async def claims_under(self, token: UUID) -> list[Claim]:
        found = await self.statements.run("claims_under", {"token": token}, self.for_exchanges)
        return claim_rows.claims(found, token)

    async def settled_already(self, settlements: Sequence[Settlement]) -> frozenset[int]:
        params = ends.settled_keys(settlements)
        found = await self.statements.run("settled_already", params, self.for_exchanges)
        return frozenset(row[0] for row in found)

    async def renew(self, holds: Sequence[Hold], lease_seconds: float, now_local: float) -> Renewal:
        params = rows.holds(holds, lease_seconds, now_local)
        return rows.renewal(await self.statements.run("renew", params, self.for_renewals))

    async def note_progress(self, notes: Sequence[ProgressNote]) -> frozenset[int]:
        found = await self.statements.run("note_progress", rows.progress_notes(notes))
        return frozenset(row[0] for row in found)

    async def reap(self, request: ReapRequest) -> list[Reaped]:
        return await self.reaping.reap(request)
