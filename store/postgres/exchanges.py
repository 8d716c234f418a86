"""Exchanges: settlements and a claim in one transaction, without what somebody else holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from itertools import repeat
from operator import itemgetter
from typing import Any, TypeVar

import attrs
import trio

from musterd.store.errors import OutcomeUnknown, StoreError
from musterd.store.leases import (
    NONE_TURNED,
    ClaimRequest,
    Ends,
    Exchange,
    Settlement,
    Successes,
)
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.postgres.claiming import Claimer, ClaimForm
from musterd.store.postgres.connection import Pool, TrioConnection
from musterd.store.postgres.errors import Locked
from musterd.store.postgres.phases import phases_ended
from musterd.store.postgres.statements import (
    LOCK_SECONDS,
    Cursor,
    Row,
    ended_params,
    epochs,
    float8s,
    int4s,
    int8s,
    ms,
    numbers,
    texts,
    texts_if_any,
    tokens,
    words,
)
from musterd.store.postgres.time_limit import TimeLimit

T = TypeVar("T")


@attrs.define
class _Visit:
    """One exchange under way."""

    ends: Ends
    claim: ClaimRequest | None
    written: bool = False  # its first transaction is committed
    let_go: list[Cursor] = attrs.field(factory=list[Cursor])  # as in `SentClaim`


WARY_SECONDS = 10.0  # after a lock that took longer


class Exchanger:
    """Makes the exchanges of one engine, which may run beside each other.

    Whoever may act on jobs may do so in a transaction that stays open. A settlement that meets such
    a one gives up soon, and for a while each exchange leaves out what is held, and asks for that
    first. Others pay nothing for it.
    """

    def __init__(self, pool: Pool, claimer: Claimer, limit_seconds: float) -> None:
        self._pool = pool
        self._send = claimer.send
        self._limit_seconds = limit_seconds
        self.claimer = claimer
        self._wary_until_local = float("-inf")

    async def exchange(self, ends: Ends, claim: ClaimRequest | None) -> Exchange:
        """See `store.leases.Leases.exchange`."""
        with TimeLimit(self._limit_seconds, "exchange"):
            if self.is_wary and ends.are_any:
                return await self._visit_warily(ends, claim)
            try:
                return await self._visit(ends, claim)
            except Locked:
                if not ends.are_any:
                    raise
                return await self._visit_warily(ends, claim)

    @property
    def is_wary(self) -> bool:
        return trio.current_time() < self._wary_until_local

    async def held_up(self, ids: Sequence[int], targets: Sequence[str] = ()) -> frozenset[int]:
        """Which of these jobs somebody else holds, or their targets."""
        params = {"ids": numbers(ids), "targets": texts(targets)}
        with TimeLimit(self._limit_seconds, "held_up"):
            async with self._pool.use("looking for what is held") as conn:
                found = await (await self._send(conn, "held_up", params)).fetchall()
        if found:
            self._wary_until_local = trio.current_time() + WARY_SECONDS
        return frozenset(row[0] for row in found)

    async def _visit_warily(self, ends: Ends, claim: ClaimRequest | None) -> Exchange:
        ids = ends.ids
        held = await self.held_up(ids, ends.targets)
        free = ends.of(set(ids) - held)
        try:
            done = await self._visit(free, claim)
        except Locked:
            done, held = await self._visit_apart(free, claim, held)
        return done._replace(held_up=held)

    async def _visit_apart(
        self, free: Ends, claim: ClaimRequest | None, held: frozenset[int]
    ) -> tuple[Exchange, frozenset[int]]:
        """What ends does not wait for a claim that has to wait for others (`lock_caps`), nor the
        claim for an end that somebody holds who came in between.
        """
        if claim is not None and free.are_any:
            with suppress(Locked):
                return (await self._visit(free, None))._replace(parked=1), held  # to claim soon
        held = held.union(free.ids)
        return await self._visit(Ends(), claim), held

    async def _visit(self, ends: Ends, claim: ClaimRequest | None) -> Exchange:
        visit = _Visit(ends, claim)
        if claim is None and not ends.are_any:
            return Exchange(frozenset(), [])
        try:
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
        found = await self.claimer.pick_up(conn, visit.claim)
        if found is None:
            return None
        return Exchange(frozenset(), found.claims, now_epoch=found.claimed_epoch)

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
        claims, now_epoch, aside, full = await self.claimer.end(conn, claim, claiming)
        aside += unseen if claiming.start.marks else 0
        return Exchange(rejected, claims, aside, turned, full, now_epoch=now_epoch)

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
        if conn.prepare_threshold is None:  # nothing can be set on the session of a pooler's
            await self._send(conn, "bound_waits", {"lock_ms": ms(LOCK_SECONDS)})
        names = visit.ends.targets
        targets = {"targets": texts(names)}
        if names:  # holders before their jobs, as in every statement
            await self._send(conn, "lock_targets", targets)
        settling = Settling()
        phases = phases_ended(settlements)
        if phases is not None or (settlements and successes.ids):
            await self._send(conn, "lock_leases", ended_params(visit.ends.jobs()))
        if phases is not None:  # before their jobs: their leases still stand
            await self._send(conn, "settle_phases", phases)
        if settlements:
            settling.others = await self._send(conn, "settle", settlement_params(settlements))
            if begun := [one for one in settlements if one.log_begun]:
                ids, fences = numbers(one.id for one in begun), tokens(one.token for one in begun)
                await self._send(conn, "forget_logs", {"ids": ids, "tokens": fences})
        if successes.ids:
            params = success_params(successes)
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


def settlement_params(ended: Sequence[Settlement]) -> Mapping[str, Any]:
    """An array that is left empty stands for one of nulls, and those of a batch of plain successes
    for what a success has.
    """
    in_order = sorted(ended, key=itemgetter(0))  # by id: two batches lock rows in the same order
    each = _columns(in_order)
    return {
        "ids": numbers(each["id"]),
        **ended_params(zip(each["id"], each["token"], each["target"], strict=True)),
        "workers": numbers(each["worker"]),
        "started_epochs": epochs(each["started_epoch"]),
        "ended_epochs": epochs(each["ended_epoch"]),
        "results": texts_if_any(each["result"]),
        "errors": texts_if_any(each["error"]),
        "reasons": texts_if_any(each["reason"]),
        "logs": texts_if_any(each["log"]),
        "spents": texts_if_any(each["spent"]),
        **_beside_success(each),
        **_progress_params(each),
    }


def success_params(ended: Successes) -> Mapping[str, Any]:
    return {
        "ids": int8s(ended.ids),
        **ended_params(ended.jobs()),
        "attempts": int4s(_alike(ended.attempts)),
        "kinds": texts(_alike(ended.kinds)),
        "targets": texts_if_any(ended.targets),
        "results": texts_if_any(ended.results),
        "workers": int4s(ended.workers),
        "started_epochs": float8s(ended.started_epochs),
        "ended_epochs": float8s(ended.ended_epochs),
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
