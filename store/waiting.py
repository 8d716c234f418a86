"""What tasks wait by: a bell that others ring, pauses that grow, several answers at once; and what
waits for a store.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import attrs
import trio

T = TypeVar("T")
FAILURES_COUNTED = 30  # 2.0 ** 30 times the base is beyond every bound


@attrs.define(eq=False)
class Bell:
    """Wakes a task that waits for something to do. It stays rung until it is cleared, so nothing
    is missed between two waits; many rings are one.
    """

    _rung: trio.Event = attrs.field(factory=trio.Event, init=False)

    @property
    def is_rung(self) -> bool:
        return self._rung.is_set()

    def ring(self) -> None:
        self._rung.set()

    def clear(self) -> None:
        """What was rung for is being done from now on."""
        if self._rung.is_set():
            self._rung = trio.Event()

    async def wait(self, seconds_max: float = float("inf")) -> bool:
        """Returns when the bell is rung; says whether it is, `seconds_max` later at the latest."""
        with trio.move_on_after(max(0.0, seconds_max)):
            await self._rung.wait()
        return self._rung.is_set()


@attrs.define(eq=False)
class Backoff:
    """Pauses between tries: each longer than the one before, up to `max_seconds`, until something
    has succeeded. `rng` cuts each by up to half, so that nodes do not come back all at once.
    """

    base_seconds: float
    max_seconds: float
    rng: random.Random | None = None
    factor: float = 2.0
    _failures: int = attrs.field(default=0, init=False)

    def failed(self, seconds_max: float = float("inf")) -> float:
        """Gives the pause before the next try, `seconds_max` at most."""
        full_seconds = self.base_seconds * self.factor ** min(self._failures, FAILURES_COUNTED)
        self._failures += 1
        full_seconds = min(self.max_seconds, seconds_max, full_seconds)
        return full_seconds * (1.0 if self.rng is None else self.rng.uniform(0.5, 1.0))

    def succeeded(self) -> None:
        self._failures = 0

    async def sleep(self) -> None:
        """Sleeps through the pause before the next try."""
        await trio.sleep(self.failed())


def own_backoff(base_seconds: float, max_seconds: float) -> Any:
    """A field of a class that has an `rng`: the pauses of each of its objects."""
    made = attrs.Factory(
        lambda owner: Backoff(base_seconds, max_seconds, owner.rng), takes_self=True
    )
    return attrs.field(default=made, init=False)


@attrs.define(eq=False)
class WriteLoop:
    """Has what waits for the store written: a moment after it has come, so that more goes along,
    and in ever longer pauses while the store is away.
    """

    write: Callable[[], Awaitable[bool]]  # a batch; False = the store is away
    waits: Callable[[], bool]  # whether anything does
    pause_seconds: float
    away_seconds_max: float
    bell: Bell = attrs.field(factory=Bell, init=False)  # to be rung when something has come

    async def run(self) -> None:
        backoff = Backoff(self.pause_seconds, self.away_seconds_max)
        while True:
            await self.bell.wait()
            await trio.sleep(self.pause_seconds)
            self.bell.clear()
            if await self.write():
                backoff.succeeded()
            else:
                await backoff.sleep()
            if self.waits():
                self.bell.ring()

    async def finish(self, seconds_max: float) -> None:
        """Has the last of it written, as far as there is time."""
        with trio.move_on_after(seconds_max):
            while self.waits() and await self.write():
                pass


async def each_in_order(asks: Sequence[Callable[[], Awaitable[T]]], at_once: int) -> list[T]:
    """The results in order; at most `at_once` run at the same time."""
    found: dict[int, T] = {}
    limit = trio.CapacityLimiter(at_once)

    async def ask(place: int) -> None:
        async with limit:
            found[place] = await asks[place]()

    async with trio.open_nursery() as nursery:
        for place in range(len(asks)):
            nursery.start_soon(ask, place)
    return [found[place] for place in sorted(found)]
