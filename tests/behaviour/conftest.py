"""Every behaviour test gets a stage of its own, on a clock that jumps, the same each time."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.abc import Clock, Instrument
from trio.testing import MockClock

from tests.support import pipelines
from tests.support.cluster import Cluster, open_cluster
from tests.support.stage import Stage, open_stage

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == FOLDER:
            item.add_marker(pytest.mark.trio(run=run_jumping), append=False)


def run_jumping(
    test: Callable[[], Awaitable[Any]],
    clock: Clock | None = None,
    instruments: Sequence[Instrument] = (),
) -> Any:
    """As `trio.run`, on a clock that jumps over every wait, with the scheduler's rng loaded."""
    # Trio offers no other way: these are the rng that its scheduler throws.
    import_module("trio._core._run")._r.seed(1)
    return trio.run(test, clock=clock or MockClock(autojump_threshold=0), instruments=instruments)


@pytest.fixture
async def stage() -> AsyncGenerator[Stage]:
    async with open_stage(Stage) as opened:
        yield opened


@pytest.fixture
async def cluster() -> AsyncGenerator[Cluster]:
    async with open_cluster() as opened:
        yield opened


@pytest.fixture
def forgotten_phases() -> Iterator[None]:
    """What phases of one test have noted is not there in the next."""
    pipelines.forget()
    yield
    pipelines.forget()


@pytest.fixture
def video(stage: Stage) -> Stage:
    """The stage, with a kind of three phases."""
    stage.kinds["video"] = pipelines.pipeline(*pipelines.NAMES, retryable=True)
    return stage
