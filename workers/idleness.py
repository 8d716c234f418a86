"""Spares an idle node its polls: while hints are known to arrive and nothing can happen without
one, it only listens, and makes sure of both now and then.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from uuid import UUID

import attrs
import trio

from musterd.config.leasing import lease_plan
from musterd.config.live import LiveSettings
from musterd.store.engine import Engine
from musterd.store.errors import StoreError
from musterd.store.outlook import IdleCheck
from musterd.store.waiting import Backoff
from musterd.workers.claiming.desk import Desk

POLLS_SPARED = 20  # an outlook takes the place of so many polls
LOOK_SECONDS_MAX = 5.0  # but comes at least this often, where polls do
AGAIN_SECONDS = 1.0  # after an outlook that showed no rest; doubled with each further one
AGAIN_SECONDS_MAX = 15.0
GRACE_SECONDS = 0.1  # a hint may come a moment after what it speaks of can be seen
DISTRUST_SECONDS = 60.0  # after a hint that did not come


@attrs.define(eq=False)
class IdleMode:
    """Owned by a tenancy, beside its desk. `me` is the node. `at_rest` is told when a rest begins
    and ends.
    """

    engine: Engine
    desk: Desk
    me: UUID
    settings: LiveSettings
    rng: random.Random
    at_rest: Callable[[bool], None]

    async def run(self) -> None:
        backoff = Backoff(AGAIN_SECONDS, AGAIN_SECONDS_MAX, self.rng)
        while True:
            await self.desk.pacing.lull()
            news = self.desk.pacing.news
            outlook = await self._look()
            if outlook is None or not outlook.at_rest or news.is_set():
                await backoff.sleep()
                continue
            backoff.succeeded()
            self.desk.pacing.trust_hints()
            self.at_rest(True)
            try:
                came = await self._keep(outlook, news)
            finally:
                self.at_rest(False)
            if not came:
                await trio.sleep(DISTRUST_SECONDS * self.rng.uniform(0.8, 1.2))

    async def _keep(self, outlook: IdleCheck, news: trio.Event) -> bool:
        """Until something happens. Says whether a hint came of it, as it should."""
        while True:
            pause, due = self._pause_seconds(), outlook.next_due_seconds
            with trio.move_on_after(pause if due is None else min(pause, due)):
                await news.wait()
                return True
            if due is not None and due <= pause:
                self.desk.hint()
                return True
            seen = await self._look()
            if seen is None or not seen.at_rest or news.is_set():
                return await self._wake_up(seen, news)
            outlook = seen

    async def _wake_up(self, seen: IdleCheck | None, news: trio.Event) -> bool:
        if seen is not None and seen.due:
            with trio.move_on_after(GRACE_SECONDS):
                await news.wait()
        came = news.is_set() or seen is None or not seen.due
        self.desk.poll()
        return came

    async def _look(self) -> IdleCheck | None:
        try:
            return await self.engine.idle.check(self.me)
        except StoreError:
            return None

    def _pause_seconds(self) -> float:
        poll_seconds = self.desk.pacing.poll_seconds
        # A lease of another node cannot run out unseen.
        lease_seconds = lease_plan(self.settings.now).lease_seconds
        spared = min(LOOK_SECONDS_MAX, POLLS_SPARED * poll_seconds, lease_seconds / 4)
        return max(poll_seconds, spared) * self.rng.uniform(0.9, 1.0)
