"""The node's counter. Workers wait here for claims and leave their settlements; the loop takes
both to the store.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from itertools import groupby, islice
from operator import attrgetter
from uuid import UUID

import trio

from musterd.config.leasing import lease_plan
from musterd.config.live import LiveSettings
from musterd.store.leases import Caps, Claim, ClaimRequest, Verdict
from musterd.store.lifecycle import Request
from musterd.workers.claiming.held import Ended, Held, ending
from musterd.workers.claiming.pacing import ClaimPacing
from musterd.workers.claiming.seat import Seat, count_hands
from musterd.workers.observer import JobObserver
from musterd.workers.outcome import released, requested


class Desk:
    """Owned by the daemon. `held` is every claim in this node's hands, until its settlement is in
    the store.

    All methods but `wait_for_claim` are synchronous: what they change, they change at once.
    """

    def __init__(
        self,
        node: str,
        settings: LiveSettings,
        caps: Callable[[], Caps],
        observer: JobObserver,
        rng: random.Random,
    ) -> None:
        """`caps` gives the bounds of kinds, of the moment."""
        self.held: dict[int, Held] = {}
        self.seats: dict[int, Seat] = {}
        self.pacing = ClaimPacing(settings, rng)
        self.cause = trio.Event()  # set = the loop has a reason to look
        self.enough = 1  # so many ends are one
        self.claimed = trio.Event()  # set = there are claims in hand
        self.claiming = True
        self.on_work: Callable[[], None] = lambda: None  # there is, or may be, something to do
        self._node, self._settings, self._caps = node, settings, caps
        self._leases = lease_plan(settings.now)
        self._listener = observer
        self._rng = rng
        self._waiting: dict[int, Seat] = {}  # idle workers, the longest-waiting first
        self._ready: deque[Held] = deque()  # claimed ahead, state `assigned`
        self._ended: list[Ended] = []
        self._expected = 0  # jobs that have been asked for

    # -- for workers

    def take(self, seat: Seat) -> Held | None:
        """The next claim that lies ready, if there is one."""
        if seat.retiring or not self._ready:
            return None
        free_since, seat.free_since_local = seat.free_since_local, None
        return self._start(seat, self._ready.popleft(), free_since)

    async def wait_for_claim(self, seat: Seat) -> Held | None:
        """The next claim; None = the worker is to leave."""
        while not seat.retiring:
            await self._sit(seat)
            held, seat.given = seat.given, None
            if held is None and self._ready and not seat.retiring:
                held = self._ready.popleft()
            if held is not None and not held.lost:
                self._call_one()  # before it begins: it may wait
                return self._start(seat, held)
        self._call_one()  # it may have been called
        return None

    async def take_turns(self, seat: Seat) -> Held | None:
        """As `take`, after all other tasks. An idle worker goes on with what lies ready."""
        seat.free_since_local = None
        if self._ready and self._waiting:  # it is last in line
            self._call_one()
            return await self.wait_for_claim(seat)
        await trio.lowlevel.checkpoint()
        return self.take(seat)

    async def _sit(self, seat: Seat) -> None:
        seat.bell = trio.Event()
        self._waiting[seat.worker] = seat
        self.cause.set()
        try:
            await seat.bell.wait()
        except trio.Cancelled:
            if seat.given is not None and not seat.given.lost:
                self.settle(seat, seat.given, released("its worker was dismissed"))
            raise
        finally:
            seat.bell = None
            self._waiting.pop(seat.worker, None)

    def settle(self, seat: Seat | None, held: Held, verdict: Verdict) -> None:
        """Takes the end of an attempt; it is in the store a visit later."""
        now = trio.current_time()
        if held.started_local is not None:
            self.pacing.note_service(now - held.started_local)
        if seat is not None:
            seat.held = seat.given = None
            seat.free_since_local = now
        held.settling = True
        self._ended.append(ending(held, verdict, now))
        if len(self._ended) >= self.enough:
            self.cause.set()

    def drop(self, seat: Seat, held: Held) -> None:
        """Forgets a claim whose lease was lost: nothing is written for it."""
        seat.held = None
        self._forget(held)

    def _start(self, seat: Seat, held: Held, now_local: float | None = None) -> Held:
        held.worker = seat.worker
        held.started_local = trio.current_time() if now_local is None else now_local
        seat.held = held
        return held

    # -- for the crew and the daemon

    def open_seat(self, worker: int) -> Seat:
        seat = self.seats[worker] = Seat(worker)
        return seat

    def close_seat(self, seat: Seat) -> None:
        del self.seats[seat.worker]

    def hint(self) -> None:
        """There may be new work."""
        self.pacing.hint()
        self.cause.set()
        self.on_work()

    def poll(self) -> None:
        """It is time to look, as when the poll interval has passed."""
        self.pacing.poll_due()
        self.pacing.end_calm()
        self.cause.set()
        self.on_work()

    def be_watched(self, watched: bool) -> None:
        """Whether somebody else looks at the queue, and calls `poll`."""
        self.pacing.is_watched = watched
        self.pacing.end_calm()

    def stop_claiming(self) -> None:
        """From now on nothing is claimed, and what lies ready is given back."""
        self.claiming = False
        while self._ready:
            self.settle(None, self._ready.pop(), released("its node shut down before it started"))
        self.cause.set()

    def give_back_stale(self, older_than_seconds: float) -> None:
        """Gives back what has lain ready longer than that: the crew is busier than it was thought
        to be.
        """
        oldest_local = trio.current_time() - older_than_seconds
        while self._ready and self._ready[-1].claimed_local < oldest_local:
            self.settle(None, self._ready.pop(), released("it waited too long at its node's desk"))

    def lose(self, held: Held) -> None:
        """The lease of this claim is gone. An attempt under way is cancelled; nothing more is
        written for it.
        """
        if held.lost or held.settling:  # a settlement on its way finds out by itself
            return
        held.lose()
        if held.started_local is None:
            self._forget(held)
            if held in self._ready:
                self._ready.remove(held)
        self._listener.lease_lost(held.claim.id, held.claim.kind, held.claim.attempt)

    def obey(self, held: Held, request: Request) -> None:
        """Somebody wants this job canceled or paused. What has not started is settled at once, an
        attempt under way is cancelled, and one that ends by itself meanwhile ends as it did.
        """
        if held.lost or held.settling or held.request is not None:
            return
        held.obey(request)
        if held in self._ready:
            self._ready.remove(held)
            self.settle(None, held, requested(request))

    # -- for the loop

    def has_cause(self) -> bool:
        return bool(self._ended) or self._wants_claims()

    @property
    def has_ended(self) -> bool:
        return bool(self._ended)

    def has_gathered(self, batches: float) -> bool:
        """Whether so much has ended: the workers go on meanwhile."""
        return len(self._ended) >= batches * self.batch_max

    @property
    def batch_max(self) -> int:
        """The most jobs of one claim."""
        return self._settings.now.limits.claim_batch

    @property
    def ready_count(self) -> int:
        return len(self._ready)

    @property
    def next_poll_local(self) -> float:
        """When to look again without a hint; never while nobody is idle."""
        idle = self.claiming and self._waiting
        return self.pacing.next_poll_local if idle else float("inf")

    def take_ended(self) -> list[Ended]:
        ended, self._ended = self._ended, []
        return ended

    def put_back(self, ended: Sequence[Ended]) -> None:
        self._ended[:0] = ended

    def request(self, *, is_first: bool = True) -> ClaimRequest | None:
        """A call for work for idle workers, unless an earlier one under way is, and for soon."""
        if not self.claiming:
            return None
        idle = self._idle() if is_first else ()
        ahead = min(self._room_ahead(), self.batch_max - len(idle))
        if not idle and not ahead:
            return None
        self.pacing.begin_look()
        token, most = UUID(int=self._rng.getrandbits(128), version=4), self._settings.now.limits
        return ClaimRequest(
            token, self._node, idle, ahead, self._leases.lease_seconds, self._caps(),
            most.max_running or None,
        )  # fmt: skip

    def expect(self, request: ClaimRequest | None, sign: int) -> None:
        """That call is on its way, or (-1) answered."""
        self._expected += 0 if request is None else sign * request.batch

    def book_claims(self, claims: Sequence[Claim], sent_boottime: float) -> None:
        """Hands claims out in their order: to the workers they were claimed for, the others lie
        ready.
        """
        if claims:
            self.claimed.set()
            self.on_work()
        leases, now = self._leases, trio.current_time()
        trusted_until = sent_boottime + leases.lease_seconds - leases.margin_seconds
        for kind, alike in groupby(claims, key=attrgetter("kind")):
            self._listener.claimed(kind, [claim.waited_seconds for claim in alike])
        for claim in claims:
            before = self.held.get(claim.id)
            if before is not None:
                self.lose(before)  # the store has just given its job to this claim
            held = self.held[claim.id] = Held(claim, now, trusted_until)
            held.start_written = claim.worker is not None
            seat = self._waiting.pop(claim.worker, None) if claim.worker is not None else None
            if seat is None:
                self._ready.append(held)
            else:
                seat.hand(held)
        while self._waiting and self._ready and not self.pacing.is_brisk:
            self._waiting.pop(next(iter(self._waiting))).hand(self._ready.popleft())
        self._call_one()
        if not self.claiming:
            self.stop_claiming()

    def book_ended(self, ended: Sequence[Ended]) -> None:
        """These are in the store."""
        for one in ended:
            self._forget(one.held)
        if ended:
            self._listener.settled([one.settlement for one in ended])

    def book_stale(self, ended: Sequence[Ended]) -> None:
        """These were refused: their leases had been lost."""
        for one in ended:
            self._forget(one.held)
        self._listener.stale_writes(len(ended))

    def abandon(self, one: Ended) -> None:
        """The store takes nothing about this end: its lease runs out, and the reaper ends it."""
        self._forget(one.held)
        claim = one.held.claim
        self._listener.lease_lost(claim.id, claim.kind, claim.attempt)

    def _forget(self, held: Held) -> None:
        # The same job may be here again under a newer claim, which stays.
        if self.held.get(held.claim.id) is held:
            del self.held[held.claim.id]

    def _wants_claims(self) -> bool:
        wants = self.claiming and self.pacing.hungry
        return wants and (bool(self._idle()) or self._room_ahead() > 0)

    def _idle(self) -> tuple[int, ...]:
        """Whom work is asked for. Of brisk jobs one does many; after a rest others may come."""
        count = self.batch_max
        if self.held and self.pacing.is_brisk:
            count = 0 if self._ready else 1
        return tuple(islice(self._waiting, count))

    def _call_one(self) -> None:
        """Has the worker that has waited longest come for what lies ready. It calls the next."""
        if self._ready and self._waiting:
            next(iter(self._waiting.values())).ring()

    def _room_ahead(self) -> int:
        if not self.pacing.hungry:
            return 0
        hands = count_hands(self.seats.values(), self.pacing.ahead_seconds)
        return self.pacing.room_ahead(hands, len(self._ready) + self._expected)
