"""Which statements a claim consists of, and what it remembers of the one before."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import attrs
import psycopg

from musterd.store.errors import OutcomeUnknown
from musterd.store.leases import Claim, ClaimRequest
from musterd.store.postgres.arrays import numbers, texts
from musterd.store.postgres.connection import TrioConnection
from musterd.store.postgres.errors import first_line
from musterd.store.postgres.marks import (
    DRAINS_FROM,
    FROM_THE_FIRST,
    WALKED_MAX,
    Findings,
    Mark,
    Marks,
    Start,
    places,
    start_params,
)
from musterd.store.postgres.statements import Cursor, Params, Row, Send

ASIDE_AT_ONCE = 1000  # once jobs were in the way of a claim, the next one reads so many
EXPECTED = 50  # so many claims expect a target, or a limit, after the last one that met such a job
FINDINGS = 10  # the column in which a claim says what it met beside the jobs


class ClaimForm(NamedTuple):
    """What one claim takes into account, fixed when it begins: an exchange beside it may change
    what the next one does.
    """

    claim: ClaimRequest  # with the limits that it counts
    stops: Sequence[str] = ()  # kinds with limits that it does not count: it takes none of them
    with_targets: bool = False

    @property
    def is_one_statement(self) -> bool:
        """Whether nothing has to be locked, or counted, before it."""
        return not self.claim.caps and self.claim.leased_max is None

    def statement(self, *, has_marks: bool) -> str:
        """The name of the statement that makes it."""
        if self.with_targets:
            return "claim_targets"
        return "claim_with_limits" if has_marks or not self.is_one_statement else "claim"


class SentClaim(NamedTuple):
    form: ClaimForm
    cursor: Cursor
    start: Start
    let_go: Sequence[Cursor]  # with the places of jobs that may be claimed again


@attrs.define
class Claimer:
    """Makes the claims of one engine. Targets and limits of kinds make a claim dearer, so it counts
    with them only while such jobs are met: a plain claim stops at the first one and goes on in
    another form, and so do the next fifty claims.
    """

    send: Send
    marks: Marks
    _scan: int = 0  # how many jobs the next claim reads if it wants fewer
    _targets: int = 0  # how many more claims expect targets
    _limits: int = EXPECTED  # how many more expect limits; at first some may be parked

    def form(self, claim: ClaimRequest) -> ClaimForm:
        """A claim that has to wait for others anyway counts all limits."""
        with_targets = self._targets > 0
        if self._limits or with_targets or claim.leased_max is not None:
            return ClaimForm(claim, with_targets=with_targets)
        return ClaimForm(attrs.evolve(claim, caps=()), [kind for kind, _ in claim.caps])

    def expect_limits(self) -> None:
        """There are jobs of kinds with a limit, or room for them."""
        self._limits = EXPECTED

    async def begin(self, conn: TrioConnection, form: ClaimForm) -> SentClaim:
        """Sends the claim; `conn` is in a pipeline if that takes more than one statement."""
        claim = form.claim
        start = self.marks.for_claim(claim, is_plain=not form.with_targets)
        params = claim_params(claim, self._scan, start, form.stops)
        if not form.is_one_statement:
            await self.send(conn, "lock_caps", {})  # before the statements that count
        let_go = [await self.send(conn, "unpark", params)] if claim.caps else []
        statement = form.statement(has_marks=bool(start.marks))
        return SentClaim(form, await self.send(conn, statement, params), start, let_go)

    async def end(
        self, conn: TrioConnection, claim: ClaimRequest, sent: SentClaim
    ) -> tuple[list[Claim], int, bool]:
        """The claims, how many jobs they took out of their way or could not see, and whether no
        more may be leased.
        """
        claims, found = claims_and_findings(await sent.cursor.fetchall(), claim.token)
        self.marks.note(found, sent.start, claim, len(claims))
        unseen = await self.lower_marks(sent.let_go)
        aside = found.aside + (unseen if sent.start.marks else 0)
        if not sent.form.with_targets and found.busy:  # it stopped there: goes on from there
            self._expect(found)
            if found.is_full:
                return claims, aside, True
            more, more_aside, is_full = await self._go_on(conn, _remaining(claim, claims))
            return claims + more, aside + more_aside, is_full
        self._note(claim, claims, is_in_the_way=bool(found.busy or aside))
        return claims, aside, found.is_full

    async def lower_marks(self, let_go: Sequence[Cursor]) -> int:
        """How many of these jobs, claimable again, a claim that begins at marks would miss."""
        found = [row for cursor in let_go for row in await cursor.fetchall()]
        return self.marks.lower(places(found)) if found else 0

    def _expect(self, found: Findings) -> None:
        if found.is_limited:
            self.expect_limits()
        else:
            self._targets = EXPECTED

    def _note(self, claim: ClaimRequest, claims: Sequence[Claim], *, is_in_the_way: bool) -> None:
        """What the next claims expect follows from what this one met."""
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
        """In a transaction of its own. The one before it is committed in any case: if this one
        breaks, the caller has to read back what there is.
        """
        try:
            async with conn.pipeline():
                going_on = await self.begin(conn, self.form(rest))
            return await self.end(conn, rest, going_on)
        except psycopg.Error as error:
            conn.discard()
            raise OutcomeUnknown(f"claiming: {first_line(error)}", "unreachable") from error


def _remaining(claim: ClaimRequest, claims: list[Claim]) -> ClaimRequest:
    given = {one.worker for one in claims}
    workers = tuple(worker for worker in claim.workers if worker not in given)
    ahead = claim.ahead - sum(one.worker is None for one in claims)
    return attrs.evolve(claim, workers=workers, ahead=ahead)


def claim_params(
    request: ClaimRequest, scan: int, start: Start = FROM_THE_FIRST, stops: Iterable[str] = ()
) -> Params:
    """The claim stops at the first job of a kind in `stops`."""
    return {
        "stops": texts(stops),
        **start_params(start),
        "walked_max": WALKED_MAX if request.batch < DRAINS_FROM else -1,
        "batch": request.batch,
        "scan": max(request.batch, scan),
        "workers": numbers(request.workers),
        "token": request.token,
        "node": request.node,
        "common": json.dumps({"node": request.node}),
        "lease_seconds": request.lease_seconds,
        "cap_kinds": texts(kind for kind, _ in request.caps),
        "caps": numbers(cap for _, cap in request.caps),
        "most": request.leased_max,
    }


def claims_and_findings(rows: list[Row], token: UUID) -> tuple[list[Claim], Findings]:
    """The row without an id, if there is one, is the last."""
    if not rows or rows[-1][0] is not None:
        return claims(rows, token), Findings()
    found: dict[str, Any] = json.loads(rows.pop()[FINDINGS])
    firsts = [Mark._make(first) for first in found.pop("firsts", None) or ()]
    return claims(rows, token), Findings(**found, firsts=firsts)


def claims(rows: Iterable[Row], token: UUID) -> list[Claim]:
    make = Claim._make
    return [make((*row[:8], token, *row[8:FINDINGS])) for row in rows]
