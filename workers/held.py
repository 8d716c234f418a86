"""A claim in this node's hands, from the claim to its settlement."""

from __future__ import annotations

import attrs
import trio

from musterd.store.job import Claim, Hold, Request
from musterd.workers.running import Note


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
    last_note: Note | None = None  # of its progress

    def note(self, note: Note) -> None:
        self.last_note = note

    def lose(self) -> None:
        """The lease is gone: its attempt is cancelled and nothing more is written for it."""
        self.lost = True
        if self.scope is not None:
            self.scope.cancel()

    def obey(self, request: Request) -> None:
        """Somebody wants it canceled or paused: its attempt is cancelled, and settled as that."""
        self.request = request
        if self.scope is not None:
            self.scope.cancel()

    def hold(self) -> Hold:
        return Hold(self.claim.id, self.claim.token, self.worker, self.started_local)
