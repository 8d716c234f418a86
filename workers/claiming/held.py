"""A claim in this node's hands, from the claim to its settlement."""

from __future__ import annotations

from typing import NamedTuple

import attrs
import trio

from musterd.catalog.kinds import WorkKind
from musterd.store.leases import Claim, Hold, Settlement, Verdict
from musterd.store.lifecycle import Request
from musterd.store.phases import PhaseEnd
from musterd.workers.running import Note

STOPPING_SECONDS = 2.0  # what the end of work that was told to stop may take beyond its grace


@attrs.define(eq=False)
class Held:
    """`trusted_until` is on the clock that runs through a suspend: past it the lease may be
    another's, and the
    holder stops by itself without asking."""

    claim: Claim
    claimed_local: float
    trusted_until: float
    worker: int | None = None
    started_local: float | None = None
    start_written: bool = False
    scope: trio.CancelScope | None = None  # of the attempt under way, where it can be cancelled
    settling: bool = False
    lost: bool = False
    request: Request | None = None  # what somebody has asked for; obeyed once
    asked_local: float = 0.0  # when that was
    grace_seconds: float = 0.0  # how long its work may take to stop
    cannot_stop: bool = False  # its work runs where nothing can end it: it is waited for
    last_note: Note | None = None  # of its progress
    told_note: Note | None = None  # the last that is in the store
    phase: PhaseEnd | None = None  # the phase that it is in, as it would be settled now
    judged_by: WorkKind | None = None  # the phase in which it failed, where one did

    def note(self, note: Note) -> None:
        self.last_note = note

    def lose(self) -> None:
        """The lease is gone: its attempt is cancelled and nothing more is written for it."""
        self.lost = True
        if self.scope is not None:
            self.scope.cancel()

    def obey(self, request: Request) -> None:
        """Somebody wants it canceled or paused: its attempt is cancelled, and settled as that.

        Work that can't be stopped goes on, under its lease: were it left to itself, another run of
        the job, or of its target, could begin beside it.
        """
        self.request, self.asked_local = request, trio.current_time()
        if self.scope is not None and not self.cannot_stop:
            self.scope.cancel()

    def ignores_request(self, now_local: float) -> bool:
        """Whether its work should have ended by now."""
        asked = self.request is not None and self.started_local is not None
        return asked and now_local - self.asked_local > self.grace_seconds + STOPPING_SECONDS

    def hold(self) -> Hold:
        return Hold(self.claim.id, self.claim.token, self.worker, self.started_local)


class Ended(NamedTuple):
    """The end of an attempt, on its way to the store."""

    settlement: Settlement
    held: Held


def ending(held: Held, verdict: Verdict, ended_local: float) -> Ended:
    claim, started = held.claim, held.started_local
    settlement = Settlement(
        claim.id, claim.token, claim.attempt, held.worker, started, ended_local, *verdict,
        claim.target, claim.kind,
    )  # fmt: skip
    return Ended(settlement, held)
