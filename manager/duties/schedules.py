"""The duty of schedules: finds due slots and handles them on time, by the store's clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice, zip_longest

import attrs
import trio

from musterd.catalog.kinds import Catalog, UnknownKind
from musterd.config.cron import Rhythm
from musterd.config.faults import Fault
from musterd.config.schedules import Missed, Schedule, as_written, of_tenant
from musterd.config.settings import Limits, LiveSettings, Settings
from musterd.config.tenants import settings_of
from musterd.store.errors import InputRefused, StoreError, StoreMisconfigured, StoreUnavailable
from musterd.store.input import PayloadLimits, check_payload
from musterd.store.schedules import Firing, ScheduleRecord, Schedules
from musterd.store.waiting import Bell
from musterd.store.words import time_text

ON_TIME = timedelta(seconds=30)  # a slot that is older has been missed
MISSED_MAX = 1000  # with `missed = "all"`: of more, the latest
_FIRST_SPAN = timedelta(minutes=1)
_AT_A_TIME_MAX = MISSED_MAX + 1


@attrs.frozen
class Seeing:
    """What to do now: skip the slots up to `let_go_to`, `let_go` of which count, then fire those of
    `fire` in order. `following` is the next slot.
    """

    following: datetime | None
    fire: tuple[datetime, ...] = ()
    let_go_to: datetime | None = None
    let_go: int = 0


def seeing(rhythm: Rhythm, last_slot: datetime, now: datetime, missed: Missed) -> Seeing:
    found, following = _latest(rhythm, last_slot, now)
    on_time = [slot for slot in found if now - slot <= ON_TIME]
    late = found[: len(found) - len(on_time)]
    kept = {"skip": 0, "once": 1, "all": MISSED_MAX}[missed]
    wanted = late[max(0, len(late) - kept) :]
    left_out = late[: len(late) - len(wanted)]
    if not left_out:
        return Seeing(following, tuple(wanted + on_time))
    return Seeing(following, tuple(wanted + on_time), left_out[-1], len(left_out))


def let_all_go(rhythm: Rhythm, last_slot: datetime, now: datetime) -> Seeing:
    """For a disabled schedule: nobody takes its slots."""
    found, _ = _latest(rhythm, last_slot, now)
    return Seeing(None, (), found[-1] if found else None)


def upcoming(rhythm: Rhythm, after: datetime, count: int) -> list[datetime]:
    return list(islice(_slots(rhythm, after), count))


def in_turns(wanted: Mapping[str, Sequence[datetime]], most: int) -> list[tuple[str, datetime]]:
    """The first `most` slots of several schedules, in turn, so that none delays the others."""
    rows = zip_longest(*wanted.values())
    turns = ((name, slot) for row in rows for name, slot in zip(wanted, row, strict=True))
    return list(islice(((name, slot) for name, slot in turns if slot is not None), most))


def _latest(
    rhythm: Rhythm, last_slot: datetime, now: datetime
) -> tuple[list[datetime], datetime | None]:
    """The slots after `last_slot` up to `now`, or only the latest if there are very many; and the
    one after these.

    Usually the first slot is still to come. If there are many, this walks backwards, so that the
    cost stays bounded however long nobody was there and however unevenly they lie.
    """
    found, following = _within(rhythm, last_slot, now)
    if found is not None:
        return found[-MISSED_MAX - 1 :], following
    found = []
    span, end = _FIRST_SPAN, now
    while end > last_slot and len(found) <= MISSED_MAX:
        start = max(last_slot, end - span)
        earlier, _ = _within(rhythm, start, end)
        if earlier is None:
            span /= 4
            continue
        found, end = earlier + found, start
        span *= 2
    return found[-MISSED_MAX - 1 :], rhythm.next_after(now)


def _within(
    rhythm: Rhythm, start: datetime, end: datetime
) -> tuple[list[datetime] | None, datetime | None]:
    """The slots after `start` up to `end`, None = too many to compute; and the one after these."""
    found: list[datetime] = []
    for slot in _slots(rhythm, start):
        if slot > end:
            return found, slot
        if len(found) == _AT_A_TIME_MAX:
            return None, None
        found.append(slot)
    return found, None


def _slots(rhythm: Rhythm, after: datetime) -> Iterator[datetime]:
    slot = rhythm.next_after(after)
    while slot is not None:
        yield slot
        slot = rhythm.next_after(slot)


SLOTS_A_ROUND = 100  # a whole batch of the duty
LOOK_SECONDS = 20.0  # somebody may have resumed a schedule, or moved the clock
SOON = float("-inf")
SOONEST_SECONDS = 0.001
HELD_BACK_SECONDS = 60.0  # for so long a schedule is left alone that could not be seen to
CLOCK_AHEAD = timedelta(hours=3)  # a last slot that is further in the future is a wrong clock's


class ScheduleRefused(StoreError):
    """The store refused a schedule's job. The other schedules were handled."""


