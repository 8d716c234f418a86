"""The watcher lets everything through, times it, and knows what ails the store."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import pytest
import trio

from musterd.config.settings import Metrics as MetricsSettings
from musterd.manager.metrics.metrics import InstrumentedEngine, Metrics
from musterd.store.engine import Engine
from musterd.store.errors import StoreError, StoreMisconfigured, StoreUnavailable
from musterd.store.jobs import NewJob
from musterd.store.queue import Hint
from musterd.store.sqlite.engine import SqliteEngine
from tests.support.faulty_engine import PartOverlay

DISK_FULL = StoreUnavailable("no room on /data", "disk_full")
AWAY = StoreUnavailable("connection refused", "unreachable")


class Weather(SqliteEngine):
    """A real engine in memory, whose calls fail while `clouds` names them."""

    def __init__(self) -> None:
        super().__init__(":memory:", lambda: 1000.0, busy_timeout_seconds=2.0)
        self.clouds: dict[str, StoreError] = {}
        self.jobs = cast(Any, CloudyJobs(self.jobs, self.clouds))
        self.queue = cast(Any, CloudyQueue(self.queue, self.clouds))


class Cloudy(PartOverlay):
    def __init__(self, part: object, clouds: dict[str, StoreError]) -> None:
        super().__init__(part)
        self._clouds = clouds

    def _look_up(self, operation: str) -> None:
        if operation in self._clouds:
            raise self._clouds[operation]


class CloudyJobs(Cloudy):
    async def enqueue(self, jobs: Sequence[NewJob]) -> list[int]:
        self._look_up("enqueue")
        made: list[int] = await self.part.enqueue(jobs)
        return made


class CloudyQueue(Cloudy):
    async def next_due_seconds(self) -> float | None:
        self._look_up("next_due")
        seconds: float | None = await self.part.next_due_seconds()
        return seconds

    async def wait_for_hint(self) -> Hint:
        self._look_up("hint")
        return Hint(new_work=True, requests=frozenset())


class Stage:
    def __init__(self) -> None:
        self.now = 50.0
        self.engine = Weather()
        self.metrics = Metrics(MetricsSettings((1.0,), (1.0,), 5, 48.0), "1")
        log = logging.getLogger("musterd.test")
        self.watched = InstrumentedEngine(self.engine, self.metrics, log, lambda: self.now)

    async def open(self) -> None:
        await self.watched.open()
        await self.watched.migrate()

    async def fails(self, call: Callable[[], Awaitable[object]], error: StoreError) -> None:
        with pytest.raises(type(error)):
            await call()


@pytest.fixture
async def stage() -> Stage:
    made = Stage()
    await made.open()
    return made


def samples(metrics: Metrics, name: str, operation: str) -> float | None:
    return metrics.registry.get_sample_value(name, {"operation": operation})


async def enqueue(stage: Stage) -> list[int]:
    return await stage.watched.jobs.enqueue([NewJob("noop")])


async def test_it_is_an_engine_and_passes_answers_on(stage: Stage) -> None:
    engine: Engine = stage.watched
    (made,) = await enqueue(stage)
    found = await engine.jobs.get(made)
    assert found is not None
    assert found.kind == "noop"
    assert (engine.name, engine.where) == (stage.engine.name, stage.engine.where)
    assert samples(stage.metrics, "musterd_store_operation_seconds_count", "enqueue") == 1
    await engine.close()


async def test_a_failure_is_counted_named_and_passed_on(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.engine.clouds["enqueue"] = DISK_FULL
    for _ in range(3):
        await stage.fails(lambda: enqueue(stage), DISK_FULL)
        stage.now += 1
    assert (stage.watched.trouble, stage.watched.last_message) == ("disk_full", "no room on /data")
    assert stage.watched.trouble_seconds() == 3
    assert samples(stage.metrics, "musterd_store_errors_total", "enqueue") == 3
    assert [record.getMessage() for record in caplog.records] == ["store in trouble"]
    await stage.watched.close()


async def test_the_next_success_of_what_failed_ends_the_trouble(stage: Stage) -> None:
    stage.engine.clouds["enqueue"] = DISK_FULL
    await stage.fails(lambda: enqueue(stage), DISK_FULL)
    await stage.watched.queue.next_due_seconds()
    assert stage.watched.trouble == "disk_full"  # a read says nothing about a full disk
    del stage.engine.clouds["enqueue"]
    await enqueue(stage)
    assert stage.watched.trouble_seconds() == 0
    assert troubles(stage) == (None, None)
    await stage.watched.close()


def troubles(stage: Stage) -> tuple[str | None, str | None]:
    return stage.watched.trouble, stage.watched.last_message


async def test_trouble_that_nobody_meets_again_ends_after_a_calm_while(stage: Stage) -> None:
    stage.engine.clouds["enqueue"] = AWAY
    await stage.fails(lambda: enqueue(stage), AWAY)
    stage.now += 5
    await stage.watched.queue.next_due_seconds()
    assert stage.watched.trouble is None
    await stage.watched.close()


async def test_a_change_of_trouble_is_told_and_the_beginning_kept(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.engine.clouds["enqueue"] = AWAY
    await stage.fails(lambda: enqueue(stage), AWAY)
    stage.now += 2
    refused = StoreMisconfigured("password refused")
    stage.engine.clouds["enqueue"] = refused
    await stage.fails(lambda: enqueue(stage), refused)
    assert (stage.watched.trouble, stage.watched.trouble_seconds()) == ("misconfigured", 2)
    assert len(caplog.records) == 2
    await stage.watched.close()


async def test_a_lost_source_of_hints_is_no_trouble(stage: Stage) -> None:
    stage.engine.clouds["hint"] = AWAY
    await stage.fails(stage.watched.queue.wait_for_hint, AWAY)
    assert stage.watched.trouble is None
    assert samples(stage.metrics, "musterd_store_errors_total", "wait_for_hint") == 1
    await stage.watched.close()


async def test_a_cancel_is_no_trouble(stage: Stage) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await stage.watched.queue.counts()
    assert scope.cancelled_caught
    assert stage.watched.trouble is None
    await stage.watched.close()
