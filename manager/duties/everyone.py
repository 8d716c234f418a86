"""Duties without leaders: each node does all of them, as suits a single one, and development."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import attrs
import trio

from musterd.manager.duties.duty import Duty, DutyObserver, Tally, serve
from musterd.manager.log import Log
from musterd.store.waiting import Bell


@attrs.define(eq=False)
class Everyone:
    """Owned by a tenancy; to be used as `Leadership` is."""

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
        """There may be others to be done."""
        self._bell.ring()

    def change_pace(self) -> None:
        """Nothing is held for a time."""

    async def run(self) -> None:
        """Until cancelled."""
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
            await serve(duty, Tally(), self.observer, self.rng, self.log)
