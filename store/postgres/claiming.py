"""Which statements a claim consists of, what it remembers of the one before, and where it begins
while the index is full of entries that nobody can remove yet.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import chain, repeat
from typing import Any, NamedTuple, cast
from uuid import UUID

import attrs
import psycopg
import trio

from musterd.store.errors import OutcomeUnknown
from musterd.store.leases import Claim, ClaimRequest
from musterd.store.postgres.connection import TrioConnection
from musterd.store.postgres.errors import REFUSED, first_line
from musterd.store.postgres.moments import moment_of_text
from musterd.store.postgres.statements import Ask, Cursor, Params, Row, Send, numbers, texts

WALKED_MAX = 4_000  # entries that a claim may walk for nothing, about a millisecond; more is long
DRAINS_FROM = 100  # a claim of so many jobs is a drain: it keeps marks where the way is short too
# A full walk begins at the first entry. While the way is long it is made once in so many seconds,
# or after twenty times what the last one cost if that is more, but at least once in the maximum.
ALL_SECONDS = 0.5
ALL_SECONDS_AN_ENTRY = 1e-5
ALL_SECONDS_MAX = 10.0
OVERDUE_SECONDS = 5.0  # the supervisor makes the full walk; if it is so late, a claim does
MARKS_MAX = 100  # priorities
LATE_SECONDS = 0.25  # a job committed so long after its due time is still found at once


class Mark(NamedTuple):
    """A place in claim order. A mark is the place of the first claimable job of its priority."""

    priority: int
    run_at: str
    id: int

    def is_before(self, other: Mark) -> bool:
        """Of the same priority."""
        mine, its = datetime.fromisoformat(self.run_at), datetime.fromisoformat(other.run_at)
        return (mine, self.id) < (its, other.id)


class Start(NamedTuple):
    """Where a walk begins; without marks at the first entry. `lowered`: how often marks had been
    lowered by then.
    """

    marks: Sequence[Mark] = ()
    late_seconds: float = 0.0
    lowered: int = 0


FROM_THE_FIRST = Start()


class Findings(NamedTuple):
    """What a claim says beside the jobs: how many it took out of the way, how many it left to
    others or to another form of the claim, whether no more may be leased; and how many entries of
    the index it walked that led to no job, with the places of the first jobs if those were many.
    `is_limited`: it stopped at a kind with a limit that it did not count. `met`: how many stretches
    it locked; `used`: of how many of them it took jobs.
    """

    aside: int = 0
    busy: int = 0
    is_full: bool = False
    walked: int = 0
    is_limited: bool = False
    firsts: Sequence[Mark] = ()
    met: int = 0
    used: int = 0
    claimed_epoch: float = 0.0


@attrs.define
class Marks:
    """The marks of one engine, one for each priority.

    Index entries of finished jobs stay at the beginning of the index until the next vacuum, and as
    long as any session holds an old snapshot. After a claim that walked many of them (the way is
    long), or that is part of a drain, the claims of the next moment begin where it found the first
    jobs.

    A job that is put before a mark meanwhile is found after that moment, as if it had been
    committed then. While the way is long, the supervisor makes the full walks, so that no claim is
    slowed by one. Jobs that this engine itself makes claimable again, from behind a target or a
    limit, lower the marks. In a drain with a short way, marks are for plain claims only, and end
    with the first claim that comes back short.
    """

    _marks: dict[int, Mark] = attrs.field(factory=dict[int, Mark])
    _all_at_local: float = float("-inf")  # when the next full walk is due
    _is_long: bool = False  # the way from the first entry to the first job
    _lowered: int = 0

    @property
    def hide_jobs(self) -> bool:
        """Whether claimable jobs may be before a mark."""
        return self._is_long

    def for_claim(self, claim: ClaimRequest, is_plain: bool) -> Start:
        now = trio.current_time()
        if now >= self._all_at_local + (OVERDUE_SECONDS if self._is_long else 0.0):
            if self._is_long:
                self._all_at_local = now  # the others need not wait for this one
            return Start(lowered=self._lowered)
        if not self._is_long and (claim.caps or not is_plain):
            return Start(lowered=self._lowered)
        late_seconds = LATE_SECONDS if self._is_long else 0.0
        return Start(tuple(self._marks.values()), late_seconds, self._lowered)

    def for_walk(self) -> Start:
        """For a walk that claims nothing; without marks if no claim has kept them up to date."""
        if self._is_long and trio.current_time() < self._all_at_local + 2 * OVERDUE_SECONDS:
            return Start(tuple(self._marks.values()), LATE_SECONDS)
        return FROM_THE_FIRST

    def note(self, findings: Findings, start: Start, claim: ClaimRequest, taken: int) -> None:
        """What a claim that began there has met, and how many jobs it took."""
        if not start.marks:
            self._note_all(findings, claim, taken)
        elif taken < claim.batch and not self._is_long:
            self._forget()
        if not self._is_long and trio.current_time() >= self._all_at_local:
            return
        for first in findings.firsts:
            known = self._marks.get(first.priority)
            if known is None:
                if len(self._marks) < MARKS_MAX:
                    self._marks[first.priority] = first
            # One that was lowered meanwhile stays where it is.
            elif start.lowered == self._lowered or first.is_before(known):
                self._marks[first.priority] = first

    def lower(self, places: Iterable[Mark]) -> int:
        """Jobs at these places became claimable again; returns how many of them were hidden."""
        hidden = 0
        for place in places:
            mark = self._marks.get(place.priority)
            if mark is not None and place.is_before(mark):
                self._marks[place.priority] = place
                hidden += 1
        self._lowered += hidden > 0
        return hidden

    @property
    def wants_full_walk(self) -> bool:
        """Whether the next full walk is due."""
        return self._is_long and trio.current_time() >= self._all_at_local

    def note_full_walk(self, firsts: Sequence[Mark], walked: int) -> None:
        """What a full walk that claimed nothing has found."""
        self._is_long = walked > WALKED_MAX
        if not self._is_long:
            self._forget()
            return
        self._postpone(walked)
        self.lower(firsts)
        for first in firsts[:MARKS_MAX]:
            self._marks.setdefault(first.priority, first)

    def walk_all(self) -> None:
        """Jobs became claimable again at unknown places: the next walk is a full one."""
        self._all_at_local = float("-inf")

    def _note_all(self, findings: Findings, claim: ClaimRequest, taken: int) -> None:
        self._is_long = findings.walked > WALKED_MAX
        if not self._is_long and (claim.batch < DRAINS_FROM or taken < claim.batch):
            self._forget()
            return
        self._postpone(findings.walked)

    def _postpone(self, walked: int) -> None:
        seconds = max(ALL_SECONDS, min(walked * ALL_SECONDS_AN_ENTRY, ALL_SECONDS_MAX))
        self._all_at_local = trio.current_time() + seconds

    def _forget(self) -> None:
        self._marks.clear()
        self._all_at_local = float("-inf")


def start_params(start: Start) -> Params:
    """For the statements that begin at marks."""
    return {
        "mark_priorities": numbers(mark.priority for mark in start.marks),
        "mark_run_ats": texts(mark.run_at for mark in start.marks),
        "mark_ids": numbers(mark.id for mark in start.marks),
        "late_seconds": start.late_seconds,
    }


def marks_of(text: str) -> list[Mark]:
    return [Mark._make(first) for first in json.loads(text)]


def places(found: Sequence[Row]) -> list[Mark]:
    return [Mark(priority, run_at.isoformat(), job_id) for priority, run_at, job_id in found]


ASIDE_AT_ONCE = 1000  # once jobs were in the way of a claim, the next one meets so many stretches
EXPECTED = 50  # so many claims expect a target, or a limit, after the last one that met such a job


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
    stretches: int  # that it meets at most
    let_go: Sequence[Cursor]  # with the places of jobs that may be claimed again


class Claimed(NamedTuple):
    """`aside`: how many jobs the claim took out of its way or could not see. `is_full`: no more may
    be leased.
    """

    claims: list[Claim]
    claimed_epoch: float
    aside: int = 0
    is_full: bool = False


@attrs.define
class Claimer:
    """Makes the claims of one engine. Targets and limits of kinds make a claim dearer, so it counts
    with them only while such jobs are met: a plain claim stops at the first one and goes on in
    another form, and so do the next fifty claims.
    """

    send: Send
    ask: Ask
    marks: Marks
    lock_ms: str  # for how long one that keeps to limits waits for others
    _scan: int = 0  # how many stretches the next claim meets if it wants fewer jobs
    _jobs_a_stretch: float = 1.0  # of those that the last claim used
    _targets: int = 0  # how many more claims expect targets
    _limits: int = EXPECTED  # how many more expect limits; at first some may be parked
    _in_vain: int = 0  # how many more are not tried as `claim_one`, which could not judge the last

    def form(self, claim: ClaimRequest) -> ClaimForm:
        """A claim that has to wait for others anyway counts all limits."""
        with_targets = self._targets > 0
        if not claim.caps or self._limits or with_targets or claim.leased_max is not None:
            return ClaimForm(claim, with_targets=with_targets)
        return ClaimForm(attrs.evolve(claim, caps=()), [kind for kind, _ in claim.caps])

    def expect_limits(self) -> None:
        """There are jobs of kinds with a limit, or room for them."""
        self._limits = EXPECTED

    async def pick_up(self, conn: TrioConnection, claim: ClaimRequest) -> Claimed | None:
        """A claim for a single idle worker, in the form that is answered soonest; None = it is to
        be made in another one.
        """
        form = self.form(claim)
        if len(claim.workers) != 1 or claim.ahead or not form.is_one_statement:
            return None
        if form.with_targets or self.marks.hide_jobs or conn.prepare_threshold is None:
            return None
        if self._in_vain:
            self._in_vain -= 1
            return None
        params = one_claim_params(claim, form.stops)
        is_open, walked, *job, claimed = await self.ask(conn, "claim_one", params)
        if is_open == "t":
            self._in_vain = EXPECTED
            return None
        claimed_epoch = float(claimed or 0)
        claims = [] if job[0] is None else [_claim_of_texts(job, claim, claimed_epoch)]
        self.marks.note(Findings(walked=int(walked or 0)), FROM_THE_FIRST, claim, len(claims))
        self._note(claim, claims, is_in_the_way=False)
        return Claimed(claims, claimed_epoch)

    async def begin(self, conn: TrioConnection, form: ClaimForm) -> SentClaim:
        """Sends the claim; `conn` is in a pipeline if that takes more than one statement."""
        claim = form.claim
        start = self.marks.for_claim(claim, is_plain=not form.with_targets)
        stretches = self._stretches(claim)
        params = claim_params(claim, stretches, start, form.stops)
        if not form.is_one_statement:
            # Before the statements that count.
            await self.send(conn, "lock_caps", {"lock_ms": self.lock_ms})
        let_go = [await self.send(conn, "unpark", params)] if claim.caps else []
        statement = form.statement(has_marks=bool(start.marks))
        cursor = await self.send(conn, statement, params)
        return SentClaim(form, cursor, start, stretches, let_go)

    async def end(self, conn: TrioConnection, claim: ClaimRequest, sent: SentClaim) -> Claimed:
        (row,) = await sent.cursor.fetchall()
        claims, found = claims_and_findings(row, claim.token, claim.workers)
        self.marks.note(found, sent.start, claim, len(claims))
        unseen = await self.lower_marks(sent.let_go)
        aside = found.aside + (unseen if sent.start.marks else 0)
        stops = not sent.form.with_targets and found.busy > 0  # it goes on from there
        if stops:
            self._expect(found)
        else:
            self._note(claim, claims, is_in_the_way=bool(found.busy or aside))
        is_short = len(claims) < claim.batch and found.met == sent.stretches and not found.aside
        self._jobs_a_stretch = 1.0 if is_short or not claims else len(claims) / found.used
        if found.is_full or not (stops or (is_short and not found.busy)):
            return Claimed(claims, found.claimed_epoch, aside, found.is_full)
        more = await self._go_on(conn, _remaining(claim, claims))
        # A node that stood still in between may have lost a job of the first one and have it again:
        # under the same token, so only the later attempt counts.
        again = {one.id for one in more.claims}
        claims = [*(one for one in claims if one.id not in again), *more.claims]
        return Claimed(claims, found.claimed_epoch, aside + more.aside, more.is_full)

    def _stretches(self, claim: ClaimRequest) -> int:
        """How many hold as many jobs as are wanted, if they are like those of the last claim:
        whatever a claim locks is kept from others.
        """
        likely = int(claim.batch / self._jobs_a_stretch) + 2
        return max(min(claim.batch, likely), self._scan)

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

    async def _go_on(self, conn: TrioConnection, rest: ClaimRequest) -> Claimed:
        """In a transaction of its own. The one before it is committed in any case: if this one
        breaks, the caller has to read back what there is. One that is refused is left to the next.
        """
        try:
            async with conn.pipeline():
                going_on = await self.begin(conn, self.form(rest))
            return await self.end(conn, rest, going_on)
        except psycopg.Error as error:
            conn.discard()
            if (error.sqlstate or "")[:2] in REFUSED:
                return Claimed([], 0.0, aside=1)
            raise OutcomeUnknown(f"claiming: {first_line(error)}", "unreachable") from error


def _remaining(claim: ClaimRequest, claims: list[Claim]) -> ClaimRequest:
    given = {one.worker for one in claims}
    workers = tuple(worker for worker in claim.workers if worker not in given)
    ahead = claim.ahead - sum(one.worker is None for one in claims)
    return attrs.evolve(claim, workers=workers, ahead=ahead)


def claim_params(
    request: ClaimRequest,
    stretches: int | None = None,
    start: Start = FROM_THE_FIRST,
    stops: Iterable[str] = (),
) -> Params:
    """The claim stops at the first job of a kind in `stops`, and meets so many stretches."""
    return {
        "stops": texts(stops),
        **start_params(start),
        "walked_max": WALKED_MAX,
        "batch": request.batch,
        "stretches": request.batch if stretches is None else stretches,
        "workers": numbers(request.workers),
        "token": request.token,
        "node": request.node,
        "common": json.dumps({"node": request.node}),
        "lease_seconds": request.lease_seconds,
        "cap_kinds": texts(kind for kind, _ in request.caps),
        "caps": numbers(cap for _, cap in request.caps),
        "most": request.leased_max,
    }


def one_claim_params(request: ClaimRequest, stops: Iterable[str] = ()) -> Params:
    return {
        "stops": texts(stops),
        "token": request.token,
        "node": request.node,
        "worker": request.workers[0],
        "lease_seconds": request.lease_seconds,
    }


def _claim_of_texts(
    job: Sequence[str | None], request: ClaimRequest, claimed_epoch: float
) -> Claim:
    job_id, kind, payload, attempt, budget, forgiven, waited, *others = cast("list[str]", job)
    spent, schedule, slot = others
    return Claim(
        int(job_id), kind, payload, int(attempt), int(budget) if budget else None,
        int(forgiven), float(waited), request.workers[0], request.token, spent, None,
        schedule, moment_of_text(slot) if slot else None, claimed_epoch,
    )  # fmt: skip


def claims_and_findings(row: Row, token: UUID, idle: Sequence[int]) -> tuple[list[Claim], Findings]:
    """The one row that a claim answers. `idle`: the workers that it was for."""
    number, ids, kinds, payloads, attempts, budgets, forgiven, waited, spent, *others = row[:12]
    claimed_epoch, met, used, walked, aside, busy, is_limited, is_full, firsts = row[12:]
    found = marks_of(firsts) if firsts else ()
    findings = Findings(aside, busy, is_full, walked, is_limited, found, met, used, claimed_epoch)
    if not number:
        return [], findings
    workers, tokens = chain(idle, repeat(None)), repeat(token)
    columns = (
        *(ids, _each(kinds), payloads, _each(attempts), _each(budgets), _each(forgiven)),
        *(waited, workers, tokens, _each(spent), *map(_each, others), repeat(claimed_epoch)),
        repeat(None),
    )
    return list(map(Claim._make, zip(*columns, strict=False))), findings


def _each(values: Sequence[Any] | None) -> Iterable[Any]:
    """One value stands for all, none for nulls."""
    if values is None:
        return repeat(None)
    return repeat(values[0]) if len(values) == 1 else values


def claims(rows: Iterable[Row], token: UUID) -> list[Claim]:
    make = Claim._make
    return [make((*row[:8], token, *row[8:], None)) for row in rows]
