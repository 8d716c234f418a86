"""Keepers of schedules on one store, on a virtual clock."""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import attrs
import trio

from musterd.catalog.kinds import Catalog
from musterd.config.load import load
from musterd.config.schedules import Schedule
from musterd.config.settings import LiveSettings
from musterd.manager.duties.duty import Duty, DutyRun, Tally, serve
from musterd.manager.duties.schedules import LOOK_SECONDS, SLOTS_A_ROUND, ScheduleKeeper
from musterd.store.errors import InputRefused
from musterd.store.jobs import JobFilter, JobRecord
from musterd.store.schedules import Fired, Firing, ScheduleRecord, Schedules
from musterd.store.sqlite.engine import SqliteEngine
from tests.support.faulty_engine import FaultyEngine
from tests.support.stage import NO_FILE, kind, settings_with

SECOND = timedelta(seconds=1)
QUIET = logging.getLogger("tests.schedules")
KINDS = Catalog([kind("noop")])


def schedules_of(**keys: str) -> dict[str, Schedule]:
    """Schedules by the text of their tables: `name="cron = '…'"`."""
    sets = [f"schedules.{name}.kind=noop" for name in keys]
    for name, text in keys.items():
        sets += [f"schedules.{name}.{one.strip()}" for one in text.split(";")]
    return dict(load(None, {}, sets, NO_FILE).settings.schedules)


@attrs.define(eq=False)
class Scene:
    """Keepers on one store, whose clock stands at `start` when Trio's begins."""

    nursery: trio.Nursery
    engine: SqliteEngine
    settings: LiveSettings
    look_seconds: float
    leap_seconds: list[float]  # what the store's clock has been put forward or back
    taken: list[tuple[str, datetime]] = attrs.field(factory=list[tuple[str, datetime]])
    refused: set[str] = attrs.field(factory=set[str])
    refused_once: set[str] = attrs.field(factory=set[str])

    def configure(self, schedules: Mapping[str, Schedule]) -> None:
        """As a reload does."""
        self.settings.replace(attrs.evolve(self.settings.now, schedules=schedules))

    def keeper(self, number: int) -> Keeper:
        return Keeper(self, number, FaultyEngine(self.engine, self.nursery))

    async def record(self, name: str) -> ScheduleRecord:
        (found,) = await self.engine.schedules.know([name])
        return found

    async def jobs(self) -> list[JobRecord]:
        found = await self.engine.jobs.find(JobFilter(limit=100_000))
        return sorted(found, key=lambda job: job.id)

    def slots(self, name: str) -> list[datetime]:
        return [slot for schedule, slot in self.taken if schedule == name]

    async def lateness(self) -> list[timedelta]:
        """How long after its slot each job was made; none may have been made by hand."""
        jobs = await self.jobs()
        return [job.created_at - slot for job, (_, slot) in zip(jobs, self.taken, strict=True)]

    async def until(self, moment: datetime) -> None:
        """Until the store's clock shows it."""
        await trio.sleep(
            (moment - (await self.record(next(iter(self.settings.now.schedules)))).now) / SECOND
        )


@attrs.define(eq=False)
class Keeper:
    """One node's duty of schedules, as its leadership runs it."""

    scene: Scene
    number: int
    engine: FaultyEngine
    tally: Tally = attrs.field(factory=Tally)
    keeper: ScheduleKeeper = attrs.field(init=False)
    scope: trio.CancelScope | None = None

    def __attrs_post_init__(self) -> None:
        store = Noting(self.scene, self.engine.schedules)
        self.keeper = ScheduleKeeper(
            store, self.scene.settings, lambda: KINDS, self.scene.look_seconds
        )

    def start(self) -> None:
        """Also again, after a kill: a node may lose its duty and have it back."""
        self.scope = trio.CancelScope()
        self.scene.nursery.start_soon(self._run, self.scope)

    def kill(self) -> None:
        if self.scope is not None:
            self.scope.cancel()

    async def _run(self, scope: trio.CancelScope) -> None:
        duty = Duty(
            "schedules",
            self.keeper.run,
            lambda: LOOK_SECONDS,
            lambda: SLOTS_A_ROUND,
            self.keeper.wait,
        )
        with scope:
            await serve(duty, self.tally, self, random.Random(self.number), QUIET)

    def acquired(self, duties: Sequence[str]) -> None: ...

    def released(self, duties: Sequence[str], why: str) -> None: ...

    def ran(self, duty: str, run: DutyRun) -> None: ...


@attrs.define(eq=False)
class Noting:
    """The store, which notes each slot that was truly taken, and refuses what it is told to."""

    scene: Scene
    store: Schedules

    async def know(self, names: Sequence[str]) -> list[ScheduleRecord]:
        return await self.store.know(names)

    async def fire(self, firing: Firing) -> Fired:
        is_refused_once = firing.schedule in self.scene.refused_once
        self.scene.refused_once.discard(firing.schedule)
        if is_refused_once or firing.schedule in self.scene.refused:
            raise InputRefused(f"fire: {firing.schedule}: not such a job")
        fired = await self.store.fire(firing)
        if fired.taken and firing.slot is not None:
            self.scene.taken.append((firing.schedule, firing.slot))
        return fired

    async def let_go(self, name: str, up_to: datetime, count: int) -> bool:
        return await self.store.let_go(name, up_to, count)

    async def rewind(self, name: str, ahead: timedelta) -> bool:
        return await self.store.rewind(name, ahead)

    async def steer(self, wish: str, name: str) -> bool:
        raise AssertionError("no keeper does that")


@asynccontextmanager
async def scene_of(
    start: datetime, schedules: Mapping[str, Schedule], look_seconds: float = LOOK_SECONDS
) -> AsyncGenerator[Scene]:
    leap = [0.0]
    began = trio.current_time()

    def clock() -> float:
        return start.timestamp() + trio.current_time() - began + leap[0]

    engine = SqliteEngine(":memory:", clock, inline=True, busy_timeout_seconds=1.0)
    await engine.open()
    await engine.migrate()
    async with trio.open_nursery() as nursery:
        settings = LiveSettings(attrs.evolve(settings_with(), schedules=schedules))
        scene = Scene(nursery, engine, settings, look_seconds, leap)
        await engine.schedules.know(sorted(schedules))
        yield scene
        nursery.cancel_scope.cancel()
    await engine.close()
