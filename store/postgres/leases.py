"""Leases: renewed, and reaped when they have run out; `exchanges` claims and settles."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from uuid import UUID

import attrs

from musterd.store.errors import InputRefused
from musterd.store.leases import (
    Claim,
    ClaimRequest,
    Ends,
    Exchange,
    Hold,
    LogNote,
    ProgressNote,
    Reaped,
    ReapRequest,
    Renewal,
    Settlement,
)
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.postgres.claiming import Marks, claims
from musterd.store.postgres.connection import Pool
from musterd.store.postgres.errors import Locked
from musterd.store.postgres.exchanges import Arrays, Exchanger, settled_key_params
from musterd.store.postgres.statements import (
    Params,
    Row,
    Statements,
    epochs,
    given_params,
    numbers,
    texts,
    tokens,
    words,
)

LOOKED_AT = 1000  # stretches of each priority, after a claim that was refused
UNPARKED_AT_ONCE = 10_000  # of a kind whose cap is gone


@attrs.frozen
class PostgresLeases:
    """See `store.leases.Leases`. Exchanges and renewals have connections of their own."""

    statements: Statements
    exchanger: Exchanger
    marks: Marks
    for_exchanges: Pool
    for_renewals: Pool

    async def exchange(self, ends: Ends, claim: ClaimRequest | None) -> Exchange:
        return await self.exchanger.exchange(ends, claim)

    async def set_aside(self, refused: ClaimRequest) -> list[Settlement]:
        params = {"token": refused.token, "node": refused.node, "bound": LOOKED_AT}
        found = await self.statements.run("set_aside", params, self.for_exchanges)
        return [
            Settlement(
                job_id, refused.token, attempt, None, None, ended, JobState.FAILED,
                AttemptOutcome.FAILED, error=error, target=target, kind=kind,
            )
            for job_id, kind, target, attempt, ended, error in found
        ]  # fmt: skip

    async def claims_under(self, token: UUID) -> list[Claim]:
        found = await self.statements.run("claims_under", {"token": token}, self.for_exchanges)
        return claims(found, token)

    async def settled_already(self, settlements: Sequence[Settlement]) -> frozenset[int]:
        params = settled_key_params(settlements)
        found = await self.statements.run("settled_already", params, self.for_exchanges)
        return frozenset(row[0] for row in found)

    async def renew(self, holds: Sequence[Hold], lease_seconds: float | None) -> Renewal:
        params = {**hold_params(holds), "lease_seconds": lease_seconds}
        return _renewal(await self.statements.run("renew", params, self.for_renewals))

    async def note_progress(self, notes: Sequence[ProgressNote]) -> frozenset[int]:
        """Where somebody else holds a job, the notes of the others are written, and it raises
        `Locked`: they may all be sent again.
        """
        if not self.exchanger.is_wary:
            try:
                return await self._note(notes)
            except Locked:
                pass  # by whom is found out next
        held = await self.exchanger.held_up([note.id for note in notes])
        taken = await self._note([note for note in notes if note.id not in held])
        if held:
            raise Locked(f"note_progress: another transaction holds jobs {sorted(held)}", "timeout")
        return taken

    async def note_logs(self, notes: Sequence[LogNote]) -> frozenset[int]:
        found = await self.statements.run_soon("note_logs", log_params(notes))
        return frozenset(row[0] for row in found)

    async def _note(self, notes: Sequence[ProgressNote]) -> frozenset[int]:
        found = await self.statements.run_soon("note_progress", progress_params(notes))
        return frozenset(row[0] for row in found)

    async def reap(self, request: ReapRequest) -> list[Reaped]:
        if uncapped := [kind for kind, rule in request.rules.items() if not rule.capped]:
            unparking = {"kinds": texts(uncapped), "batch": UNPARKED_AT_ONCE}
            await self.statements.execute("unpark_uncapped", unparking)
        reaped: list[Reaped] = []
        refused: InputRefused | None = None
        try:
            await self._reap(request, reaped)
        except InputRefused as error:
            refused = error
        if refused is not None:  # a row cannot be written as it is: it ends first, and alone
            found = await self.statements.run("set_aside_lost", {"bound": request.batch})
            if not found:
                raise refused
            reaped += [
                Reaped(job_id, kind, attempt, node, JobState.FAILED, damage)
                for job_id, kind, attempt, node, damage in found
            ]
            await self._reap(request, reaped)
        if any(one.state is JobState.QUEUED for one in reaped):
            self.marks.walk_all()  # their places are old
        return reaped

    async def _reap(self, request: ReapRequest, reaped: list[Reaped]) -> None:
        """What was reaped is there even if it raises."""
        params = reap_params(request)
        found = await self.statements.run("reap", {**params, "targeted": False})
        has_targeted = bool(found) and found[-1][0] is None
        reaped += [_reaped(row) for row in found if row[0] is not None]
        if has_targeted:
            left = {**params, "batch": request.batch - len(found) + 1}
            reaped += [_reaped(row) for row in await self._reap_targeted(left)]

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


def hold_params(held: Sequence[Hold]) -> Params:
    started = [hold for hold in held if hold.started_epoch is not None]
    return {
        **given_params((hold.id, hold.token) for hold in held),
        "started": numbers(hold.id for hold in started),
        "workers": numbers(hold.worker for hold in started),
        "started_epochs": epochs([hold.started_epoch for hold in started]),
    }


def _renewal(found: Sequence[Row]) -> Renewal:
    ((kept, asked, requests, now_epoch),) = found
    return Renewal(frozenset(kept), dict(zip(asked or (), requests or (), strict=True)), now_epoch)


def progress_params(notes: Sequence[ProgressNote]) -> Params:
    in_order = sorted(notes, key=itemgetter(0))
    return {
        **_fence_params(in_order),
        "percents": numbers(note.percent for note in in_order),
        "notes": texts(note.note for note in in_order),
        "spents": texts(note.spent for note in in_order),
        **_phase_params(in_order),
    }


def log_params(notes: Sequence[LogNote]) -> Params:
    in_order = sorted(notes, key=itemgetter(0))
    return {
        **_fence_params(in_order),
        "firsts": numbers(note.first for note in in_order),
        "lasts": numbers(note.last for note in in_order),
        "floors": numbers(note.floor for note in in_order),
        "texts": texts(note.text for note in in_order),
    }


def _fence_params(in_order: Sequence[ProgressNote | LogNote]) -> Arrays:
    return {
        "ids": numbers(note.id for note in in_order),
        "tokens": tokens(note.token for note in in_order),
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
