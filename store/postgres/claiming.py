"""Which statements a claim consists of, and what it remembers of the one before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import attrs
import psycopg

from musterd.store.errors import OutcomeUnknown
from musterd.store.leases import Claim, ClaimRequest
from musterd.store.postgres import claim_rows
from musterd.store.postgres.claim_rows import Rest, Start
from musterd.store.postgres.connection import TrioConnection
from musterd.store.postgres.marks import Marks
from musterd.store.postgres.rows import Params, Row
from musterd.store.postgres.troubles import first_line

ASIDE_AT_ONCE = 1000  # once jobs were in the way of a claim, the next looks at so many
EXPECTED = 50  # so many claims after the last that met a job with a target, or of a limited kind

Cursor = psycopg.AsyncCursor[Row]
Send = Callable[[TrioConnection, str, Params], Awaitable[Cursor]]


class Asked(NamedTuple):
    """What one claim reckons with. It is said once: another visit may change what comes next."""

    claim: ClaimRequest  # with the limits that it keeps to
    stops: Sequence[str] = ()  # kinds with limits that it does not: it takes none of them
    with_targets: bool = False

    @property
    def is_one_statement(self) -> bool:
        """Whether nothing has to be locked, or counted, before it."""
        return not self.claim.caps and self.claim.leased_max is None

    def form(self, *, has_marks: bool) -> str:
        """Which statement makes it."""
        if self.with_targets:
            return "claim_targets"
        return "claim_with_limits" if has_marks or not self.is_one_statement else "claim"


class Sent(NamedTuple):
    asked: Asked
    cursor: Cursor
    start: Start
    let_go: Sequence[Cursor]  # with the places of jobs that may be claimed again


@attrs.define
class Claiming:
    """The claims of one engine. What targets and limits of kinds need makes a claim dearer, so it
    is asked for only while such jobs are met.
    """

    send: Send
    marks: Marks
    _scan: int = 0  # how many jobs the next claim looks at, beyond those that it wants
    _targets: int = 0  # how many more claims reckon with targets
    _limits: int = EXPECTED  # how many more reckon with limits; at first some may be parked

    def asked(self, claim: ClaimRequest) -> Asked:
        """Who has to wait for others anyway reckons with all limits."""
        with_targets = self._targets > 0
        if self._limits or with_targets or claim.leased_max is not None:
            return Asked(claim, with_targets=with_targets)
        return Asked(attrs.evolve(claim, caps=()), [kind for kind, _ in claim.caps])

    def expect_limits(self) -> None:
        """There are jobs of kinds with a limit, or there is room for them."""
        self._limits = EXPECTED

    async def begin(self, conn: TrioConnection, asked: Asked) -> Sent:
        """Sends what is to be sent; `conn` is in a pipeline if that is more than one statement."""
        claim = asked.claim
        start = self.marks.for_claim(claim, is_plain=not asked.with_targets)
        params = claim_rows.claim_request(claim, self._scan, start, asked.stops)
        if not asked.is_one_statement:
            await self.send(conn, "lock_caps", {})  # before the statements that count
        let_go = [await self.send(conn, "unpark", params)] if claim.caps else []
        form = asked.form(has_marks=bool(start.marks))
        return Sent(asked, await self.send(conn, form, params), start, let_go)

    async def end(
        self, conn: TrioConnection, claim: ClaimRequest, sent: Sent
    ) -> tuple[list[Claim], int, bool]:
        """The claims, how many jobs were taken out of their way or were let go on unseen, and
        whether no more may be leased.
        """
        claims, rest = claim_rows.claims_and_rest(await sent.cursor.fetchall(), claim.token)
        self.marks.note(rest, sent.start, claim, len(claims))
        unseen = await self.lower_marks(sent.let_go)
        aside = rest.aside + (unseen if sent.start.marks else 0)
        if not sent.asked.with_targets and rest.busy:  # it stopped there: goes on from there
            self._expect(rest)
            if rest.is_full:
                return claims, aside, True
            more, more_aside, is_full = await self._go_on(conn, _rest(claim, claims))
            return claims + more, aside + more_aside, is_full
        self._note(claim, claims, is_in_the_way=bool(rest.busy or aside))
        return claims, aside, rest.is_full

    async def lower_marks(self, let_go: Sequence[Cursor]) -> int:
        """Gives how many of these jobs no claim that begins at marks would have found."""
        found = [row for cursor in let_go for row in await cursor.fetchall()]
        return self.marks.lower(claim_rows.places(found)) if found else 0

    def _expect(self, rest: Rest) -> None:
        if rest.is_limited:
            self.expect_limits()
        else:
            self._targets = EXPECTED

    def _note(self, claim: ClaimRequest, claims: Sequence[Claim], *, is_in_the_way: bool) -> None:
        """Which jobs the next claims have to expect, by those that this one has met."""
        if self._targets:
            met = is_in_the_way or any(one.target is not None for one in claims)
            self._targets = EXPECTED if met else self._targets - 1
        if self._limits:
            limited = {kind for kind, _ in claim.caps}
            met = is_in_the_way or any(one.kind in limited for one in claims)
            self._limits = EXPECTED if met else self._limits - 1
        self._scan = ASIDE_AT_ONCE if is_in_the_way else 0

    async def _go_on(
        self, conn: TrioConnection, rest: ClaimRequest
    ) -> tuple[list[Claim], int, bool]:
        """In a transaction of its own. What came before it is written whatever becomes of it: if it
        breaks, the caller has to read back what there is.
        """
        try:
            async with conn.pipeline():
                going_on = await self.begin(conn, self.asked(rest))
            return await self.end(conn, rest, going_on)
        except psycopg.Error as error:
            conn.discard()
            raise OutcomeUnknown(f"claiming: {first_line(error)}", "unreachable") from error


def _rest(claim: ClaimRequest, claims: list[Claim]) -> ClaimRequest:
    given = {one.worker for one in claims}
    workers = tuple(worker for worker in claim.workers if worker not in given)
    ahead = claim.ahead - sum(one.worker is None for one in claims)
    return attrs.evolve(claim, workers=workers, ahead=ahead)
