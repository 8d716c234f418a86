"""How idle a tenant is on this node, and so how seldom its parts query the store; and what wakes
it: hints from the store and due times.

Hints and alarms may fail; polling is the truth. While hints are known to arrive and nothing can
happen without one, the node only listens; an idle check makes sure of both now and then.

`Idleness` owns the state. Its parts ask for it, or subscribe to what must wake them:

    ┌────────┐  looks find nothing, and are   ┌───────┐  only a hint can    ┌───────────┐
    │ ACTIVE │ ─────as seldom as polls──────> │ QUIET │ ───bring work─────> │ LISTENING │
    └────────┘                                └───────┘                     └───────────┘
      │ ^  ^                                      │                               │
      │ │  └──────────────────────── news ────────┴───────────────────────────────┘
      │ │
      │ └───── the scan ends ────┐                       (the scan may begin in any state)
      │                     ┌─────────┐  nothing to do    ┌─────────┐
      └── the scan begins ─>│ SCANNED │ ────────────────> │ RESTING │
                            └─────────┘ <──────────────── └─────────┘
                                          there is again

Claim pacing moves it to QUIET and reports news, idle mode moves it to LISTENING. On a node with
several tenants the idle tenant scan begins and ends SCANNED; the supervisor moves it to RESTING.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import attrs
import trio

from musterd.config.settings import LiveSettings, Settings, lease_plan
from musterd.store.engine import Engine
from musterd.store.errors import StoreError
from musterd.store.queue import IdleCheck
from musterd.store.waiting import Bell
from musterd.workers.outcome import Contained, log_contained

if TYPE_CHECKING:
    from musterd.workers.claiming.desk import Desk  # which asks how idle the tenant is
    from musterd.workers.leases import LeaseKeeper


class IdleState(Enum):
    ACTIVE = "active"  # work, or news of some, came a moment ago
    QUIET = "quiet"  # nothing is new: the desk looks once a poll interval
    LISTENING = "listening"  # nothing can happen without a hint: the desk does not look
    SCANNED = "scanned"  # the node looks at the queues of all its tenants: the desk does not
    RESTING = "resting"  # as SCANNED; the crew is at its floor and has nothing to do


class Move(NamedTuple):
    """A change of state. `rested_seconds`: how long it had been RESTING."""

    before: IdleState
    after: IdleState
    rested_seconds: float


class Idleness:
    """Owned by a tenancy. Subscribers are called at once, and must not fail."""

    def __init__(self) -> None:
        self._state = IdleState.ACTIVE
        self._resting_since_local = float("inf")
        self._quiet = trio.Event()  # set while QUIET or LISTENING
        self._stirred = trio.Event()  # set when that ends
        self._news_count = 0
        self._scan_hears: Callable[[], None] | None = None
        self._news_subscribers: list[Callable[[], None]] = []
        self._move_subscribers: list[Callable[[Move], None]] = []

    @property
    def state(self) -> IdleState:
        return self._state

    @property
    def is_scanned(self) -> bool:
        """Whether the node looks at the queue for this tenant."""
        return self._state in (IdleState.SCANNED, IdleState.RESTING)

    @property
    def is_notified(self) -> bool:
        """Whether hints or the node's scan report all that happens, so that nobody need look."""
        return self.is_scanned or self._state is IdleState.LISTENING

    @property
    def rested_seconds(self) -> float:
        """How long it has been RESTING; 0 = it is not."""
        return max(0.0, trio.current_time() - self._resting_since_local)

    @property
    def news_count(self) -> int:
        """How often there has been news. The same number later: nothing has happened meanwhile."""
        return self._news_count

    async def until_quiet(self) -> trio.Event:
        """Returns when it is QUIET, and gives an event that is set as soon as that, and LISTENING
        after it, has ended.
        """
        await self._quiet.wait()
        return self._stirred

    # -- subscribing

    def on_news(self, call: Callable[[], None]) -> None:
        """Calls it whenever there is, or may be, work."""
        self._news_subscribers.append(call)

    def on_move(self, call: Callable[[Move], None]) -> None:
        self._move_subscribers.append(call)

    # -- moving

    def note_news(self) -> None:
        """There is work, or there may be."""
        if not self.is_scanned:
            self._move(IdleState.ACTIVE)
        self._news_count += 1
        for call in self._news_subscribers:
            call()
        if self._scan_hears is not None:
            self._scan_hears()

    def note_quiet(self) -> None:
        """Looks find nothing and have become as seldom as polls."""
        if self._state is IdleState.ACTIVE:
            self._move(IdleState.QUIET)

    def listen(self) -> None:
        """Nothing can happen without a hint, and hints are known to arrive."""
        if self._state is IdleState.QUIET:
            self._move(IdleState.LISTENING)

    def begin_scan(self, on_news: Callable[[], None] | None = None) -> None:
        """`on_news` is called as those of `on_news` are, until the scan ends."""
        self._scan_hears = on_news
        if not self.is_scanned:
            self._move(IdleState.SCANNED)

    def end_scan(self) -> None:
        self._scan_hears = None
        if self.is_scanned:
            self._move(IdleState.ACTIVE)

    def rest(self, *, has_nothing_to_do: bool) -> bool:
        """Gives whether the supervisor may sleep until there is news: it is scanned, and the crew
        has nothing to do.
        """
        if self.is_scanned:
            self._move(IdleState.RESTING if has_nothing_to_do else IdleState.SCANNED)
        return self._state is IdleState.RESTING

    def _move(self, after: IdleState) -> None:
        before = self._state
        if before is after:
            return
        move = Move(before, after, self.rested_seconds)
        self._state = after
        self._resting_since_local = float("inf")
        if after is IdleState.RESTING:
            self._resting_since_local = trio.current_time()
        elif after is IdleState.QUIET:
            self._quiet.set()
        elif after is not IdleState.LISTENING and self._quiet.is_set():
            self._stirred.set()
            self._quiet, self._stirred = trio.Event(), trio.Event()
        for call in self._move_subscribers:
            call(move)


