"""How idle a tenant is on this node, and so how seldom its parts query the store.

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

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

import trio


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
