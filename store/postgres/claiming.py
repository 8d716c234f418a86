"""Which statements a claim consists of, and what it remembers of the one before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import attrs
import psycopg

from musterd.store.errors import OutcomeUnknown
from musterd.store.job import Claim, ClaimRequest
from musterd.store.postgres import rows
from musterd.store.postgres.connection import TrioConnection
from musterd.store.postgres.marks import Marks, Start
from musterd.store.postgres.troubles import first_line

ASIDE_AT_ONCE = 1000  # once jobs were in the way of a claim, the next looks at so many
TARGETS_EXPECTED = 50  # so many claims after the last that met a job with a target

Cursor = psycopg.AsyncCursor[rows.Row]
Send = Callable[[TrioConnection, str, rows.Params], Awaitable[Cursor]]


class Sent(NamedTuple):
    cursor: Cursor
    with_targets: bool  # it reckoned with them
    start: Start
    let_go: Sequence[Cursor]  # with the places of jobs that may be claimed again


@attrs.define
class Claiming:
    """The claims of one engine. What targets need makes a claim dearer, so it is asked for only
    while jobs with a target are met.
    """

    send: Send
    marks: Marks
    _scan: int = 0  # how many jobs the next claim looks at, beyond those that it wants
    _targets: int = 0  # how many more claims reckon with targets

    async def begin(self, conn: TrioConnection, claim: ClaimRequest) -> Sent:
        """Sends what is to be sent; `conn` may be in a pipeline."""
        start = self.marks.for_claim(claim, is_plain=not self._targets)
        params = rows.claim_request(claim, self._scan, start.marks, start.late_seconds)
        if not is_one_statement(claim):
            await self.send(conn, "lock_caps", {})  # before the statements that count
        let_go = [await self.send(conn, "unpark", params)] if claim.caps else []
        with_targets = self._targets > 0
        name = form_of(claim, with_targets=with_targets, has_marks=bool(start.marks))
        return Sent(await self.send(conn, name, params), with_targets, start, let_go)

    async def end(
        self, conn: TrioConnection, claim: ClaimRequest, sent: Sent
    ) -> tuple[list[Claim], int, bool]:
        """The claims, how many jobs were taken out of their way or were let go on unseen, and
        whether no more may be leased.
        """
        claims, rest = rows.claims_and_rest(await sent.cursor.fetchall(), claim.token)
        other, is_full = rest.busy, rest.is_full
        self.marks.note(rest, sent.start, claim, len(claims))
        aside = rest.aside + await self.lower_marks(sent.let_go)
        if not sent.with_targets and other:  # it stopped at a job with a target: goes on from there
            self._targets = TARGETS_EXPECTED
            if is_full:
                return claims, aside, is_full
            more, more_aside, is_full = await self._go_on(conn, _rest(claim, claims))
            return claims + more, aside + more_aside, is_full
        if self._targets:
            met = other or aside or any(one.target is not None for one in claims)
            self._targets = TARGETS_EXPECTED if met else max(0, self._targets - 1)
        self._scan = ASIDE_AT_ONCE if aside or other else 0
        return claims, aside, is_full

    async def lower_marks(self, let_go: Sequence[Cursor]) -> int:
        """Gives how many of these jobs nobody would have found."""
        found = [row for cursor in let_go for row in await cursor.fetchall()]
        return self.marks.lower(rows.places(found)) if found else 0

    async def _go_on(
        self, conn: TrioConnection, rest: ClaimRequest
    ) -> tuple[list[Claim], int, bool]:
        """In a transaction of its own. What came before it is written whatever becomes of it: if it
        breaks, the caller has to read back what there is.
        """
        try:
            async with conn.pipeline():
                going_on = await self.begin(conn, rest)
            return await self.end(conn, rest, going_on)
        except psycopg.Error as error:
            conn.discard()
            raise OutcomeUnknown(f"claiming: {first_line(error)}", "unreachable") from error


def is_one_statement(claim: ClaimRequest) -> bool:
    """Whether nothing has to be locked, or counted, before it."""
    return not claim.caps and claim.leased_max is None


def form_of(claim: ClaimRequest, *, with_targets: bool, has_marks: bool) -> str:
    """Which statement makes such a claim."""
    if with_targets:
        return "claim_targets" if has_marks else "claim_targets_plain"
    return "claim" if has_marks or not is_one_statement(claim) else "claim_plain"


def _rest(claim: ClaimRequest, claims: list[Claim]) -> ClaimRequest:
    given = {one.worker for one in claims}
    workers = tuple(worker for worker in claim.workers if worker not in given)
    ahead = claim.ahead - sum(one.worker is None for one in claims)
    return attrs.evolve(claim, workers=workers, ahead=ahead)
