"""Migrations: from nothing, twice, two at once, and what is not ours to touch."""

import pytest
import trio

from musterd.store.engine import Engine
from musterd.store.errors import StoreMisconfigured, StoreUnavailable
from musterd.store.jobs import NewJob
from tests.contract.rigs import Rig, closing_engine, own_threads


async def test_a_fresh_store_has_no_schema_until_it_is_migrated(unopened: Rig) -> None:
    async with closing_engine(unopened.engine) as engine:
        await engine.open()
        before = await engine.schema()
        names = await engine.migrate()
        after = await engine.schema()
    assert before.found == 0
    assert before.wanted == after.wanted == after.found == len(names)
    assert names[0].startswith("0001_")


async def test_a_store_without_a_schema_says_what_to_do(unopened: Rig) -> None:
    async with closing_engine(unopened.engine) as engine:
        await engine.open()
        with pytest.raises(StoreMisconfigured, match="db migrate"):
            await engine.jobs.enqueue([NewJob("a")])


async def test_a_second_migration_does_nothing(rig: Rig) -> None:
    await rig.engine.jobs.enqueue([NewJob("a")])
    assert await rig.engine.migrate() == []
    assert (await rig.engine.queue.counts()).enqueued_total == 1


async def test_of_three_migrations_at_once_one_does_the_work(unopened_shared: Rig) -> None:
    done: list[list[str]] = []

    async def migrate(engine: Engine) -> None:
        async with closing_engine(engine):
            await engine.open()
            done.append(await engine.migrate())

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(migrate, unopened_shared.another())
    assert sorted(map(len, done))[:2] == [0, 0]
    assert max(done)[0].startswith("0001_")


async def test_a_newer_schema_is_refused(rig: Rig) -> None:
    rig.raw(
        "insert into schema_migrations (number, name, checksum, applied_at)"
        " select 9999, '9999_future', 'x', applied_at from schema_migrations where number = 1"
    )
    with pytest.raises(StoreMisconfigured, match="version 9999"):
        await rig.engine.migrate()


async def test_a_schema_made_by_another_build_is_refused(rig: Rig) -> None:
    rig.raw("update schema_migrations set checksum = 'other'")
    for call in (rig.engine.schema, rig.engine.migrate):
        with pytest.raises(
            StoreMisconfigured, match=r"0001_[a-z]+ was applied with checksum other"
        ):
            await call()


async def test_an_engine_may_be_closed_twice_and_opened_again(shared: Rig) -> None:
    await shared.engine.jobs.enqueue([NewJob("a")])
    await shared.engine.close()
    await shared.engine.close()
    await shared.engine.open()
    assert (await shared.engine.queue.counts()).enqueued_total == 1


async def test_an_engine_that_was_never_opened_may_be_closed(unopened: Rig) -> None:
    before = own_threads()
    await unopened.engine.close()
    assert own_threads() == before


def test_the_address_names_the_store_and_no_secret(unopened: Rig) -> None:
    assert unopened.engine.name in ("sqlite", "postgresql")
    assert unopened.engine.name in unopened.engine.where
    assert "password" not in unopened.engine.where


async def test_a_cancelled_open_leaves_nothing(unopened: Rig) -> None:
    before = own_threads()
    with trio.CancelScope() as scope:
        scope.cancel()
        await unopened.engine.open()
    assert scope.cancelled_caught
    await unopened.engine.close()
    assert own_threads() == before


async def test_a_closed_store_is_away_not_broken(unopened_sqlite: Rig) -> None:
    with pytest.raises(StoreUnavailable, match="not open"):
        await unopened_sqlite.engine.queue.counts()
