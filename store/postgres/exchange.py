"""The exchange: settles and claims in one transaction, on a connection of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from itertools import repeat
from operator import itemgetter
from typing import Any

import attrs

from musterd.store.errors import OutcomeUnknown, StoreError
from musterd.store.leases import (
    NONE_TURNED,
    ClaimRequest,
    Exchange,
    Settlement,
)
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.postgres.arrays import ages, numbers, texts, texts_if_any, tokens, words
from musterd.store.postgres.claiming import Claimer, ClaimForm
from musterd.store.postgres.connection import TrioConnection
from musterd.store.postgres.marks import Marks
from musterd.store.postgres.phases import phases_ended
from musterd.store.postgres.pool import Pool
from musterd.store.postgres.sets import given_params
from musterd.store.postgres.statements import Cursor, Row, Send, TimeLimit


@attrs.define
class _Visit:
    """One exchange under way."""

    settlements: Sequence[Settlement]
    claim: ClaimRequest | None
    now_local: float
    written: bool = False  # its first transaction is committed
    let_go: list[Cursor] = attrs.field(factory=list[Cursor])  # as in `SentClaim`


class Exchanger:
    """Makes the exchanges of one engine, which may run beside each other."""

    def __init__(self, pool: Pool, send: Send, marks: Marks, limit_seconds: float) -> None:
        self._pool = pool
        self._send = send
        self._limit_seconds = limit_seconds
        self.claimer = Claimer(send, marks)

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
            if visit.written:  # the second one broke: the caller reads back what there is
                raise OutcomeUnknown(str(error), "unreachable") from error
            raise

    async def _make(self, visit: _Visit, conn: TrioConnection) -> Exchange:
        settling = claiming = None
        claim = visit.claim
        if claim is not None and _makes_room(visit.settlements, claim):
            self.claimer.expect_limits()
        form = None if claim is None else self.claimer.form(claim)
        async with _one_transaction(conn, visit, form):
            if visit.settlements:
                settling = await self._settle(conn, visit)
            if form is not None:
                claiming = await self.claimer.begin(conn, form)
        settled = (await settling.fetchone()) if settling else None
        rejected, turned = rejected_and_turned(settled)
        unseen = await self.claimer.lower_marks(visit.let_go)
        if claiming is None or claim is None:
            return Exchange(rejected, [], turned=turned)
        visit.written = True
        claims, aside, full = await self.claimer.end(conn, claim, claiming)
        aside += unseen if claiming.start.marks else 0
        return Exchange(rejected, claims, aside, turned, full)

    async def _settle(self, conn: TrioConnection, visit: _Visit) -> Cursor:
        settlements = visit.settlements
        targets = {"targets": targets_of(settlements)}
        has_targets = targets["targets"] is not None
        if has_targets:  # holders before their jobs, as in every statement
            await self._send(conn, "lock_targets", targets)
        params = settlement_params(settlements, visit.now_local)
        phases = phases_ended(settlements, visit.now_local)
        if phases is not None:  # before their jobs: their leases still stand
            await self._send(conn, "lock_leases", params)
            await self._send(conn, "settle_phases", phases)
        settling = await self._send(conn, "settle", params)
        if has_targets:
            # Without a claim in this transaction, idle nodes get a hint.
            await self._send(conn, "hand_over", {**targets, "ring": visit.claim is None})
            if self.claimer.marks.hide_jobs:
                visit.let_go.append(await self._send(conn, "turns_of", targets))
        return settling


def _one_transaction(
    conn: TrioConnection, visit: _Visit, form: ClaimForm | None
) -> AbstractAsyncContextManager[object, bool | None]:
    """For several statements. A single one needs none, and a pipeline costs more than it does."""
    is_alone = not visit.settlements and form is not None and form.is_one_statement
    return nullcontext() if is_alone else conn.pipeline()


def _makes_room(settlements: Sequence[Settlement], claim: ClaimRequest) -> bool:
    """Whether jobs of kinds with limits end: others of these kinds may be parked."""
    limited = {kind for kind, _ in claim.caps}
    return bool(limited) and any(one.kind in limited for one in settlements)


def targets_of(settled: Sequence[Settlement]) -> str | None:
    """In the order in which whoever locks several takes them; None = there are none."""
    found = {one.target for one in settled if one.target is not None}
    return texts(sorted(found)) if found else None


def rejected_and_turned(row: Row | None) -> tuple[frozenset[int], Mapping[int, JobState]]:
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
        **given_params(zip(each["id"], each["token"], strict=True)),
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
