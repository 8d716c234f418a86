"""What makes a desk look, and what lets it rest: hints from the store, due times, and idle mode.

Hints and alarms may fail; polling is the truth. While hints are known to arrive and nothing can
happen without one, the node only listens; an idle check makes sure of both now and then.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from uuid import UUID

import attrs
import trio

from musterd.config.settings import LiveSettings, Settings, lease_plan
from musterd.store.engine import Engine
from musterd.store.errors import StoreError
from musterd.store.queue import IdleCheck
from musterd.store.waiting import Bell
from musterd.workers.claiming.desk import Desk
from musterd.workers.idleness import Idleness
from musterd.workers.leases import LeaseKeeper

DEAF_SECONDS = 1.0  # after the source of hints broke
ALARM_SECONDS_MAX = 3600.0


async def listen(
    engine: Engine,
    desk: Desk,
    leases: LeaseKeeper,
    duties_free: Callable[[], None],
    rng: random.Random,
) -> None:
    """Passes the store's hints on, for ever."""
    while True:
        try:
            hint = await engine.queue.wait_for_hint()
        except StoreError:  # the engine's instrumentation has logged it
            desk.poll()  # until hints come again
            await trio.sleep(DEAF_SECONDS * rng.uniform(0.5, 1.5))
        else:
            leases.ask(hint.requests)
            if hint.new_work:
                desk.hint()
            if hint.duties:
                duties_free()


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
