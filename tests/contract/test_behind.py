"""Jobs that are enqueued behind another one of their target are in no claim's way."""

from collections.abc import AsyncGenerator, Awaitable, Callable

import pytest

from musterd.store.jobs import NewJob
from musterd.store.leases import Exchange
from musterd.store.lifecycle import Action, JobState
from musterd.store.phases import KindRule
from musterd.store.sqlite.database import Database
from tests.contract.job_tools import ending, ids, put, settle, visit
from tests.contract.rigs import Rig, SqliteRig, opened
from tests.contract.target_tools import check, one_of, put_target, runs_next, take_all

MANY = 3_000
EVERY = 100  # of the steps of SQLite's machine is counted


@pytest.fixture
async def file(unopened_sqlite: Rig) -> AsyncGenerator[SqliteRig]:
    assert isinstance(unopened_sqlite, SqliteRig)
    async with opened(unopened_sqlite):
        yield unopened_sqlite


async def counted(rig: SqliteRig, *, of: int = 1) -> tuple[Exchange, int]:
    """A claim, and the steps that it took: what it costs, on a machine however busy."""
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += EVERY

    await watch(rig, count, EVERY)
    exchange = await visit(rig.engine, of)
    await watch(rig, None, 0)
    return exchange, steps


async def watch(rig: SqliteRig, handler: Callable[[], None] | None, every: int) -> None:
    def set_handler(database: Database) -> None:
        database.connection.set_progress_handler(handler, every)

    await rig.engine._call(set_handler)  # pyright: ignore[reportPrivateUsage] - no other way in


async def leave_alone(rig: Rig) -> None:
    (claim,) = await take_all(rig.engine)
    assert claim.target == "t"


async def fail_it(rig: Rig) -> None:
    (claim,) = await take_all(rig.engine)
    await settle(rig.engine, ending(claim, JobState.FAILED))


async def pause_it(rig: Rig) -> None:
    """Halted, and nobody has it."""
    await rig.engine.control.apply(Action.PAUSE, 1)


@pytest.mark.parametrize("begin", [leave_alone, fail_it, pause_it])
async def test_many_of_them_cost_a_claim_of_another_job_nothing(
    file: SqliteRig, begin: Callable[[Rig], Awaitable[None]]
) -> None:
    await put_target(file.engine, 9)
    await begin(file)
    await put(file.engine, 0)
    _, alone = await counted(file)
    await put_target(file.engine, *[5] * MANY)
    (other,) = await put(file.engine, 0)
    exchange, steps = await counted(file)
    assert (ids(exchange.claims), exchange.parked) == ([other], 0)
    assert steps <= 2 * alone
    check(file)


async def test_what_a_free_target_leaves_in_the_way_is_put_behind_for_little(
    file: SqliteRig,
) -> None:
    await put(file.engine, *[0] * 200)
    claims, each = await counted(file, of=200)
    await put_target(file.engine, *[5] * MANY)
    await counted(file)
    exchange, steps = await counted(file)
    assert exchange.parked >= 1_000
    assert steps / exchange.parked <= each / len(claims.claims)


async def test_they_go_in_order_once_it_is_their_turn(rig: Rig) -> None:
    await put_target(rig.engine, 0)
    claim = await one_of(rig)
    low, high, low_again = await put_target(rig.engine, 1, 7, 1)
    (late,) = await put_target(rig.engine, 9, delay_seconds=60.0)
    await put_target(rig.engine, 9, hold=True)
    check(rig)
    for following in (high, low, low_again):
        (claim,) = await take_all(rig.engine, 9, [ending(claim)])
        assert claim.id == following
        check(rig)
    assert await runs_next(rig, claim) == []
    rig.pass_time(90)
    assert (await one_of(rig)).id == late


async def test_the_priority_of_its_kind_counts_too(rig: Rig) -> None:
    await rig.engine.nodes.declare_kinds({"urgent": KindRule(priority=5)})
    await put_target(rig.engine, 0, 0)
    claim = await one_of(rig)
    await settle(rig.engine, ending(claim))  # the second is next, and not yet claimed
    (urgent,) = await rig.engine.jobs.enqueue([NewJob("urgent", target="t")])
    check(rig)
    assert (await one_of(rig)).id == urgent
