"""How a node takes, keeps and loses duties."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from uuid import UUID

import attrs
import trio

from musterd.manager.duties.duty import Duty, DutyObserver, Tally, serve
from musterd.manager.log import Log
from musterd.manager.node.process import sleep_to_beat
from musterd.store.duties import Duties, DutyNews, DutyReport, Holder
from musterd.store.errors import StoreError
from musterd.store.nodes import YOUNG_SECONDS
from musterd.store.waiting import Bell

LOOKS_A_SECOND = 1.2  # of all nodes together
LOOK_SECONDS_MIN = 1.5
LOOK_SECONDS_MAX = 60.0
LOOK_SECONDS_ALL = 10.0  # of a node that has them all: whether others have come
RESTED = 10.0  # times as long where nothing happens
SPARE_SECONDS = 1.5  # for so long a free duty is left to nodes that have less
HESITATE_SECONDS = 0.3


def fair_share(duties: int, live_nodes: int) -> int:
    """A node's part if duties are spread evenly, rounded up."""
    return math.ceil(duties / max(1, live_nodes))


def pause_seconds(
    live_nodes: int, rng: random.Random, *, left_free: bool, has_all: bool, rests: bool
) -> float:
    """The time until the next look; short if it left a free duty to others. `has_all`: this node
    has all duties that it could have. `rests`: nothing happens in this store.
    """
    if left_free:
        return SPARE_SECONDS * rng.uniform(0.4, 0.6)
    least = LOOK_SECONDS_ALL if has_all else LOOK_SECONDS_MIN
    usual = max(least, live_nodes / LOOKS_A_SECOND) * (RESTED if rests else 1.0)
    return min(LOOK_SECONDS_MAX, usual) * rng.uniform(0.7, 1.3)


def to_take(
    free_since: Mapping[str, float], held: int, share: int, now: float, rng: random.Random
) -> list[str]:
    """The free duties to take: those of its share, and any that have been free for a while."""
    overdue = [duty for duty, since in free_since.items() if now - since >= SPARE_SECONDS]
    fresh = [duty for duty in free_since if duty not in overdue]
    room = max(0, share - held - len(overdue))
    return sorted(overdue + rng.sample(fresh, min(room, len(fresh))))


RELEASE_SECONDS = 1.0
RETRY_SECONDS = 2.0  # after the store was away
START_SECONDS = 0.2  # so long at most, for nodes that start together to have heard of each other
TRUST_SECONDS_MIN = 0.001  # between two looks at the clock
TO_OTHERS_SECONDS = 15.0  # a duty that was given up for others is not taken back sooner
REBALANCE_SECONDS = 15.0  # a node with too much gives some up, but not more often than this
# What nobody else wanted is not offered again sooner: those who count as alive may all be dead.
UNWANTED_SECONDS = YOUNG_SECONDS


@attrs.frozen
class Pace:
    """How long duties are leased, and how often the lease is renewed. Holders trust it for
    `margin_seconds` less. `rests`: nothing happens, so looks may be rare.
    """

    lease_seconds: float
    heartbeat_seconds: float
    rests: bool = False
    rotate_seconds: float = 0.0  # 0 = never

    @property
    def margin_seconds(self) -> float:
        return self.lease_seconds / 10

    @property
    def trust_look_seconds(self) -> float:
        """How often a holder checks the clock: waits do not count the time of a suspend."""
        return self.margin_seconds / 4


@attrs.frozen
class Unwanted:
    """When a node took more than its share because nobody else did, and how many nodes seemed to be
    alive then. Until that number changes, they are no reason to give anything up.
    """

    live_nodes: int
    since_local: float

    def holds(self, live_nodes: int, now: float) -> bool:
        is_same = live_nodes == self.live_nodes
        return is_same and now - self.since_local < UNWANTED_SECONDS


NEVER_UNWANTED = Unwanted(0, float("-inf"))


@attrs.frozen
class Identity:
    node: str
    node_id: UUID
    tenant: str


@attrs.define(eq=False)
class _Held:
    duty: Duty
    term: UUID
    trusted_until: float
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    tally: Tally = attrs.field(factory=Tally)
    since_local: float = attrs.field(factory=trio.current_time)
    ended: trio.Event = attrs.field(factory=trio.Event)  # nothing of its work runs any more

    def report(self) -> DutyReport:
        return self.tally.report(self.duty.name, self.term)


