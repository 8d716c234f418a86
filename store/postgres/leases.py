"""Leases: claimed and settled by exchanges, renewed, and reaped when they have run out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from itertools import repeat
from operator import itemgetter
from typing import Any, TypeVar
from uuid import UUID

import attrs

from musterd.store.errors import OutcomeUnknown, StoreError
from musterd.store.leases import (
    NONE_TURNED,
    Claim,
    ClaimRequest,
    Ends,
    Exchange,
    Hold,
    ProgressNote,
    Reaped,
    ReapRequest,
    Renewal,
    Settlement,
    Successes,
)
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.postgres.claiming import Claimer, ClaimForm, Marks, claims
from musterd.store.postgres.connection import Pool, TrioConnection
from musterd.store.postgres.phases import phases_ended
from musterd.store.postgres.statements import (
    Cursor,
    Params,
    Row,
    Statements,
    TimeLimit,
    ages,
    ended_params,
    float8s,
    given_params,
    int4s,
    int8s,
    numbers,
    texts,
    texts_if_any,
    tokens,
    words,
)

T = TypeVar("T")


@attrs.define
class _Visit:
    """One exchange under way."""

    ends: Ends
    claim: ClaimRequest | None
    now_local: float
    written: bool = False  # its first transaction is committed
    let_go: list[Cursor] = attrs.field(factory=list[Cursor])  # as in `SentClaim`


class Exchanger:
    """Makes the exchanges of one engine, which may run beside each other."""

    def __init__(self, pool: Pool, claimer: Claimer, limit_seconds: float) -> None:
        self._pool = pool
        self._send = claimer.send
        self._limit_seconds = limit_seconds
        self.claimer = claimer

    async def exchange(self, ends: Ends, claim: ClaimRequest | None, now_local: float) -> Exchange:
        """See `store.leases.Leases.exchange`."""
        visit = _Visit(ends, claim, now_local)
        try:
            with TimeLimit(self._limit_seconds, "exchange"):
                async with self._pool.use("settling and claiming") as conn:
                    return await self._pick_up(visit, conn) or await self._make(visit, conn)
        except StoreError as error:
            if visit.written:  # the second one broke: the caller reads back what there is
                raise OutcomeUnknown(str(error), "unreachable") from error
            raise

    async def _pick_up(self, visit: _Visit, conn: TrioConnection) -> Exchange | None:
        """A visit for one job and nothing else; None = it is more than that."""
        if visit.claim is None or visit.ends.are_any:
            return None
        claims = await self.claimer.pick_up(conn, visit.claim)
        return None if claims is None else Exchange(frozenset(), claims)

    async def _make(self, visit: _Visit, conn: TrioConnection) -> Exchange:
        settling, claiming = Settling(), None
        claim = visit.claim
        if claim is not None and _makes_room(visit.ends, claim):
            self.claimer.expect_limits()
        form = None if claim is None else self.claimer.form(claim)
        async with _one_transaction(conn, visit, form):
            if visit.ends.are_any:
                settling = await self._settle(conn, visit)
            if form is not None:
                claiming = await self.claimer.begin(conn, form)
        rejected, turned = await settling.answer()
        visit.written = True
        if rejected:
            rejected, turned = await self._settle_again(conn, visit, rejected, turned)
        unseen = await self.claimer.lower_marks(visit.let_go)
        if claiming is None or claim is None:
            return Exchange(rejected, [], turned=turned)
        claims, aside, full = await self.claimer.end(conn, claim, claiming)
        aside += unseen if claiming.start.marks else 0
        return Exchange(rejected, claims, aside, turned, full)

    async def _settle_again(
        self, conn: TrioConnection, visit: _Visit, rejected: frozenset[int], turned: Turned
    ) -> tuple[frozenset[int], Turned]:
        """A renewal may have split a lease while it was waited for: a statement that has waited
        sees no rows that were made meanwhile.
        """
        again = attrs.evolve(visit, ends=visit.ends.of(rejected), claim=None)
        async with conn.pipeline():
            settling = await self._settle(conn, again)
        rejected, more = await settling.answer()
        return rejected, {**turned, **more} if more else turned

    async def _settle(self, conn: TrioConnection, visit: _Visit) -> Settling:
        settlements, successes = visit.ends
        names = visit.ends.targets
        targets = {"targets": texts(names)}
        if names:  # holders before their jobs, as in every statement
            await self._send(conn, "lock_targets", targets)
        settling = Settling()
        phases = phases_ended(settlements, visit.now_local)
        if phases is not None or (settlements and successes.ids):
            await self._send(conn, "lock_leases", ended_params(visit.ends.jobs()))
        if phases is not None:  # before their jobs: their leases still stand
            await self._send(conn, "settle_phases", phases)
        if settlements:
            params = settlement_params(settlements, visit.now_local)
            settling.others = await self._send(conn, "settle", params)
        if successes.ids:
            params = success_params(successes, visit.now_local)
            settling.successes = await self._send(conn, "settle_successes", params)
        if names:
            # Without a claim in this transaction, idle nodes get a hint.
            await self._send(conn, "hand_over", {**targets, "ring": visit.claim is None})
            if self.claimer.marks.hide_jobs:
                visit.let_go.append(await self._send(conn, "turns_of", targets))
        return settling


Turned = Mapping[int, JobState]


@attrs.define
class Settling:
    """The settlements of one transaction, sent."""

    others: Cursor | None = None
    successes: Cursor | None = None

    async def answer(self) -> tuple[frozenset[int], Turned]:
        """Which were rejected, and which ended otherwise on request."""
        rejected, turned = rejected_and_turned(
            await self.others.fetchone() if self.others else None
        )
        row = await self.successes.fetchone() if self.successes else None
        return (rejected.union(row[0]) if row and row[0] else rejected), turned


def _one_transaction(
    conn: TrioConnection, visit: _Visit, form: ClaimForm | None
) -> AbstractAsyncContextManager[object, bool | None]:
    """For several statements. A single one needs none, and a pipeline costs more than it does."""
    is_alone = not visit.ends.are_any and form is not None and form.is_one_statement
    return nullcontext() if is_alone else conn.pipeline()


def _makes_room(ends: Ends, claim: ClaimRequest) -> bool:
    """Whether jobs of kinds with limits end: others of these kinds may be parked."""
    limited = {kind for kind, _ in claim.caps}
    return bool(limited) and not limited.isdisjoint(ends.kinds)


def rejected_and_turned(row: Row | None) -> tuple[frozenset[int], Turned]:
    if row is None:
        return frozenset(), NONE_TURNED
    rejected, canceled, paused = row
    if not (canceled or paused):
        return frozenset(rejected), NONE_TURNED
    turned = dict.fromkeys(canceled, JobState.CANCELED) | dict.fromkeys(paused, JobState.PAUSED)
    return frozenset(rejected), turned


Arrays = dict[str, str]


Columns = Mapping[str, Sequence[Any]]  # field by field, each of all settlements in their order


NO_PROGRESS: Arrays = dict.fromkeys(("percents", "notes", "phases", "phase_percents"), "{}")


def settlement_params(ended: Sequence[Settlement], now_local: float) -> Mapping[str, Any]:
    """An array that is left empty stands for one of nulls, and those of a batch of plain successes
    for what a success has.
    """
    in_order = sorted(ended, key=itemgetter(0))  # by id: two batches lock rows in the same order
    each = _columns(in_order)
    return {
        "ids": numbers(each["id"]),
        **ended_params(zip(each["id"], each["token"], each["target"], strict=True)),
        "workers": numbers(each["worker"]),
        "started_ages": ages(each["started_local"], now_local),
        "ended_ages": ages(each["ended_local"], now_local),
        "results": texts_if_any(each["result"]),
        "errors": texts_if_any(each["error"]),
        "reasons": texts_if_any(each["reason"]),
        "logs": texts_if_any(each["log"]),
        "spents": texts_if_any(each["spent"]),
        **_beside_success(each),
        **_progress_params(each),
    }


def success_params(ended: Successes, now_local: float) -> Mapping[str, Any]:
    return {
        "ids": int8s(ended.ids),
        **ended_params(ended.jobs()),
        "attempts": int4s(_alike(ended.attempts)),
        "kinds": texts(_alike(ended.kinds)),
        "targets": texts_if_any(ended.targets),
        "results": texts_if_any(ended.results),
        "workers": int4s(ended.workers),
        "started_ages": float8s([now_local - moment for moment in ended.started_local]),
        "ended_ages": float8s([now_local - moment for moment in ended.ended_local]),
    }


def _alike(values: Sequence[T]) -> Sequence[T]:
    """One value stands for all."""
    return values[:1] if values.count(values[0]) == len(values) else values


def _beside_success(each: Columns) -> Mapping[str, str]:
    states, outcomes = each["state"], each["outcome"]
    count = len(states)
    if states.count(JobState.SUCCEEDED) == outcomes.count(AttemptOutcome.SUCCEEDED) == count:
        return dict.fromkeys(("states", "outcomes", "delays", "forgive"), "{}")
    return {
        "states": words(states),
        "outcomes": words(outcomes),
        "delays": numbers(each["delay_seconds"]),
        "forgive": numbers(each["forgive"]),
    }


def settled_key_params(ended: Sequence[Settlement]) -> Mapping[str, Any]:
    each = _columns(ended)
    return {
        "ids": numbers(each["id"]),
        "tokens": tokens(each["token"]),
        "attempts": numbers(each["attempt"]),
        "states": words(each["state"]),
        "outcomes": words(each["outcome"]),
    }


def _columns(ended: Sequence[Settlement]) -> Columns:
    columns = zip(*ended, strict=True) if ended else repeat(())
    return dict(zip(Settlement._fields, columns, strict=False))


def _progress_params(each: Columns) -> Arrays:
    """Empty arrays where no attempt says anything."""
    percents, phases = each["percent"], each["phase"]
    if percents.count(None) == phases.count(None) == len(phases):
        return NO_PROGRESS
    return {
        "percents": numbers(percents),
        "notes": texts(each["note"]),
        "phases": texts(phase.name if phase else None for phase in phases),
        "phase_percents": numbers(phase.progress if phase else None for phase in phases),
    }


UNPARKED_AT_ONCE = 10_000  # of a kind whose cap is gone


@attrs.frozen
class PostgresLeases:
    """See `store.leases.Leases`. Exchanges and renewals have connections of their own."""

    statements: Statements
    exchanger: Exchanger
    marks: Marks
    for_exchanges: Pool
    for_renewals: Pool

    async def exchange(self, ends: Ends, claim: ClaimRequest | None, now_local: float) -> Exchange:
        return await self.exchanger.exchange(ends, claim, now_local)

    async def claims_under(self, token: UUID) -> list[Claim]:
        found = await self.statements.run("claims_under", {"token": token}, self.for_exchanges)
        return claims(found, token)

    async def settled_already(self, settlements: Sequence[Settlement]) -> frozenset[int]:
        params = settled_key_params(settlements)
        found = await self.statements.run("settled_already", params, self.for_exchanges)
        return frozenset(row[0] for row in found)

    async def renew(
        self, holds: Sequence[Hold], lease_seconds: float | None, now_local: float
    ) -> Renewal:
        params = {**hold_params(holds, now_local), "lease_seconds": lease_seconds}
        return _renewal(await self.statements.run("renew", params, self.for_renewals))

    async def note_progress(self, notes: Sequence[ProgressNote]) -> frozenset[int]:
        found = await self.statements.run("note_progress", progress_params(notes))
        return frozenset(row[0] for row in found)

    async def reap(self, request: ReapRequest) -> list[Reaped]:
        if uncapped := [kind for kind, rule in request.rules.items() if not rule.capped]:
            unparking = {"kinds": texts(uncapped), "batch": UNPARKED_AT_ONCE}
            await self.statements.execute("unpark_uncapped", unparking)
        params = reap_params(request)
        found = await self.statements.run("reap", {**params, "targeted": False})
        if found and found[-1][0] is None:
            found.pop()
            found += await self._reap_targeted({**params, "batch": request.batch - len(found)})
        reaped = [_reaped(row) for row in found]
        if any(one.state is JobState.QUEUED for one in reaped):
            self.marks.walk_all()  # their places are old
        return reaped

    async def _reap_targeted(self, params: Params) -> list[Row]:
        """Leases of jobs with a target; the targets are passed on in a statement that sees it."""
        with self.statements.limit("reap"):
            async with self.statements.shared.use("reaping") as conn:
                await conn.execute("begin", prepare=False)
                reaping = await self.statements.send(conn, "reap", {**params, "targeted": True})
                found = await reaping.fetchall()
                targets = texts(sorted({row[5] for row in found}))
                await self.statements.send(conn, "hand_over", {"targets": targets, "ring": True})
                await conn.execute("commit", prepare=False)
        return found


def hold_params(held: Sequence[Hold], now_local: float) -> Params:
    started = [hold for hold in held if hold.started_local is not None]
    return {
        **given_params((hold.id, hold.token) for hold in held),
        "started": numbers(hold.id for hold in started),
        "workers": numbers(hold.worker for hold in started),
        "started_ages": ages([hold.started_local for hold in started], now_local),
    }


def _renewal(found: Sequence[Row]) -> Renewal:
    ((kept, asked, requests),) = found
    return Renewal(frozenset(kept), dict(zip(asked or (), requests or (), strict=True)))


def progress_params(notes: Sequence[ProgressNote]) -> Params:
    in_order = sorted(notes, key=itemgetter(0))
    return {
        "ids": numbers(note.id for note in in_order),
        "tokens": tokens(one.token for one in in_order),
        "percents": numbers(note.percent for note in in_order),
        "notes": texts(note.note for note in in_order),
        "spents": texts(note.spent for note in in_order),
        **_phase_params(in_order),
    }


def _phase_params(in_order: Sequence[ProgressNote]) -> Arrays:
    return {
        "phases": texts(note.phase for note in in_order),
        "phase_percents": numbers(note.phase_percent for note in in_order),
    }


def reap_params(request: ReapRequest) -> Params:
    return {
        "batch": request.batch,
        "kinds": texts(request.rules),
        "on_lease_lost": words(rule.on_lease_lost for rule in request.rules.values()),
        "max_attempts": numbers(rule.max_attempts for rule in request.rules.values()),
        "default_on_lease_lost": request.default.on_lease_lost,
        "default_max_attempts": request.default.max_attempts,
    }


def _reaped(row: Row) -> Reaped:
    job_id, kind, attempt, node, state = row[:5]
    return Reaped(job_id, kind, attempt, node, JobState(state))
