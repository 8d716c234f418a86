"""When the desk looks for work, and how much it claims. Holds a few numbers, does no I/O."""

from __future__ import annotations

import random
from typing import NamedTuple

import trio

from musterd.config.settings import LiveSettings
from musterd.workers.idleness import Idleness, IdleState, Move

# After work was found or hinted at, the next look comes this soon, then ever later.
ECHO_SECONDS = 0.01
ECHO_FACTOR = 4.0
ECHO_SECONDS_MAX = 3600.0
SERVICE_WEIGHT = 0.02  # how much one job moves the measured service time
FIRST_WEIGHT = 0.2  # the same of the first ones: each tenant begins with a guess of its own
FIRST_JOBS = 40
BRISK_SECONDS = 0.001
NEVER = float("inf")


class Look(NamedTuple):
    """One claim, as things were when it was sent."""

    hints: int  # that had come by then
    was_listening: bool


class ClaimPacing:
    """Owned by a desk. A look is due, or the next one is planned:

        ┌─────┐  a look comes back short          ┌─────────┐  as planned, by 4 x later each time
        │ DUE │ ────────────────────────────────> │ PLANNED │ ──┐ up to the poll interval
        └─────┘ <──────────────────────────────── └─────────┘ <─┘
                  its time has come, or a hint; a look that was filled, or that parked or may have
                  missed jobs, leaves the next one due

    A hint can overtake the commit it speaks of, so the first looks after one follow each other
    quickly. A look that began while LISTENING and comes back short is the last: none is planned
    until something is new.
    """

    def __init__(self, settings: LiveSettings, idleness: Idleness, rng: random.Random) -> None:
        self._settings, self._idleness, self._rng = settings, idleness, rng
        self._is_due = True
        self._planned_local = 0.0
        self._hints = 0
        self._echo_seconds = ECHO_SECONDS
        self._dry_at_local = float("-inf")  # a look came back short then
        self._came_short = False  # the last look did
        self._took_one = False  # the last look was for one job, and the next one follows at once
        self._is_full = False  # at the last look as many jobs ran in the whole store as may
        self._service_seconds = 1.0
        self._first_left = FIRST_JOBS
        idleness.on_move(self._plan_anew)

    # -- when

    @property
    def is_due(self) -> bool:
        """Whether the queue may hold more than was taken."""
        return self._is_due

    @property
    def planned_local(self) -> float:
        """When to look without a hint, if no look is due."""
        return self._planned_local

    @property
    def dry_at_local(self) -> float:
        """When a look last came back short."""
        return self._dry_at_local

    def has_run_dry(self, within_seconds: float) -> bool:
        """Whether a look has come back short so recently, or hints would have told of more."""
        if self._planned_local == NEVER:
            return True
        is_dry = not (self._is_due or self._is_full)
        return is_dry and trio.current_time() - self._dry_at_local < within_seconds

    def hint(self) -> None:
        """There may be new work."""
        self._hints += 1
        self._is_due = True
        self._took_one = False
        self._echo_seconds = ECHO_SECONDS
        self._idleness.note_news()

    def poll(self) -> None:
        """Somebody wants it to look now."""
        self._is_due = True
        self._idleness.note_news()

    def poll_is_due(self) -> None:
        """The time that was planned has come."""
        self._is_due = True

    def begin_look(self) -> Look:
        return Look(self._hints, self._idleness.state is IdleState.LISTENING)

    def end_look(self, look: Look, taken: int, asked: int, more: int, *, full: bool) -> bool:
        """`more`: jobs that the look parked, or may have missed. Says whether the queue has just
        run dry, after work or a hint: time to ask when the next job is due.
        """
        self._is_full = full
        self._is_due = taken >= asked or more > 0 or look.hints < self._hints
        self._came_short = not self._is_due
        is_echo, self._took_one = self._took_one, taken == asked == 1
        if taken or self._is_due:
            self._echo_seconds = ECHO_SECONDS
            self._idleness.note_news()
        if self._is_due:
            return False
        ran_dry = self._echo_seconds == ECHO_SECONDS
        if is_echo:
            self._echo_seconds *= ECHO_FACTOR
        self._plan_next(look)
        return ran_dry

    def _plan_next(self, look: Look) -> None:
        now, poll_seconds = trio.current_time(), self._poll_seconds
        pause = min(poll_seconds, self._echo_seconds)
        self._dry_at_local = now
        self._echo_seconds = min(self._echo_seconds * ECHO_FACTOR, ECHO_SECONDS_MAX)
        self._planned_local = now + pause * self._rng.uniform(0.9, 1.1)
        if pause == poll_seconds:
            self._idleness.note_quiet()
            if look.was_listening and self._idleness.state is IdleState.LISTENING:
                self._planned_local = NEVER

    def _plan_anew(self, move: Move) -> None:
        if move.before is IdleState.LISTENING and self._planned_local == NEVER:
            self._planned_local = trio.current_time()

    @property
    def _poll_seconds(self) -> float:
        if self._idleness.is_scanned:
            return NEVER
        return self._settings.now.workers.poll_interval_ms / 1000

    # -- how much

    @property
    def expects_one(self) -> bool:
        """Whether the last look left nothing: what has come since is most likely a single job, and
        the store has a claim for one that is answered sooner.
        """
        return self._came_short

    @property
    def ahead_seconds(self) -> float:
        """How much work may lie ready, measured in the crew's time; 0 = none."""
        return self._settings.now.limits.claim_ahead_ms / 1000

    def note_service(self, seconds: float) -> None:
        weight = SERVICE_WEIGHT
        if self._first_left:
            self._first_left -= 1
            weight = FIRST_WEIGHT
        self._service_seconds += (seconds - self._service_seconds) * weight

    @property
    def is_brisk(self) -> bool:
        """Whether a job takes, as measured, hardly longer than to wake another worker for it."""
        return self._service_seconds < BRISK_SECONDS and self.ahead_seconds > 0

    def room_ahead(self, hands: int, ready: int) -> int:
        """How many more claims may lie ready: what so many hands start within `ahead_seconds`, as
        measured.

        Up to three batches: one is worked on while two are fetched. 0 until half a batch is
        missing, since a visit for a few costs nearly as much as one for many.
        """
        ahead_seconds, batch_max = self.ahead_seconds, self._settings.now.limits.claim_batch
        if not ahead_seconds:
            return 0
        soon = int(hands * ahead_seconds / max(self._service_seconds, 1e-6))
        target = min(3 * batch_max, soon)
        room = target - ready
        return room if 2 * room >= min(target, batch_max) else 0
