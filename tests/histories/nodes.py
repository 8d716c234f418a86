"""What a daemon asks of its store, in any order: it claims, starts, notes, settles and renews. Some
of what it has lost it goes on with all the same.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

import attrs
import trio

from musterd.catalog.kinds import Catalog
from musterd.store.errors import OutcomeUnknown, StoreUnavailable
from musterd.store.leases import (
    NO_SUCCESSES,
    Claim,
    ClaimRequest,
    Ends,
    Exchange,
    Hold,
    ProgressNote,
    Settlement,
    Successes,
    Verdict,
)
from musterd.store.lifecycle import Request
from musterd.store.phases import PhaseEnd, PhaseStart, PhaseState, PhaseStep
from musterd.workers.outcome import SUCCEEDED, Outcome, is_plain, judge, released, requested
from tests.histories.line import Line
from tests.histories.plan import Plan
from tests.simulation.users import PHASES

PIPELINE = "pipeline"
GHOSTS_MAX = 6
HELD_MAX = 6
ENDINGS = ("success",) * 6 + ("retry", "retry", "failure", "cancel", "snooze", "release")
ERROR_BYTES = 1000


@attrs.define(eq=False)
class Held:
    """A claim in hand. `phase`: which of its phases it is in; None = it has not begun."""

    claim: Claim
    worker: int | None
    started_epoch: float | None = None
    request: Request | None = None
    phase: int | None = None

    @property
    def hold(self) -> Hold:
        return Hold(self.claim.id, self.claim.token, self.worker, self.started_epoch)

    def start(self, worker: int) -> None:
        if self.started_epoch is None:
            self.worker = worker
            self.started_epoch = max(time.time(), self.claim.claimed_epoch)

    def settled(self, verdict: Verdict) -> Settlement:
        """As `workers.claiming.held` has it."""
        claim, ended = self.claim, max(time.time(), self.started_epoch or 0.0)
        return Settlement(
            claim.id, claim.token, claim.attempt, self.worker, self.started_epoch, ended,
            *verdict, claim.target, claim.kind, 0.001,
        )  # fmt: skip


@attrs.define(eq=False)
class Node:
    """One process: what it forgets when it dies is gone with this."""

    name: str
    line: Line
    rng: random.Random
    plan: Plan
    catalog: Catalog
    held: dict[int, Held] = attrs.field(factory=dict[int, Held])
    unsettled: dict[int, Settlement] = attrs.field(factory=dict[int, Settlement])
    unread: list[UUID] = attrs.field(factory=list[UUID])  # tokens of claims without a reply
    ghosts: list[Held] = attrs.field(factory=list[Held])  # no longer in hand
    begun: set[tuple[UUID, int]] = attrs.field(factory=set[tuple[UUID, int]])  # phases of claims

    def token(self) -> UUID:
        return UUID(int=self.rng.getrandbits(128), version=4)

    async def turn(self) -> None:
        """Of the task that works."""
        dice = self.rng.random()
        if self.unread and dice < 0.8:
            await self.read_back()
        elif self.ghosts and dice < 0.1:
            await self.haunt(self.rng.choice(self.ghosts))
        elif dice < 0.25:
            await self.note_progress()
        elif dice < 0.5 and any(one.claim.kind == PIPELINE for one in self.held.values()):
            await self.go_through_phases()
        else:
            await self.visit()

    # -- claims and ends

    async def visit(self) -> None:
        ended = [one for one in list(self.held.values()) if self.rng.random() < 0.5]
        for one in ended:
            del self.held[one.claim.id]
        ends = self._ends(ended)
        claim = self._wanted() if self.rng.random() < 0.85 else None
        if not (claim or ends.are_any):
            await trio.lowlevel.checkpoint()
            return
        await self._exchange(ends, claim)
        self.ghosts = [*self.ghosts, *ended][-GHOSTS_MAX:]

    async def _exchange(self, ends: Ends, claim: ClaimRequest | None) -> None:
        self.unsettled = {one.id: one for one in ends.all()}
        try:
            done: Exchange = await self.line.leases.exchange(ends, claim)
        except OutcomeUnknown:
            if claim is not None:
                self.unread.append(claim.token)
            raise
        self.unsettled = {one.id: one for one in ends.all() if one.id in done.held_up}
        if claim is not None:
            self.take(done.claims)

    def take(self, claims: Iterable[Claim]) -> None:
        for claim in claims:
            known = self.held.get(claim.id)
            if known is not None:
                if known.claim.token == claim.token:
                    continue
                self.ghosts.append(known)
            held = self.held[claim.id] = Held(claim, claim.worker)
            if claim.worker is not None:
                held.start(claim.worker)

    def _wanted(self) -> ClaimRequest | None:
        rng, plan = self.rng, self.plan
        workers = rng.randrange(0, 1 + max(0, HELD_MAX - len(self.held)))
        ahead = rng.choice((0, 0, 1, 2))
        if not workers + ahead:
            return None
        return ClaimRequest(
            self.token(), self.name, tuple(range(1, workers + 1)), ahead, plan.lease_seconds,
            tuple(plan.caps.items()), plan.leased_max,
        )  # fmt: skip

    def _ends(self, ended: Iterable[Held]) -> Ends:
        """With those of earlier visits of which nothing is known. Each job once."""
        again = self.unsettled
        given = [(one, self._verdict(one)) for one in ended]
        given = [(one, verdict) for one, verdict in given if one.claim.id not in again]
        plain = [one for one, verdict in given if self._is_plain(one, verdict)]
        others = [one.settled(verdict) for one, verdict in given if one not in plain]
        return Ends([*again.values(), *others], _successes(plain) if plain else NO_SUCCESSES)

    def _is_plain(self, held: Held, verdict: Verdict) -> bool:
        started = held.started_epoch is not None and held.worker is not None
        return started and is_plain(verdict) and self.rng.random() < 0.7

    def _verdict(self, held: Held) -> Verdict:
        kind = self.catalog[held.claim.kind]
        if held.request is not None:
            return requested(held.request)
        ended: Any = self.rng.choice(ENDINGS)
        if ended == "release":
            return released("its node has enough to do")
        is_over = held.phase is None or held.phase == len(PHASES) - 1
        if ended == "success" and held.claim.kind == PIPELINE and not is_over:
            return released("its phases are not finished")
        delay = self.rng.choice((0.0, 0.01, 0.05)) if ended in {"retry", "snooze"} else None
        verdict = judge(Outcome(ended, delay_seconds=delay), held.claim, kind, ERROR_BYTES)
        return verdict._replace(phase=_phase_end(held, verdict))

    def verdict_in_the_end(self, held: Held) -> Verdict:
        """It does what is asked of it, and else succeeds."""
        return SUCCEEDED if held.request is None else requested(held.request)

    async def read_back(self) -> None:
        token = self.unread[0]
        self.take(await self.line.leases.claims_under(token))
        self.unread.remove(token)

    # -- while it is in hand

    async def note_progress(self) -> None:
        some = [one for one in self.held.values() if self.rng.random() < 0.6]
        notes = [self._note(one) for one in some]
        if notes:
            await self.line.leases.note_progress(notes)
        else:
            await trio.lowlevel.checkpoint()

    def _note(self, held: Held) -> ProgressNote:
        spent = self.rng.choice((None, '{"tokens": 3}'))
        phase = None if held.phase is None else PHASES[held.phase]
        percent = self.rng.choice((None, 10.0, 50.0))
        return ProgressNote(
            held.claim.id, held.claim.token, percent, "a note" if percent else None, spent,
            phase, None if phase is None else percent,
        )  # fmt: skip

    async def go_through_phases(self) -> None:
        one = self.rng.choice([one for one in self.held.values() if one.claim.kind == PIPELINE])
        one.start(1)
        claim, started = one.claim, one.started_epoch or 0.0
        if one.phase is None:
            start = PhaseStart(claim.id, claim.token, one.worker, started, PHASES)
            found = await self.line.phases.begin([start])
            if claim.id in found:
                self._begin(one, min(len(found[claim.id]), len(PHASES) - 1))
            else:
                self.lose(one)
        elif one.phase < len(PHASES) - 1:
            finished, following = PHASES[one.phase : one.phase + 2]
            step = PhaseStep(claim.id, claim.token, finished, "1", following, PHASES)
            if claim.id in await self.line.phases.advance([step]):
                self._begin(one, one.phase + 1)
            else:
                self.lose(one)

    def _begin(self, held: Held, phase: int) -> None:
        held.phase, claim = phase, held.claim
        if (claim.token, phase) not in self.begun and claim.id in self.held:
            self.begun.add((claim.token, phase))
            told = {"attempt": claim.attempt, "token": str(claim.token), "phase": PHASES[phase]}
            self.line.recorder.note("begin", job=claim.id, who=self.line.who, **told)

    async def renew(self) -> None:
        """By another task, while it works."""
        holds = {one.claim.id: one for one in self.held.values()}
        if not holds:
            await trio.lowlevel.checkpoint()
            return
        seconds = self.plan.lease_seconds if self.rng.random() < 0.8 else None
        kept = await self.line.leases.renew([one.hold for one in holds.values()], seconds)
        for job_id, one in holds.items():
            if job_id not in kept.kept:
                self.lose(one)
            elif job_id in kept.requests:
                one.request = kept.requests[job_id]

    def lose(self, held: Held) -> None:
        if self.held.get(held.claim.id) is held:
            del self.held[held.claim.id]
        self.ghosts = [*self.ghosts, held][-GHOSTS_MAX:]

    async def haunt(self, ghost: Held) -> None:
        """Writes under a claim that is over, or should be: as a node that was away does."""
        claim, dice = ghost.claim, self.rng.random()
        if claim.id in self.held or claim.id in self.unsettled:
            await trio.lowlevel.checkpoint()
        elif dice < 0.4:
            settled = ghost.settled(self._verdict(ghost))
            await self.line.leases.exchange(Ends([settled]), None)
        elif dice < 0.6:
            await self.line.leases.renew([ghost.hold], self.plan.lease_seconds)
        elif dice < 0.8:
            await self.line.leases.note_progress([self._note(ghost)])
        elif ghost.phase is not None and ghost.phase < len(PHASES) - 1:
            finished, following = PHASES[ghost.phase : ghost.phase + 2]
            step = PhaseStep(claim.id, claim.token, finished, "2", following, PHASES)
            await self.line.phases.advance([step])


def _successes(plain: list[Held]) -> Successes:
    now = time.time()
    started = [one.started_epoch or now for one in plain]
    ended = [max(now, one) for one in started]
    workers = [one.worker or 0 for one in plain]
    results = ["[1]" if each % 2 else None for each in workers]
    claims = [one.claim for one in plain]
    return Successes.of(claims, workers, started, ended, results, [0.001] * len(plain))


def _phase_end(held: Held, verdict: Verdict) -> PhaseEnd | None:
    if held.phase is None:
        return None
    is_done = verdict.state is SUCCEEDED.state
    state = PhaseState.SUCCEEDED if is_done else PhaseState.FAILED
    return PhaseEnd(PHASES[held.phase], state, names=PHASES if is_done else ())


async def patiently(turn: Callable[[], Any], seconds: float) -> bool:
    """A turn of somebody; one that the store does not take is over, after a pause. Gives whether
    it was taken.
    """
    try:
        await turn()
    except StoreUnavailable:
        await trio.sleep(seconds)
        return False
    return True
