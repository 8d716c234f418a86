"""Looks after the idle tenants of a node: one question a store for all of them, and only who has
something to do is woken.

    ┌────────┐ looks find nothing for a while, ┌─────────┐ one more look   ┌─────────┐
    │ LOOKED │ ──and an idle check agrees────> │ CHECKED │ ──finds none──> │ RESTING │
    └────────┘                                 └─────────┘                 └─────────┘
        ^                                           │                           │ ^  │
        └── news, work, no answer, a job's time ────┴───────────────────────────┘ └──┘
                                                              an idle check now and then

Each tenant goes its own way through these. A look comes once a poll interval; the idle check is
that of `workers/idleness.py`, for many tenants at once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from uuid import UUID

import attrs
import trio

from musterd.config.settings import LiveSettings
from musterd.manager.tenancy.tenancy import Tenancy
from musterd.store.errors import StoreError, StoreUnavailable
from musterd.store.idle_tenant_scan import EVERYTHING, NOTHING, TenantActivity, TenantScan
from musterd.store.queue import IdleCheck
from musterd.store.waiting import Bell
from musterd.workers.idleness import DISTRUST_SECONDS, GRACE_SECONDS, listen_seconds

QUIET_SECONDS = 2.0  # looks find nothing for so long before an idle check is worth its price


class _State(Enum):
    LOOKED = "looked at"
    CHECKED = "checked"  # at rest, if one more look finds nothing
    RESTING = "resting"  # only a hint, or the time of a job, can bring work


@attrs.define(eq=False)
class _Watch:
    tenancy: Tenancy
    state: _State = _State.LOOKED
    quiet_since_local: float = attrs.field(factory=trio.current_time)
    due_local: float = float("inf")  # when the next job becomes due, while it rests
    news: int = 0  # so many had come when it was last looked at

    def has_news(self) -> bool:
        return self.tenancy.idleness.news_count != self.news

    def stir(self) -> None:
        self.state, self.quiet_since_local = _State.LOOKED, trio.current_time()
        self.news = self.tenancy.idleness.news_count


@attrs.define(eq=False)
class IdleTenantScan:
    """Owned by the daemon. A single tenant, or one that no scan knows, looks after itself."""

    tenancies: Mapping[str, Tenancy]
    scans: Callable[[], Collection[TenantScan]]
    settings: LiveSettings  # of the node
    me: UUID
    rng: random.Random
    bell: Bell = attrs.field(factory=Bell, init=False)  # the tenants have changed, or one has news
    _watched: dict[str, _Watch] = attrs.field(factory=dict[str, _Watch], init=False)
    _under_way: set[int] = attrs.field(factory=set[int], init=False)
    _check_local: float = attrs.field(default=0.0, init=False)  # the next idle check comes then
    _trusted_local: float = attrs.field(default=0.0, init=False)  # from then on hints are trusted

    async def run(self) -> None:
        async with trio.open_nursery() as looks:
            while True:
                if len(self.tenancies) == 1 and not self._watched:
                    await self.bell.wait()
                self.bell.clear()
                self._look_everywhere(looks)
                poll_seconds = self.settings.now.workers.poll_interval_ms / 1000
                await trio.sleep(poll_seconds * self.rng.uniform(0.9, 1.1))
                await self.bell.wait(self._rest_seconds())

    def _rest_seconds(self) -> float:
        """How long nobody needs a look unless there is news."""
        if any(watch.state is not _State.RESTING for watch in self._watched.values()):
            return 0.0
        first_local = min((one.due_local for one in self._watched.values()), default=float("inf"))
        return max(0.0, min(first_local, self._check_local) - trio.current_time())

    def _look_everywhere(self, looks: trio.Nursery) -> None:
        for gone in self._watched.keys() - self.tenancies.keys():
            del self._watched[gone]
        for scan in self.scans():
            # One that does not answer holds up nobody else.
            if id(scan) not in self._under_way:
                self._under_way.add(id(scan))
                looks.start_soon(self._look, scan)

    async def _look(self, scan: TenantScan) -> None:
        try:
            names = self._of(scan)
            self._wake_due(names)
            awake = [n for n in names if self._watched[n].state is not _State.RESTING]
            await self._look_at(scan, awake)
            if trio.current_time() >= self._check_local and any(map(self._may_rest, names)):
                await self._check(scan, names)
        finally:
            self._under_way.discard(id(scan))

    # -- who is watched

    def _of(self, scan: TenantScan) -> list[str]:
        """The tenants of this scan that can be watched, and are from now on."""
        known = [name for name in scan.tenants if name in self.tenancies]
        running = [name for name in known if self.tenancies[name].phase == "running"]
        watched = running if len(self.tenancies) > 1 else []
        for name in known:
            self._note(name, self.tenancies[name], is_watched=name in watched)
        return watched

    def _note(self, name: str, tenancy: Tenancy, *, is_watched: bool) -> None:
        watch = self._watched.get(name)
        was_watched = watch is not None and watch.tenancy is tenancy  # else an earlier one was
        if is_watched == was_watched:
            return
        if is_watched:
            self._watched[name] = _Watch(tenancy)
            tenancy.idleness.begin_scan(self.bell.ring)
        else:
            del self._watched[name]
            tenancy.end_scan()

    # -- looking

    def _wake_due(self, names: Sequence[str]) -> None:
        """Tenants with news or a due job are looked at again."""
        now = trio.current_time()
        for watch in (self._watched[name] for name in names):
            if watch.state is _State.RESTING and now >= watch.due_local:
                watch.tenancy.note_activity(EVERYTHING)
            if watch.has_news():
                watch.stir()

    async def _look_at(self, scan: TenantScan, names: Sequence[str]) -> None:
        if not names:
            return
        try:
            found = await scan.look(names)
        except StoreUnavailable:
            return  # the tenant that has something to do will notice, and say so
        except StoreError:
            # One of them spoils it for all: each looks for itself, and tells what is wrong.
            found = dict.fromkeys(names, EVERYTHING)
        for name, activity in found.items():
            if name in self._watched:
                self._take(self._watched[name], activity)

    def _take(self, watch: _Watch, activity: TenantActivity) -> None:
        watch.tenancy.note_activity(activity)
        if activity != NOTHING or watch.has_news():
            watch.stir()
        elif watch.state is _State.CHECKED:
            watch.state = _State.RESTING

    # -- resting

    def _may_rest(self, name: str) -> bool:
        watch, now = self._watched[name], trio.current_time()
        is_quiet = now - watch.quiet_since_local >= QUIET_SECONDS
        return watch.state is not _State.LOOKED or (is_quiet and now >= self._trusted_local)

    async def _check(self, scan: TenantScan, names: Sequence[str]) -> None:
        """Asks for all at once: always the same statement, planned once."""
        self._check_local = trio.current_time() + listen_seconds(self.settings.now, self.rng)
        checked = await scan.check(names, self.me)
        for name in names:
            if name in self._watched and self._may_rest(name):
                await self._judge(self._watched[name], checked.get(name))

    async def _judge(self, watch: _Watch, check: IdleCheck | None) -> None:
        was_resting = watch.state is _State.RESTING
        if check is not None and check.at_rest and not watch.has_news():
            watch.state = _State.RESTING if was_resting else _State.CHECKED
            due_seconds = check.next_due_seconds
            now = trio.current_time()
            watch.due_local = float("inf") if due_seconds is None else now + due_seconds
            return
        if was_resting and check is not None and check.due:
            await trio.sleep(GRACE_SECONDS)
            if not watch.has_news():  # the hint did not come, nor may others
                self._trusted_local = trio.current_time() + DISTRUST_SECONDS
                for each in self._watched.values():
                    each.stir()
        watch.stir()
