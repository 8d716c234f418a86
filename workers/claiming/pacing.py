"""When to look for work and how much to take: the desk's pace. Holds a few numbers, does no I/O."""

from __future__ import annotations

import random

import attrs
import trio

from musterd.config.live import LiveSettings

# After work was found or hinted at, the next look comes this soon, then ever later.
ECHO_SECONDS = 0.01
ECHO_FACTOR = 4.0
SERVICE_WEIGHT = 0.02  # how much one job moves the measured service time
FIRST_WEIGHT = 0.2  # the same of the first ones: each tenant begins with a guess of its own
FIRST_JOBS = 40
BRISK_SECONDS = 0.001


@attrs.define(eq=False)
class ClaimPacing:
    """`hungry`: the queue may hold more than was taken. A look that comes back short ends it until
    the next poll or hint.

    A hint can overtake the commit it speaks of, so the first polls after one follow each other
    quickly. Where hints are trusted, the last of them is the last until something is new.
    """

    settings: LiveSettings
    rng: random.Random
    is_watched: bool = False  # somebody else looks at the queue: no polls of its own
    hungry: bool = True
    next_poll_local: float = 0.0
    short_at_local: float = float("-inf")  # when the queue was last seen with nothing left to claim
    no_room: bool = False  # at the last look as many jobs ran in the whole store as may
    calm: bool = False  # no polls: there is nothing, and hints are trusted to say so when there is
    news: trio.Event = attrs.field(factory=trio.Event)  # set = a hint, a poll or work has come
    _is_lull: trio.Event = attrs.field(factory=trio.Event)
    _trusts: bool = False
    _trusted: bool = False  # when the last look was begun
    _hinted: bool = False  # since the last look was begun
    _echo_seconds: float = ECHO_SECONDS
    _service_seconds: float = 1.0
    _first_left: int = FIRST_JOBS

    @property
    def poll_seconds(self) -> float:
        if self.is_watched:
            return float("inf")
        return self.settings.now.workers.poll_interval_ms / 1000

    @property
    def ahead_seconds(self) -> float:
        """How much work may lie ready, measured in the crew's time; 0 = none."""
        return self.settings.now.limits.claim_ahead_ms / 1000

    def hint(self) -> None:
        self.hungry = self._hinted = True
        self._echo_seconds = ECHO_SECONDS
        self.end_calm()

    def begin_look(self) -> None:
        self._hinted = False
        self._trusted = self._trusts

    def poll_due(self) -> None:
        self.hungry = True

    async def lull(self) -> None:
        """Returns when looks have become as seldom as polls, and nothing is new."""
        await self._is_lull.wait()

    def trust_hints(self) -> None:
        """From now on, until something is new: one more look that finds nothing is the last."""
        self._trusts = True

    def end_calm(self) -> None:
        """Something is new, or may be."""
        if not self._is_lull.is_set():
            return
        if self.calm:
            self.next_poll_local = trio.current_time()
        self.calm = self._trusts = self._trusted = False
        self.news.set()
        self.news, self._is_lull = trio.Event(), trio.Event()

    def note_service(self, seconds: float) -> None:
        weight = SERVICE_WEIGHT
        if self._first_left:
            self._first_left -= 1
            weight = FIRST_WEIGHT
        self._service_seconds += (seconds - self._service_seconds) * weight

    def note_claim(self, taken: int, asked: int, parked: int = 0, *, missed: bool = False) -> bool:
        """Says whether the queue has just run dry, after work or a hint: time to ask when the next
        job is due. A short claim that parked jobs, or may have `missed` some, does not say so:
        there may be more.
        """
        now = trio.current_time()
        self.hungry = taken >= asked or parked > 0 or missed or self._hinted
        if self.hungry:
            self._echo_seconds = ECHO_SECONDS
            self.end_calm()
            return False
        if taken:
            self._echo_seconds = ECHO_SECONDS
            self.end_calm()
        ran_dry = self._echo_seconds == ECHO_SECONDS
        self.short_at_local = now
        pause = min(self.poll_seconds, self._echo_seconds)
        self._echo_seconds = min(self._echo_seconds * ECHO_FACTOR, 3600.0)
        self.next_poll_local = now + pause * self.rng.uniform(0.9, 1.1)
        if pause == self.poll_seconds:
            self._is_lull.set()
            self.calm = self._trusted
        if self.calm:
            self.next_poll_local = float("inf")
        return ran_dry

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
        ahead_seconds, batch_max = self.ahead_seconds, self.settings.now.limits.claim_batch
        if not ahead_seconds:
            return 0
        soon = int(hands * ahead_seconds / max(self._service_seconds, 1e-6))
        target = min(3 * batch_max, soon)
        room = target - ready
        return room if 2 * room >= min(target, batch_max) else 0
