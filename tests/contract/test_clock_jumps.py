"""The machine's clock is set while jobs are in hand: what is left of a lease stays."""

from collections.abc import AsyncGenerator
from pathlib import Path

import attrs
import pytest

from musterd.store.leases import Hold
from musterd.store.lifecycle import JobState
from musterd.store.sqlite.engine import SqliteEngine
from tests.contract.job_tools import put, reap_by, state_of, take_one
from tests.contract.rigs import START, closing_engine

DAY = 86_400.0


@attrs.define
class Clocks:
    """Of one machine: the first may be set."""

    wall: float = START
    since_boot: float = 100.0

    def pass_time(self, seconds: float) -> None:
        self.wall += seconds
        self.since_boot += seconds


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
async def engine(tmp_path: Path, clocks: Clocks) -> AsyncGenerator[SqliteEngine]:
    made = SqliteEngine(
        str(tmp_path / "musterd.db"),
        lambda: clocks.wall,
        busy_timeout_seconds=5.0,
        boottime=lambda: clocks.since_boot,
    )
    async with closing_engine(made):
        await made.open()
        await made.migrate()
        await made.start_node("north")
        yield made


@pytest.mark.parametrize("jump", [DAY, -DAY, 40.0, -40.0])
async def test_a_lease_that_is_renewed_outlives_a_jump_of_the_clock(
    engine: SqliteEngine, clocks: Clocks, jump: float
) -> None:
    await put(engine, 0)
    claim = await take_one(engine)
    hold = Hold(claim.id, claim.token, claim.worker, claim.claimed_epoch)
    clocks.wall += jump
    assert await engine.leases.reap(reap_by("requeue")) == []
    assert (await engine.leases.renew([hold], 30.0)).kept == {claim.id}
    clocks.pass_time(20)
    assert await engine.leases.reap(reap_by("requeue")) == []
    assert await state_of(engine, claim.id) is JobState.RUNNING


@pytest.mark.parametrize("jump", [DAY, -DAY, 40.0, -40.0])
async def test_a_lease_that_nobody_renews_ends_in_its_time_whatever_the_clock_says(
    engine: SqliteEngine, clocks: Clocks, jump: float
) -> None:
    await put(engine, 0)
    claim = await take_one(engine)
    clocks.pass_time(10)
    clocks.wall += jump
    clocks.pass_time(19)
    assert await engine.leases.reap(reap_by("requeue")) == []
    clocks.pass_time(2)
    assert [one.id for one in await engine.leases.reap(reap_by("requeue"))] == [claim.id]


async def test_a_sleep_of_the_machine_is_no_jump(engine: SqliteEngine, clocks: Clocks) -> None:
    await put(engine, 0)
    claim = await take_one(engine)
    clocks.pass_time(DAY)
    assert [one.id for one in await engine.leases.reap(reap_by("requeue"))] == [claim.id]