DEAF_SECONDS = 1.0  # after the source of hints broke
ALARM_SECONDS_MAX = 3600.0


async def listen(
    engine: Engine,
    desk: Desk,
    leases: LeaseKeeper,
    duties_free: Callable[[], None],
    rng: random.Random,
    contained: Callable[[Contained], None] = log_contained,
) -> None:
    """Passes the store's hints on, for ever."""
    while True:
        try:
            hint = await engine.queue.wait_for_hint()
            if hint.new_work:
                desk.hint()
            leases.ask(hint.requests)
            if hint.duties:
                duties_free()
        except Exception as error:  # noqa: BLE001 - whatever broke
            if not isinstance(error, StoreError):  # which the engine's instrumentation has logged
                contained(Contained("hint", None, None, error))
            desk.poll()  # until hints come again
            await trio.sleep(DEAF_SECONDS * rng.uniform(0.5, 1.5))


@attrs.define(eq=False)
class Alarm:
    """Rings when the next delayed job becomes due. Set anew each time the queue runs dry."""

    engine: Engine
    desk: Desk
    _set: Bell = attrs.field(factory=Bell, init=False)

    def set(self) -> None:
        self._set.ring()

    async def run(self) -> None:
        while True:
            await self._set.wait()
            self._set.clear()
            try:
                seconds = await self.engine.queue.next_due_seconds()
            except StoreError:
                continue  # polling finds the job
            if seconds is None:
                continue
            if await self._set.wait(min(seconds, ALARM_SECONDS_MAX)):
                continue
            self.desk.hint()


POLLS_SPARED = 20  # an idle check takes the place of so many polls
CHECK_SECONDS_MAX = 5.0  # but comes at least this often, where polls do
AGAIN_SECONDS = 1.0  # after a check that found something to do; doubled with each further one
AGAIN_SECONDS_MAX = 15.0
GRACE_SECONDS = 0.1  # a hint may come a moment after what it speaks of can be seen
DISTRUST_SECONDS = 60.0  # after a hint that did not come


@attrs.define(eq=False)
class IdleMode:
    """Owned by a tenancy, beside its desk. `me` is the node."""

    engine: Engine
    desk: Desk
    idleness: Idleness
    me: UUID
    settings: LiveSettings
    rng: random.Random

    async def run(self) -> None:
        restless = 0  # checks in a row that found something to do
        while True:
            stirred = await self.idleness.until_quiet()
            check = await self._check()
            if check is None or not check.at_rest or stirred.is_set():
                pause = min(AGAIN_SECONDS_MAX, AGAIN_SECONDS * 2.0 ** min(restless, 10))
                restless += 1
                await trio.sleep(pause * self.rng.uniform(0.5, 1.0))
                continue
            restless = 0
            self.idleness.listen()
            if not await self._listen(check, stirred):
                await trio.sleep(DISTRUST_SECONDS * self.rng.uniform(0.8, 1.2))

    async def _listen(self, check: IdleCheck, stirred: trio.Event) -> bool:
        """Until something happens. Says whether a hint came of it, as it should."""
        while True:
            pause = listen_seconds(self.settings.now, self.rng)
            due = check.next_due_seconds
            with trio.move_on_after(pause if due is None else min(pause, due)):
                await stirred.wait()
                return True
            if due is not None and due <= pause:
                self.desk.hint()
                return True
            seen = await self._check()
            if seen is None or not seen.at_rest or stirred.is_set():
                return await self._wake_up(seen, stirred)
            check = seen

    async def _wake_up(self, seen: IdleCheck | None, stirred: trio.Event) -> bool:
        if seen is not None and seen.due:
            with trio.move_on_after(GRACE_SECONDS):
                await stirred.wait()
        came = stirred.is_set() or seen is None or not seen.due
        self.desk.poll()
        return came

    async def _check(self) -> IdleCheck | None:
        try:
            return await self.engine.idle.check(self.me)
        except StoreError:
            return None


def listen_seconds(settings: Settings, rng: random.Random) -> float:
    """How long a node listens before it makes sure again."""
    poll_seconds = settings.workers.poll_interval_ms / 1000
    # A lease of another node must not expire unseen.
    lease_seconds = lease_plan(settings).lease_seconds
    spared = min(CHECK_SECONDS_MAX, POLLS_SPARED * poll_seconds, lease_seconds / 4)
    return max(poll_seconds, spared) * rng.uniform(0.9, 1.0)
