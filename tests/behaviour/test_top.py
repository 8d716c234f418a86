"""`musterd top` at work on a real store, its terminal a list of keys."""

import os
import signal
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any, cast

import attrs
import pytest
import trio

from musterd.config.load import load
from musterd.config.settings import Settings
from musterd.config.tenants import settings_of
from musterd.console.top.state import NodeAnswer, State
from musterd.console.top.terminal import Painter, Size
from musterd.console.top.verb import Driver, DriverDeps
from musterd.store.engine import Engine
from musterd.store.errors import StoreUnavailable
from musterd.store.jobs import NewJob
from musterd.store.lifecycle import JobState
from musterd.store.queue import Counts
from musterd.store.sqlite.engine import SqliteEngine
from tests.support.faulty_engine import PartOverlay

GIVEN = ("http.listen=", "tenants.acme.workers.max_count=1")


class ShakyQueue(PartOverlay):
    async def counts(self) -> Counts:
        if Shaky.weather:
            raise StoreUnavailable(Shaky.weather, "unreachable")
        counts: Counts = await self.part.counts()
        return counts


class Shaky(SqliteEngine):
    """A real store that is away while `weather` says so."""

    weather: str = ""

    async def open(self) -> None:
        self.queue = cast(Any, ShakyQueue(self.queue))
        await super().open()


@attrs.define(eq=False)
class Desk:
    """A person before a screen: types, and looks."""

    folder: Path
    shown: Size = attrs.Factory(lambda: Size(100, 30))
    keys: list[bytes] = attrs.Factory(list[bytes])
    suspended: int = 0
    is_gone: bool = False
    typed: trio.Event = attrs.Factory(trio.Event)

    def size(self) -> Size:
        return self.shown

    async def read(self) -> bytes:
        while not self.keys:
            await self.typed.wait()
            self.typed = trio.Event()
        return self.keys.pop(0)

    async def write(self, data: bytes) -> None:
        del data
        await trio.lowlevel.checkpoint()
        if self.is_gone:
            raise BrokenPipeError

    def suspend(self) -> None:
        self.suspended += 1

    def resume(self) -> None:
        self.suspended -= 1

    def engine(self, settings: Settings) -> Engine:
        path = self.folder / f"{settings.tenant}.db"
        return Shaky(
            str(path), lambda: 1000.0 + trio.current_time(), True, busy_timeout_seconds=2.0
        )

    async def type(self, *keys: str) -> None:
        for key in keys:
            self.keys.append(key.encode())
            self.typed.set()
            await trio.sleep(0.2)
        await trio.sleep(2)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    Shaky.weather = ""
    yield Desk(tmp_path)
    Shaky.weather = ""


@pytest.fixture
async def engine(desk: Desk) -> AsyncGenerator[Engine, None]:
    engine = desk.engine(settings_of(SETTINGS, "default"))
    await engine.open()
    await engine.migrate()
    yield engine
    await engine.close()


SETTINGS = load(None, {}, GIVEN, Path("/nonexistent")).settings


async def nobody(_settings: Settings) -> NodeAnswer:
    await trio.lowlevel.checkpoint()
    return NodeAnswer(None, "nobody answers")


@pytest.fixture
async def driver(desk: Desk, nursery: trio.Nursery) -> Driver:
    plan = DriverDeps(
        interval_seconds=1.0,
        settings_of=lambda tenant: settings_of(SETTINGS, tenant),
        engine_of=desk.engine,
        ask=nobody,
        catalog=None,
        by="me@here",
    )
    state = State("default", ("default", "acme"), desk.engine(SETTINGS).where, desk.size(), False)
    driver = Driver(state, plan, desk, Painter(colour=True, encoding="utf-8"))
    nursery.start_soon(driver.run)
    return driver


