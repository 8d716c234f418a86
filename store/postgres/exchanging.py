"""The exchange: settles and claims in one transaction, on a connection of its own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

import attrs

from musterd.store.errors import OutcomeUnknown, StoreError
from musterd.store.leases import ClaimRequest, Exchange, Settlement
from musterd.store.postgres import ends, rows
from musterd.store.postgres.claiming import Asked, Claiming, Cursor, Send
from musterd.store.postgres.connection import TrioConnection
from musterd.store.postgres.marks import Marks
from musterd.store.postgres.phases import phases_ended
from musterd.store.postgres.pool import Pool
from musterd.store.postgres.time_limit import TimeLimit


@attrs.define
class _Visit:
    settlements: Sequence[Settlement]
    claim: ClaimRequest | None
    now_local: float
    written: bool = False  # the first transaction of it is committed
    let_go: list[Cursor] = attrs.field(factory=list[Cursor])  # as in `claiming.Sent`


class Exchanging:
    """Of one engine; exchanges may go on beside each other."""

    def __init__(self, pool: Pool, send: Send, marks: Marks, limit_seconds: float) -> None:
        self._pool = pool
        self._send = send
        self._limit_seconds = limit_seconds
        self.claiming = Claiming(send, marks)

    async def exchange(
        self, settlements: Sequence[Settlement], claim: ClaimRequest | None, now_local: float
    ) -> Exchange:
        """See `store.leases.Leases.exchange`."""
        visit = _Visit(settlements, claim, now_local)
        try:
            with TimeLimit(self._limit_seconds, "exchange"):
                async with self._pool.use("settling and claiming") as conn:
                    return await self._make(visit, conn)
        except StoreError as error:
            if visit.written:  # and then it went on: what there is is read back
                raise OutcomeUnknown(str(error), "unreachable") from error
            raise

    async def _make(self, visit: _Visit, conn: TrioConnection) -> Exchange:
        settling = claiming = None
        claim = visit.claim
        if claim is not None and _makes_room(visit.settlements, claim):
            self.claiming.expect_limits()
        asked = None if claim is None else self.claiming.asked(claim)
        async with _one_transaction(conn, visit, asked):
            if visit.settlements:
                settling = await self._settle(conn, visit)
            if asked is not None:
                claiming = await self.claiming.begin(conn, asked)
        settled = (await settling.fetchone()) if settling else None
        rejected, turned = rows.rejected_and_turned(settled)
        unseen = await self.claiming.lower_marks(visit.let_go)
        if claiming is None or claim is None:
            return Exchange(rejected, [], turned=turned)
        visit.written = True
        claims, aside, full = await self.claiming.end(conn, claim, claiming)
        aside += unseen if claiming.start.marks else 0
        return Exchange(rejected, claims, aside, turned, full)

    async def _settle(self, conn: TrioConnection, visit: _Visit) -> Cursor:
        settlements = visit.settlements
        targets = {"targets": rows.targets_of(settlements)}
        has_targets = targets["targets"] is not None
        if has_targets:  # their holders before their jobs, as everybody does
            await self._send(conn, "lock_targets", targets)
        phases = phases_ended(settlements)
        if phases is not None:  # before their jobs: their leases still stand
            await self._send(conn, "settle_phases", phases)
        settling = await self._send(conn, "settle", ends.settlements(settlements, visit.now_local))
        if has_targets:
            # If nobody claims in this transaction, idle nodes hear of it.
            await self._send(conn, "hand_over", {**targets, "ring": visit.claim is None})
            if self.claiming.marks.hide_some:
                visit.let_go.append(await self._send(conn, "turns_of", targets))
        return settling


def _one_transaction(
    conn: TrioConnection, visit: _Visit, asked: Asked | None
) -> AbstractAsyncContextManager[object, bool | None]:
    """For several statements. One by itself needs none, and a pipeline costs more than it does."""
    is_alone = not visit.settlements and asked is not None and asked.is_one_statement
    return nullcontext() if is_alone else conn.pipeline()


def _makes_room(settlements: Sequence[Settlement], claim: ClaimRequest) -> bool:
    """Whether jobs end whose kinds have limits: others of these may be parked."""
    limited = {kind for kind, _ in claim.caps}
    return bool(limited) and any(one.kind in limited for one in settlements)
