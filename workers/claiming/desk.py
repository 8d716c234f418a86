"""The counter at which workers wait for claims and leave ends; the loop takes both to the store."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, islice
from operator import attrgetter
from typing import NamedTuple
from uuid import UUID

import trio

from musterd.config.settings import LiveSettings, lease_plan
from musterd.store.leases import (
    Caps,
    Claim,
    ClaimRequest,
    Exchange,
    Settlement,
    Successes,
    Verdict,
)
from musterd.store.lifecycle import Request
from musterd.workers.claiming.handover import Handover
from musterd.workers.claiming.held import Ended, Held, Moment, Seat, payloads
from musterd.workers.claiming.observer import JobObserver
from musterd.workers.claiming.pacing import ClaimPacing, Look
from musterd.workers.claiming.store_clock import StoreClock
from musterd.workers.idleness import Idleness
from musterd.workers.outcome import is_plain, released, requested


class Load(NamedTuple):
    """What goes with one exchange."""

    ended: list[Ended]
    succeeded: list[Held]
    request: ClaimRequest | None
    look: Look | None  # there with a request

    def all_ended(self) -> list[Ended]:
        """Plain successes as well."""
        return self.ended + [one.succeeded() for one in self.succeeded]

    @property
    def is_claim_alone(self) -> bool:
        return not (self.ended or self.succeeded)

    @property
    def is_empty(self) -> bool:
        return self.is_claim_alone and self.request is None


class ClockAndRng(NamedTuple):
    """The clock is the exchange loop's. It goes on in a sleep of the machine, as the store's."""

    boottime: Callable[[], float]
    rng: random.Random


class Desk:
    """Owned by a tenancy. Every claim in this node's hands is here, until its settlement is in the
    store.

    All methods but those that wait are synchronous: what they change, they change at once.
    """

    def __init__(
        self,
        node: str,
        settings: LiveSettings,
        caps: Callable[[], Caps],
        idleness: Idleness,
        observer: JobObserver,
        clock_and_rng: ClockAndRng,
    ) -> None:
        """`caps` gives the bounds of kinds, of the moment."""
        boottime, rng = clock_and_rng
        self._node, self._settings, self._caps = node, settings, caps
        self._leases = lease_plan(settings.now)
        self._observer, self._rng = observer, rng
        self._pacing = ClaimPacing(settings, idleness, rng)
        self._held: dict[int, Held] = {}
        self._seats: dict[int, Seat] = {}
        self._waiting: dict[int, Seat] = {}  # idle workers, the longest-waiting first
        self._ready: deque[Held] = deque()  # claimed ahead, state `assigned`
        self._ended: list[Ended] = []
        self._succeeded: list[Held] = []  # plain successes
        self._expected = 0  # jobs that have been asked for
        self._claims = True  # until it is told to stop
        self._clock, self._boottime = StoreClock(), boottime
        self.handover = Handover()
        self.interrupted: list[int] = []  # jobs whose worker was dismissed under them
        self._changed = trio.Event()  # set = the exchange loop may have a reason to leave
        self._enough = 1  # so many ends are one
        self._has_held = trio.Event()  # set = there are claims in hand
        settings.subscribe(self.poll)

    @property
    def held(self) -> Mapping[int, Held]:
        """The claims in this node's hands, by job."""
        return self._held

    @property
    def seats(self) -> Mapping[int, Seat]:
        return self._seats

    @property
    def ready_count(self) -> int:
        """Jobs that are claimed and wait for a worker."""
        return len(self._ready)

    async def wait_until_held(self) -> None:
        """Returns when there are claims in hand: at once, if there are."""
        while not self._held:
            if self._has_held.is_set():
                self._has_held = trio.Event()
            await self._has_held.wait()

    def has_run_dry(self, within_seconds: float) -> bool:
        """Whether a claim has come back short so recently, or hints would have told of more."""
        return self._pacing.has_run_dry(within_seconds)

    # -- for workers

    def take(self, seat: Seat) -> Held | None:
        """The next claim that lies ready, if there is one."""
        now, seat.free_since = seat.free_since, None
        if seat.retiring or not self._ready:
            seat.idle_since_local = now and now[0]
            return None
        return self._start(seat, self._ready.popleft(), now or self._begin_turn(seat))

    async def wait_for_claim(self, seat: Seat) -> Held | None:
        """The next claim; None = the worker is to leave."""
        while not seat.retiring:
            await self._sit(seat)
            held, seat.given = seat.given, None
            if held is None and self._ready and not seat.retiring:
                held = self._ready.popleft()
            if held is not None and not held.lost:
                self._call_one()  # before it begins: it may wait
                seat.idle_since_local = None
                return self._start(seat, held, self._begin_turn(seat))
        self._call_one()  # it may have been called
        return None

    async def take_turns(self, seat: Seat) -> Held | None:
        """As `take`; if the worker has had its turn, after all other tasks, and an idle worker goes
        on with what lies ready.
        """
        if not seat.has_had_its_turn():
            return self.take(seat)
        seat.free_since = None
        if self._ready and self._waiting:  # it is last in line
            self._call_one()
            return await self.wait_for_claim(seat)
        await trio.lowlevel.checkpoint()
        return self.take(seat)

    async def _sit(self, seat: Seat) -> None:
        seat.bell = trio.Event()
        self._waiting[seat.worker] = seat
        self._changed.set()
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
        """Takes the end of an attempt; it is in the store an exchange later."""
        now = self._now()
        self._end(held, now)
        if seat is not None:
            seat.held = seat.given = None
            seat.free_since = now
        if is_plain(verdict) and held.started_local is not None:
            held.result = verdict.result
            self._succeeded.append(held)
        else:
            self._ended.append(held.settled(verdict))
        if len(self._ended) + len(self._succeeded) >= self._enough:
            self._changed.set()

    def drop(self, seat: Seat, held: Held) -> None:
        """Forgets a claim whose lease was lost: nothing is written for it."""
        seat.held = None
        self._forget(held)

    def _now(self) -> Moment:
        return trio.current_time(), self._boottime()

    def _begin_turn(self, seat: Seat) -> Moment:
        now = self._now()
        seat.begin_turn(now[0])
        return now

    def _start(self, seat: Seat, held: Held, now: Moment) -> Held:
        held.start(seat.worker, now, self._clock.start(held.claim, now[1]))
        seat.held = held
        return held

    def _end(self, held: Held, now: Moment) -> None:
        now_local, boottime = now
        if held.started_local is None or held.started_epoch is None:
            held.end(self._clock.end(boottime, held.claim.claimed_epoch, 0.0), 0.0)
            return
        run_seconds = now_local - held.started_local
        self._pacing.note_service(run_seconds)
        held.end(self._clock.end(boottime, held.started_epoch, run_seconds), run_seconds)

    # -- for the crew and the daemon

    def open_seat(self, worker: int) -> Seat:
        seat = self._seats[worker] = Seat(worker)
        return seat

    def close_seat(self, seat: Seat) -> None:
        del self._seats[seat.worker]

    def hint(self) -> None:
        """There may be new work."""
        self._pacing.hint()
        self._changed.set()

    def poll(self) -> None:
        """It is time to look, as when the poll interval has passed."""
        self._pacing.poll()
        self._changed.set()

    def stop_claiming(self) -> None:
        """From now on nothing is claimed, and what lies ready is given back."""
        self._claims = False
        while self._ready:
            self.settle(None, self._ready.pop(), released("its node shut down before it started"))
        self._changed.set()

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
        self._observer.lease_lost(held.claim.id, held.claim.kind, held.claim.attempt)

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

    # -- for the exchange loop

    @property
    def has_ended(self) -> bool:
        return self._ended_count > 0

    @property
    def has_cause(self) -> bool:
        """Whether an exchange would have something to do."""
        return self.has_ended or self._wants_claims

    def has_gathered(self, batches: float) -> bool:
        """Whether so much has ended: the workers go on meanwhile."""
        return self._ended_count >= batches * self._batch_max

    def wake_loop(self) -> None:
        self._changed.set()

    async def wait_for_change(self, *, may_poll: bool) -> None:
        """Returns when there may be a reason for an exchange. While one is under way only a whole
        batch of ends is one, and no poll is (`may_poll`).
        """
        self._changed = trio.Event()
        self._enough = 1 if may_poll else self._batch_max
        is_idle = may_poll and self._claims and self._waiting
        deadline = self._pacing.planned_local if is_idle else float("inf")
        with trio.CancelScope(deadline=deadline) as poll:
            await self._changed.wait()
        if poll.cancelled_caught:
            self._pacing.poll_is_due()

    def load(self, *, is_first: bool) -> Load:
        """Takes what goes with one exchange. `is_first`: no other one is under way. Each load is
        given back to `unload`.
        """
        ended, self._ended = self._ended, []
        succeeded, self._succeeded = self._succeeded, []
        request = self._request(is_first=is_first, is_alone=not (ended or succeeded))
        if request is None:
            return Load(ended, succeeded, None, None)
        self._expected += request.batch
        return Load(ended, succeeded, request, self._pacing.begin_look())

    def unload(self, load: Load) -> None:
        """That exchange is over, whatever came of it."""
        if load.request is not None:
            self._expected -= load.request.batch
        self._changed.set()  # another may leave without a whole batch again

    def take_ended(self) -> list[Ended]:
        """Of all attempts, plain successes too."""
        ended = self._ended + [one.succeeded() for one in self._succeeded]
        self._ended, self._succeeded = [], []
        return ended

    @property
    def _ended_count(self) -> int:
        return len(self._ended) + len(self._succeeded)

    def put_back(self, ended: Sequence[Ended]) -> None:
        self._ended[:0] = ended

    def book_look(self, load: Load, answer: Exchange, *, beside_another: bool) -> bool:
        """Says whether the queue has just run dry. `beside_another`: jobs that another exchange had
        in its hands were not seen by this one.
        """
        if load.request is None or load.look is None:
            return False
        taken, more = len(answer.claims), answer.parked + beside_another
        return self._pacing.end_look(load.look, taken, load.request.batch, more, full=answer.full)

    def book_refused_claim(self, why: str, failed: Sequence[Settlement]) -> None:
        """The store cannot give out what is due. Jobs that stood in the way may have failed."""
        if failed:
            self._observer.settled(failed)
            self.poll()
        else:
            self._observer.claim_refused(why)

    def hear_time(self, epoch: float, asked_boottime: float) -> None:
        """The store's clock stood there when it answered; 0 = it did not say."""
        if epoch:
            self._clock.hear(epoch, asked_boottime, self._boottime())

    def book_claims(self, claims: Sequence[Claim], sent_boottime: float) -> None:
        """Hands claims out in their order: to the workers they are for; the others lie ready."""
        if claims:
            self._has_held.set()
        leases, now, lay_ready = self._leases, trio.current_time(), len(self._ready)
        trusted_until = sent_boottime + leases.lease_seconds - leases.margin_seconds
        for kind, alike in groupby(claims, key=attrgetter("kind")):
            self._observer.claimed(kind, [claim.waited_seconds for claim in alike])
        for claim, payload in zip(claims, payloads(claims), strict=False):
            before = self._held.get(claim.id)
            if before is not None:
                if before.claim.token == claim.token:
                    continue  # in hand already: a fault came between its claim and a second reading
                self.lose(before)  # the store has just given its job to this claim
            held = self._held[claim.id] = Held(claim, now, trusted_until, payload)
            if claim.worker is not None:
                held.note_start_written()
            seat = self._waiting.pop(claim.worker, None) if claim.worker is not None else None
            if seat is None:
                self._ready.append(held)
            else:
                self._hand(seat, held)
        while self._waiting and self._ready and not self._pacing.is_brisk:
            self._hand(self._waiting.pop(next(iter(self._waiting))), self._ready.popleft())
        self.handover.at_once(max(0, len(self._ready) - lay_ready))
        self._call_one()
        if not self._claims:
            self.stop_claiming()

    def _hand(self, seat: Seat, held: Held) -> None:
        since_local, dry_at_local = seat.idle_since_local, self._pacing.dry_at_local
        if since_local is not None and dry_at_local <= since_local:  # else it was not for its sake
            due_local = held.claimed_local - held.claim.waited_seconds
            self.handover.note(due_local, since_local, held.claimed_local)
        seat.hand(held)

    def book_ended(self, ended: Sequence[Ended]) -> None:
        """These are in the store."""
        for one in ended:
            self._forget(one.held)
        if ended:
            self._observer.settled([one.settlement for one in ended])

    def book_succeeded(self, succeeded: Sequence[Held], ends: Successes) -> None:
        in_hand = self._held
        for held in succeeded:  # as `_forget`, without a call for each
            job_id = held.claim.id
            if in_hand.get(job_id) is held:
                del in_hand[job_id]
        self._observer.succeeded(ends)

    def book_held_up(self, ended: Sequence[Ended]) -> None:
        """Nothing was written about these: somebody else holds them. They will be sent again."""
        for one in ended:
            if not one.held.held_up:
                one.held.wait_for_others()
                claim = one.held.claim
                self._observer.held_up(claim.id, claim.kind, claim.attempt)

    def book_stale(self, ended: Sequence[Ended]) -> None:
        """These were refused: their leases had been lost."""
        for one in ended:
            self._forget(one.held)
        self._observer.stale_writes(len(ended))

    def abandon(self, one: Ended) -> None:
        """The store takes nothing about this end: its lease runs out, and the reaper ends it."""
        self._forget(one.held)
        claim = one.held.claim
        self._observer.lease_lost(claim.id, claim.kind, claim.attempt)

    def _forget(self, held: Held) -> None:
        # The same job may be here again under a newer claim, which stays.
        if self._held.get(held.claim.id) is held:
            del self._held[held.claim.id]

    def _request(self, *, is_first: bool, is_alone: bool) -> ClaimRequest | None:
        """A call for work for idle workers, unless an earlier one under way is, and for soon.
        `is_alone`: no ends go with it.
        """
        if not self._claims:
            return None
        idle = self._idle() if is_first else ()
        if idle and is_alone and self._pacing.expects_one:
            idle, ahead = idle[:1], 0
        else:
            ahead = min(self._room_ahead(), self._batch_max - len(idle))
        if not idle and not ahead:
            return None
        token = UUID(int=self._rng.getrandbits(128), version=4)
        most = self._settings.now.limits.max_running or None
        lease_seconds = self._leases.lease_seconds
        return ClaimRequest(token, self._node, idle, ahead, lease_seconds, self._caps(), most)

    @property
    def _batch_max(self) -> int:
        """The most jobs of one claim."""
        return self._settings.now.limits.claim_batch

    @property
    def _wants_claims(self) -> bool:
        if not (self._claims and self._pacing.is_due):
            return False
        return bool(self._idle()) or self._room_ahead() > 0

    def _idle(self) -> tuple[int, ...]:
        """The workers to claim for. One does many brisk jobs; after a rest others may come."""
        count = self._batch_max
        if self._held and self._pacing.is_brisk:
            count = 0 if self._ready else 1
        return tuple(islice(self._waiting, count))

    def _call_one(self) -> None:
        """Has the worker that has waited longest come for what lies ready. It calls the next."""
        if self._ready and self._waiting:
            next(iter(self._waiting.values())).ring()

    def _room_ahead(self) -> int:
        if not self._pacing.is_due:
            return 0
        now, stuck_seconds = trio.current_time(), self._pacing.ahead_seconds
        hands = sum(
            not (seat.retiring or seat.is_stuck(now, stuck_seconds))
            for seat in self._seats.values()
        )
        return self._pacing.room_ahead(hands, len(self._ready) + self._expected)