async def test_it_shows_jobs_cancels_one_and_filters(
    engine: Engine, driver: Driver, desk: Desk
) -> None:
    first, second = await engine.jobs.enqueue([NewJob("report"), NewJob("thumb")])
    await trio.sleep(2)
    assert [job.id for job in driver.state.jobs] == [first, second]
    await desk.type("c", "y")
    found = await engine.jobs.get(first)
    assert found is not None
    assert found.state is JobState.CANCELED
    assert driver.state.message == f"job {first} is canceled"
    await desk.type("/", *"state=canceled", "\r")
    assert [job.id for job in driver.state.jobs] == [first]
    await desk.type("c", "y")
    assert driver.state.message.startswith(f"job {first} is canceled: cancel wants a job that is")
    await desk.type("q")


async def test_it_pauses_a_job_and_the_queue(engine: Engine, driver: Driver, desk: Desk) -> None:
    (job_id,) = await engine.jobs.enqueue([NewJob("report")])
    await trio.sleep(2)
    await desk.type("p")
    found = await engine.jobs.get(job_id)
    assert found is not None
    assert found.state is JobState.PAUSED
    await desk.type("u", "P", "y")
    assert (await engine.queue.counts()).paused_by == "me@here"
    await desk.type("P", "y")
    assert (await engine.queue.counts()).paused_at is None
    assert driver.state.message == "the queue is resumed"
    await desk.type("q")


async def test_panels_tell_of_the_chosen_job(engine: Engine, driver: Driver, desk: Desk) -> None:
    (job_id,) = await engine.jobs.enqueue([NewJob("report")])
    await trio.sleep(2)
    await desk.type("w")
    assert driver.state.panel is not None
    assert driver.state.panel.lines[0] == f"job {job_id} · report · queued"
    await desk.type("q", "\r")
    assert any("created" in line for line in driver.state.panel.lines)
    await desk.type("\x1b")
    assert driver.state.mode == "table"
    await desk.type("q")


async def test_a_store_that_is_away_is_said_and_tried_again(
    engine: Engine, driver: Driver, desk: Desk
) -> None:
    await engine.jobs.enqueue([NewJob("report")])
    await trio.sleep(2)
    Shaky.weather = "gone \x1b[2J fishing"
    await trio.sleep(2)
    assert driver.state.trouble == "gone \\x1b[2J fishing"
    assert len(driver.state.jobs) == 1  # as last seen
    Shaky.weather = ""
    await trio.sleep(2)
    assert driver.state.trouble is None
    await desk.type("q")


async def test_tenants_are_gone_through(engine: Engine, driver: Driver, desk: Desk) -> None:
    await engine.jobs.enqueue([NewJob("report")])
    await desk.type("t")
    assert driver.state.where.endswith("/acme.db")
    assert (driver.state.tenant, driver.state.jobs) == ("acme", [])
    assert driver.state.store is not None
    await desk.type("t")
    assert (driver.state.tenant, len(driver.state.jobs)) == ("default", 1)
    await desk.type("q")


async def test_signals_of_a_terminal_are_obeyed(engine: Engine, driver: Driver, desk: Desk) -> None:
    del engine
    await trio.sleep(1)
    desk.shown = Size(60, 10)
    os.kill(os.getpid(), signal.SIGWINCH)
    await trio.sleep(1)
    assert driver.state.size == Size(60, 10)
    await desk.type("\x1a")
    os.kill(os.getpid(), signal.SIGTSTP)
    await trio.sleep(1)
    assert desk.suspended == 2
    os.kill(os.getpid(), signal.SIGCONT)
    await trio.sleep(1)
    assert desk.suspended == 1
    os.kill(os.getpid(), signal.SIGTERM)
    await trio.sleep(1)


async def test_a_terminal_that_has_gone_ends_it(engine: Engine, driver: Driver, desk: Desk) -> None:
    del engine
    await trio.sleep(1)
    desk.is_gone = True
    await desk.type("j", "h")
    assert driver.has_ended


async def test_no_terminal_to_read_from_ends_it(engine: Engine, driver: Driver, desk: Desk) -> None:
    del engine
    await desk.type("")
    assert driver.has_ended
