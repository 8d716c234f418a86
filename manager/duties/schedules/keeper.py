"""The duty of schedules: sees to each slot when its time has come, on the store's clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

import attrs
import trio

from musterd.catalog.kinds import Catalog
from musterd.config.live import LiveSettings
from musterd.config.schedules import Schedule, of_tenant
from musterd.manager.duties.schedules.slots import Seeing, in_turns, let_all_go, seeing
from musterd.store.errors import StoreError, StoreMisconfigured, StoreUnavailable
from musterd.store.schedules import Firing, ScheduleRecord, Schedules
from musterd.store.waiting import Bell

SLOTS_A_ROUND = 100  # a whole batch of the duty
LOOK_SECONDS = 20.0  # somebody may have resumed a schedule, or moved the clock
SOON = float("-inf")
SOONEST_SECONDS = 0.001
HELD_BACK_SECONDS = 60.0  # for so long a schedule is left alone that could not be seen to
CLOCK_AHEAD = timedelta(hours=3)  # a last slot that is further in the future is a wrong clock's


class ScheduleRefused(StoreError):
    """The store refused the job of a schedule. The others were seen to."""


class ScheduleBroken(RuntimeError):
    """A fault of the program met one schedule. The others were seen to."""


@attrs.define(eq=False)
class ScheduleKeeper:
    """`settings` are the tenant's own. A second keeper beside it does no harm:
    the store sees to each slot once.
    """

    store: Schedules
    settings: LiveSettings
    catalog: Callable[[], Catalog]
    look_seconds: float = LOOK_SECONDS
    _due_local: dict[str, float] = attrs.field(factory=dict[str, float], init=False)
    _look_local: float = attrs.field(default=SOON, init=False)  # when to look at all
    _held_back: dict[str, float] = attrs.field(factory=dict[str, float], init=False)
    _failed: dict[str, Exception] = attrs.field(factory=dict[str, Exception], init=False)
    _bell: Bell = attrs.field(factory=Bell, init=False)

    def wake(self) -> None:
        """The configuration has changed."""
        self._look_local = SOON
        self._held_back.clear()
        self._bell.ring()

    async def run(self) -> int:
        """One round; gives how many slots were seen to, at most SLOTS_A_ROUND. When all have had
        their turn it raises for those that could not be seen to, and leaves them alone for a while.
        """
        self._bell.clear()
        self._failed.clear()
        now = self.settings.now
        schedules = of_tenant(now.schedules, now.tenant)
        names = self._to_look_at(schedules)
        next_look_local, self._look_local = self._look_local, SOON  # unless all of it is done
        seen, is_done = await self._see_to(schedules, names) if names else (0, True)
        if is_done and not self._bell.is_rung:
            self._look_local = next_look_local
        self._complain()
        return seen

    async def wait(self, _seconds: float) -> None:
        """Until the next slot of any schedule."""
        next_local = min([self._look_local, *self._due_local.values(), *self._held_back.values()])
        seconds = max(SOONEST_SECONDS, next_local - trio.current_time())
        await self._bell.wait(seconds)

    def _to_look_at(self, schedules: Mapping[str, Schedule]) -> list[str]:
        """Those whose slot has come; every now and then all, but those that are left alone."""
        now_local = trio.current_time()
        self._held_back = _later(self._held_back, schedules, now_local)
        if now_local >= self._look_local:
            self._look_local = now_local + self.look_seconds
            self._due_local = {}
        self._due_local = _later(self._due_local, schedules, now_local)
        resting = self._due_local.keys() | self._held_back.keys()
        return sorted(schedules.keys() - resting)

    async def _see_to(
        self, schedules: Mapping[str, Schedule], names: Sequence[str]
    ) -> tuple[int, bool]:
        """How many slots were seen to, and whether these were all."""
        records = await self.store.know(names)
        now_local = trio.current_time()
        wanted: dict[str, Sequence[datetime]] = {}
        for record in records:
            try:
                wanted[record.name] = await self._begin(schedules[record.name], record, now_local)
            except Exception as error:
                if _is_about_all(error):
                    raise
                self._hold_back(record.name, error)
        seen = await self._fire(schedules, in_turns(wanted, SLOTS_A_ROUND))
        return seen, sum(map(len, wanted.values())) <= SLOTS_A_ROUND

    async def _begin(
        self, schedule: Schedule, record: ScheduleRecord, now_local: float
    ) -> Sequence[datetime]:
        """Lets go what is to be let go; gives the slots to be fired."""
        self._due_local[schedule.name] = float("inf")
        if record.paused_at is not None:
            return ()
        if record.last_slot - record.now > CLOCK_AHEAD:
            await self.store.rewind(schedule.name, CLOCK_AHEAD)
            self._due_local[schedule.name] = now_local  # a second look says from when on it goes
            return ()
        await trio.lowlevel.checkpoint()  # others get their turn: slots take time to compute
        todo = _todo(schedule, record)
        if todo.following is not None:
            seconds = (todo.following - record.now).total_seconds()
            self._due_local[schedule.name] = now_local + seconds
        if todo.let_go_to is not None:
            await self.store.let_go(schedule.name, todo.let_go_to, todo.let_go)
        return todo.fire

    async def _fire(
        self, schedules: Mapping[str, Schedule], turns: Sequence[tuple[str, datetime]]
    ) -> int:
        seen = 0
        for name, slot in turns:
            if name in self._failed:
                continue  # its slots go forward only: a later one would lose this
            try:
                fired = await self.store.fire(firing_of(schedules[name], self.catalog(), slot))
            except Exception as error:
                if _is_about_all(error):
                    raise
                self._hold_back(name, error)
            else:
                seen += fired.taken
        return seen

    def _hold_back(self, name: str, error: Exception) -> None:
        self._failed[name] = error
        self._held_back[name] = trio.current_time() + HELD_BACK_SECONDS

    def _complain(self) -> None:
        if not self._failed:
            return
        name, error = next(iter(self._failed.items()))
        more = len(self._failed) - 1
        said = f"schedule {name}: {error}" + (f" (and {more} more)" if more else "")
        kind = ScheduleRefused if isinstance(error, StoreError) else ScheduleBroken
        raise kind(said) from error


def firing_of(schedule: Schedule, catalog: Catalog, slot: datetime | None) -> Firing:
    """The job that a schedule wants; `slot` None = now, by hand."""
    kind = catalog.get(schedule.kind)
    priority = schedule.priority
    if priority is None:
        priority = 0 if kind is None else kind.priority
    return Firing(
        schedule.name, slot, schedule.kind, schedule.payload, priority, schedule.target,
        schedule.overlap == "skip" and slot is not None,
    )  # fmt: skip


def _is_about_all(error: Exception) -> bool:
    return isinstance(error, StoreUnavailable | StoreMisconfigured)


def _later(
    times_local: Mapping[str, float], schedules: Mapping[str, Schedule], now_local: float
) -> dict[str, float]:
    """The times that are still to come, of schedules that there are."""
    return {name: at for name, at in times_local.items() if name in schedules and at > now_local}


def _todo(schedule: Schedule, record: ScheduleRecord) -> Seeing:
    if schedule.enabled:
        return seeing(schedule.rhythm, record.last_slot, record.now, schedule.missed)
    return let_all_go(schedule.rhythm, record.last_slot, record.now)