@attrs.define(eq=False)
class Leadership:
    """Owned by a tenancy. `duties` are those that this node could do now. `boottime` includes
    suspends: a machine that slept knows that it may have lost its duties.
    """

    store: Duties
    duties: Callable[[], Mapping[str, Duty]]
    me: Identity
    pace: Callable[[], Pace]
    boottime: Callable[[], float]
    rng: random.Random
    observer: DutyObserver
    log: Log
    _held: dict[str, _Held] = attrs.field(factory=dict[str, _Held], init=False)
    # Terms that may still stand in the store, though nobody goes by them: the store was away.
    _left_behind: dict[str, UUID] = attrs.field(factory=dict[str, UUID], init=False)
    # Until when others may take a duty before this node does.
    _left_to_others: dict[str, float] = attrs.field(factory=dict[str, float], init=False)
    _free_since: dict[str, float] = attrs.field(factory=dict[str, float], init=False)
    _bell: Bell = attrs.field(factory=Bell, init=False)
    _renewal: Bell = attrs.field(factory=Bell, init=False)
    _taken: Bell = attrs.field(factory=Bell, init=False)
    _gave_up_local: float = attrs.field(default=float("-inf"), init=False)
    _unwanted: Unwanted = attrs.field(default=NEVER_UNWANTED, init=False)

    @property
    def held(self) -> frozenset[str]:
        return frozenset(self._held)

    def wake(self) -> None:
        """Another node has released a duty, or this node could do other duties."""
        self._bell.ring()

    def change_pace(self) -> None:
        self._renewal.ring()
        self._bell.ring()

    async def run(self) -> None:
        """Until cancelled; then its duties are released, after their work has ended."""
        try:
            async with trio.open_nursery() as nursery:
                await trio.sleep(START_SECONDS * self.rng.uniform(0.5, 1.0))
                nursery.start_soon(self._seek, nursery)
                nursery.start_soon(self._renew)
                nursery.start_soon(self._watch_trust)
        finally:
            with (
                trio.CancelScope(shield=True, deadline=trio.current_time() + RELEASE_SECONDS),
                suppress(StoreError),  # then they run out by themselves
            ):
                await self._give_up(list(self._held), "the node drains")

    # -- taking

    async def _seek(self, nursery: trio.Nursery) -> None:
        while True:
            self._bell.clear()
            if await self._bell.wait(await self._look_and_take(nursery)):
                await trio.sleep(HESITATE_SECONDS * self.rng.random())

    async def _look_and_take(self, nursery: trio.Nursery) -> float:
        """Returns the time until the next look."""
        duties = self.duties()
        try:
            await self._clear_up()
            await self._give_up(sorted(self._held.keys() - duties.keys()), "it is not done here")
            news = await self.store.look(tuple(sorted(duties)))
            await self._take(duties, news, nursery)
            await self._rebalance(len(duties), news)
        except StoreError:
            return RETRY_SECONDS * self.rng.uniform(0.5, 1.5)
        return pause_seconds(
            news.live_nodes,
            self.rng,
            left_free=any(duty not in self._held for duty in news.free),
            has_all=duties.keys() <= self._held.keys(),
            rests=self.pace().rests,
        )

    async def _clear_up(self) -> None:
        """Releases what this node no longer does, so that others need not wait."""
        left_behind = dict(self._left_behind)
        if left_behind:
            await self.store.release([DutyReport(*one) for one in left_behind.items()])
            self._left_behind.clear()

    async def _take(
        self, duties: Mapping[str, Duty], news: DutyNews, nursery: trio.Nursery
    ) -> None:
        now = trio.current_time()
        others = self._left_to_others if news.live_nodes > 1 else {}
        free = [
            duty
            for duty in news.free
            if duty not in self._held and now >= others.get(duty, float("-inf"))
        ]
        self._free_since = {duty: self._free_since.get(duty, now) for duty in free}
        share = fair_share(len(duties), news.live_nodes)
        wanted = to_take(self._free_since, len(self._held), share, now, self.rng)
        if not wanted:
            return
        pace, sent = self.pace(), self.boottime()
        term = UUID(int=self.rng.getrandbits(128), version=4)
        me = self.me
        holder = Holder(me.node, me.node_id, term, pace.lease_seconds, me.tenant)
        taken = sorted(await self.store.take(wanted, holder))
        trusted_until = sent + pace.lease_seconds - pace.margin_seconds
        if self.boottime() >= trusted_until:  # the reply came late: they may be another's by now
            self._left_behind |= dict.fromkeys(taken, term)
            return
        for name in taken:
            held = self._held[name] = _Held(duties[name], term, trusted_until)
            nursery.start_soon(self._serve, held)
        if taken:
            if len(self._held) > share:
                self._gave_up_local = now
                self._unwanted = Unwanted(news.live_nodes, now)
            self.observer.acquired(taken)
            self._taken.ring()

    async def _rebalance(self, duties: int, news: DutyNews) -> None:
        now = trio.current_time()
        if self._unwanted.holds(news.live_nodes, now):
            return
        share = fair_share(duties, news.live_nodes)
        if news.live_nodes > 1:
            await self._rotate(now)
        surplus = self.rng.sample(sorted(self._held), max(0, len(self._held) - share))
        if not surplus or now - self._gave_up_local < REBALANCE_SECONDS:
            return
        self._gave_up_local = now
        await self._give_up(surplus, "others have less to do")

    async def _rotate(self, now: float) -> None:
        seconds = self.pace().rotate_seconds
        over = [name for name, held in self._held.items() if now - held.since_local >= seconds > 0]
        if over:
            self._leave_to_others(over)
            await self._give_up(sorted(over), "it is the next node's turn")

    def _leave_to_others(self, names: Sequence[str]) -> None:
        until = trio.current_time() + TO_OTHERS_SECONDS
        self._left_to_others |= dict.fromkeys(names, until)

    async def _serve(self, held: _Held) -> None:
        def is_held() -> bool:  # after a suspend this may be asked before the next look
            return self.boottime() < held.trusted_until

        given_up = None
        try:
            with held.scope:
                given_up = await serve(
                    held.duty, held.tally, self.observer, self.rng, self.log, is_held
                )
                if given_up is None:
                    self._step_down([held], "its lease may have run out")
        finally:
            held.ended.set()
        if given_up is not None and self._held.get(held.duty.name) is held:
            self._leave_to_others([held.duty.name])
            try:
                await self._give_up([held.duty.name], given_up.error or "")
            except StoreError:
                self._left_behind[held.duty.name] = held.term

    # -- keeping and losing

    async def _renew(self) -> None:
        while True:
            await self._wait_until_held()
            self._renewal.clear()
            await self._renewal.wait(self.pace().heartbeat_seconds)
            if self._held:
                await self._renew_once()

    async def _renew_once(self) -> None:
        pace, sent = self.pace(), self.boottime()
        asked = dict(self._held)
        reports = {name: held.report() for name, held in asked.items()}
        try:
            with trio.fail_after(pace.heartbeat_seconds):
                kept = await self.store.renew(list(reports.values()), pace.lease_seconds)
        except (StoreError, trio.TooSlowError):
            self._left_behind |= {name: held.term for name, held in asked.items()}
            self._step_down(list(asked.values()), "its lease could not be renewed")
            return
        lost = [held for name, held in asked.items() if name not in kept]
        self._step_down(lost, "another node has it")
        for name in kept:
            held = asked[name]
            held.trusted_until = sent + pace.lease_seconds - pace.margin_seconds
            held.tally.forget(reports[name])

    async def _watch_trust(self) -> None:
        """Trust ends before the lease does, even if a renewal hangs."""
        while True:
            await self._wait_until_held()
            first = min(held.trusted_until for held in self._held.values())
            left_seconds = max(TRUST_SECONDS_MIN, first - self.boottime())
            await sleep_to_beat(self.pace().trust_look_seconds, left_seconds)
            now = self.boottime()
            over = [held for held in self._held.values() if now >= held.trusted_until]
            self._step_down(over, "its lease may have run out")

    async def _wait_until_held(self) -> None:
        while not self._held:
            self._taken.clear()
            await self._taken.wait()

    def _step_down(self, leaving: Sequence[_Held], why: str) -> None:
        names = [held.duty.name for held in leaving if self._held.get(held.duty.name) is held]
        for name in names:
            self._held.pop(name).scope.cancel()
        if names:
            self.observer.released(names, why)
            self._bell.ring()

    async def _give_up(self, names: Sequence[str], why: str) -> None:
        """Releases them once their work has ended; of work that takes longer the lease runs out."""
        leaving = [self._held[name] for name in names]
        self._step_down(leaving, why)
        with trio.move_on_after(RELEASE_SECONDS):
            for held in leaving:
                await held.ended.wait()
        ended = [held for held in leaving if held.ended.is_set()]
        if ended:
            await self.store.release([held.report() for held in ended])