class ScheduleBroken(RuntimeError):
    """A bug met one schedule. The others were handled."""


@attrs.define(eq=False)
class ScheduleKeeper:
    """`settings` are the tenant's. Two keepers do no harm: the store takes each slot once."""

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
        self._look_local = SOON
        self._held_back.clear()
        self._bell.ring()

    async def run(self) -> int:
        """One round; returns how many slots were handled, at most SLOTS_A_ROUND. After the round it
        raises for the schedules that failed, and leaves them alone for a while.
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
        await self._bell.wait(max(SOONEST_SECONDS, next_local - trio.current_time()))

    def _to_look_at(self, schedules: Mapping[str, Schedule]) -> list[str]:
        """Schedules with a due slot; now and then all, except those left alone."""
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
        """How many slots were handled, and whether these were all."""
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
        """Skips what is to be skipped; returns the slots to fire."""
        self._due_local[schedule.name] = float("inf")
        if record.paused_at is not None:
            return ()
        if record.last_slot - record.now > CLOCK_AHEAD:
            await self.store.rewind(schedule.name, CLOCK_AHEAD)
            self._due_local[schedule.name] = now_local  # a second look says from when on it goes
            return ()
        await trio.lowlevel.checkpoint()  # others get their turn: slots take time to compute
        slots = schedule.rhythm, record.last_slot, record.now
        todo = seeing(*slots, schedule.missed) if schedule.enabled else let_all_go(*slots)
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
    """The times in the future of schedules that still exist."""
    return {name: at for name, at in times_local.items() if name in schedules and at > now_local}


SLOTS_SHOWN = 3
KEYS_SHOWN = (
    *("kind", "payload", "cron", "timezone", "every_seconds", "target", "priority", "missed"),
    *("overlap", "tenant", "enabled"),
)


def schedule_object(schedule: Schedule, record: ScheduleRecord) -> dict[str, object]:
    """A schedule's configuration, its state, and its next slots."""
    is_off = record.paused_at is not None or not schedule.enabled
    after = max(record.now, record.last_slot)
    slots = [] if is_off else upcoming(schedule.rhythm, after, SLOTS_SHOWN)
    written = as_written(schedule)
    return {
        "name": schedule.name,
        **{key: written.get(key) for key in KEYS_SHOWN},
        "paused_at": time_text(record.paused_at),
        "last_slot": time_text(record.last_slot),
        "last_fired_at": time_text(record.last_fired_at),
        "last_job_id": record.last_job_id,
        "last_job_state": record.last_job_state,
        "fired": record.fired,
        "skipped": record.skipped,
        "missed_slots": record.missed,
        "next": [time_text(slot) for slot in slots],
        "seconds_until_next": round((slots[0] - record.now).total_seconds(), 3) if slots else None,
    }


def schedule_faults(
    settings: Settings, catalog: Catalog, origins: Mapping[str, str]
) -> list[Fault]:
    """Schedules whose kind is not in the catalog, or whose payload exceeds their tenant's limits.
    `origins`: where each key was given, if known.
    """
    faults: list[Fault] = []
    for schedule in settings.schedules.values():
        limits = settings_of(settings, schedule.tenant).limits
        for name, found, wanted, hint in _faults(schedule, catalog, limits):
            key = f"schedules.{schedule.name}.{name}"
            source = origins.get(key, schedule.source)
            faults.append(Fault(source, key=key, found=found, wanted=wanted, hint=hint))
    return faults


def payload_limits(limits: Limits) -> PayloadLimits:
    return PayloadLimits(limits.max_payload_bytes, limits.max_payload_depth)


def _faults(
    schedule: Schedule, catalog: Catalog, limits: Limits
) -> Iterator[tuple[str, str, str, str]]:
    """Key, what was found, what is wanted, a hint."""
    try:
        catalog.known(schedule.kind)
    except UnknownKind as error:
        found = json.dumps(schedule.kind, ensure_ascii=False)
        hint = f"did you mean {error.guess}?" if error.guess else "`musterd kinds` lists them"
        yield "kind", found, "a kind of the catalog", hint
    try:
        check_payload(schedule.payload, payload_limits(limits))
    except InputRefused as error:
        yield "payload", str(error).removeprefix("payload").lstrip(": "), "", ""