@attrs.define(eq=False)
class Everyone:
    """Used like `Leadership`."""

    duties: Callable[[], Mapping[str, Duty]]
    rng: random.Random
    observer: DutyObserver
    log: Log
    _running: dict[str, trio.CancelScope] = attrs.field(
        factory=dict[str, trio.CancelScope], init=False
    )
    _bell: Bell = attrs.field(factory=Bell, init=False)

    @property
    def held(self) -> frozenset[str]:
        return frozenset(self._running)

    def wake(self) -> None:
        self._bell.ring()

    def change_pace(self) -> None:
        """Duties are not leased here."""

    async def run(self) -> None:
        try:
            async with trio.open_nursery() as nursery:
                while True:
                    self._bell.clear()
                    self._begin_and_end(nursery)
                    await self._bell.wait()
        finally:
            self._end(sorted(self._running), "the node drains")

    def _begin_and_end(self, nursery: trio.Nursery) -> None:
        duties = self.duties()
        self._end(sorted(self._running.keys() - duties.keys()), "it is not done here")
        fresh = [name for name in duties if name not in self._running]
        for name in fresh:
            scope = self._running[name] = trio.CancelScope()
            nursery.start_soon(self._serve, duties[name], scope)
        if fresh:
            self.observer.acquired(fresh)

    def _end(self, names: list[str], why: str) -> None:
        for name in names:
            self._running.pop(name).cancel()
        if names:
            self.observer.released(names, why)

    async def _serve(self, duty: Duty, scope: trio.CancelScope) -> None:
        with scope:
            while True:  # there is nobody to leave it to
                await serve(duty, Tally(), self.observer, self.rng, self.log)
                await trio.sleep(TO_OTHERS_SECONDS)
