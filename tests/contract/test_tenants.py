"""Stores of many tenants: engines that share connections, and one look over all of them."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from uuid import UUID

import attrs
import pytest
import trio

from musterd.config.load import load, resolve_store_url
from musterd.config.settings import Settings
from musterd.config.tenants import settings_of
from musterd.store.engine import Engine
from musterd.store.idle_tenant_scan import TenantActivity
from musterd.store.jobs import NewJob
from musterd.store.opening import Stores
from musterd.store.queue import IdleCheck
from tests.contract.job_tools import put, take
from tests.contract.rigs import closing_engine
from tests.fix_postgres import FreshDatabase
from tests.support.beats import beat_of

NAMES = ("default", "red", "blue")
HINT_SECONDS = 5.0


@attrs.frozen
class Row:
    """The engines of some tenants, open and migrated, and what looks over them."""

    stores: Stores
    settings: Settings
    engines: dict[str, Engine]

    async def look(self) -> dict[str, TenantActivity]:
        (scan,) = self.stores.scans
        return dict(await scan.look(NAMES))

    async def settled(self) -> None:
        """Until a look finds nothing new any more."""
        with trio.fail_after(HINT_SECONDS):
            while any(activity.work for activity in (await self.look()).values()):  # noqa: ASYNC110 - a look has no bell
                await trio.sleep(0.01)


@pytest.fixture(params=["sqlite", "postgresql"])
async def row(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncGenerator[Row]:
    url = f"sqlite:///{tmp_path}/musterd.db"
    if request.param == "postgresql":
        fresh: FreshDatabase = request.getfixturevalue("fresh_database")
        url = fresh()
    sets = [
        f"store.url={url}",
        "tenants.red.workers.max_count=3",
        "tenants.blue.workers.max_count=3",
    ]
    settings = load(None, {}, sets, Path("none.toml")).settings
    stores = Stores(time.time, Random(1))
    async with AsyncExitStack() as stack:
        engines: dict[str, Engine] = {}
        for name in NAMES:
            own = settings_of(settings, name)
            engine = stores.engine(resolve_store_url(own, {}), own)
            engines[name] = await stack.enter_async_context(closing_engine(engine))
            await engine.open()
            await engine.migrate()
            await engine.start_node("north")
        yield Row(stores, settings, engines)


async def test_each_tenant_has_its_own_jobs(row: Row) -> None:
    await put(row.engines["red"], 0, 0)
    await put(row.engines["blue"], 0)
    totals = {
        name: (await engine.queue.counts()).enqueued_total for name, engine in row.engines.items()
    }
    assert totals == {"default": 0, "red": 2, "blue": 1}


async def test_a_look_finds_who_has_work(row: Row) -> None:
    await row.settled()
    await put(row.engines["red"], 0)
    found = await row.look()
    assert {name for name, activity in found.items() if activity.work} == {"red"}


async def test_a_hint_reaches_its_own_tenant_only(row: Row) -> None:
    heard: list[str] = []

    async def listen(name: str) -> None:
        while True:
            await row.engines[name].queue.wait_for_hint()
            heard.append(name)

    async with trio.open_nursery() as nursery:
        for name in NAMES:
            nursery.start_soon(listen, name)
        await trio.sleep(0.5)  # an engine may hint as it begins to listen
        heard.clear()
        for name in ("blue", "red", "blue"):
            await row.engines[name].jobs.enqueue([NewJob("a")])
            await last_is(heard, name)
        nursery.cancel_scope.cancel()
    assert set(heard) == {"red", "blue"}


async def last_is(heard: list[str], name: str) -> None:
    with trio.fail_after(HINT_SECONDS):
        while heard[-1:] != [name]:  # noqa: ASYNC110 - what is heard has no bell
            await trio.sleep(0.01)


async def test_who_leaves_takes_nothing_from_the_others(row: Row) -> None:
    await row.engines["red"].close()
    row.stores.forget("red")
    (scan,) = row.stores.scans
    assert list(scan.tenants) == ["default", "blue"]
    await put(row.engines["blue"], 0)
    assert len(await take(row.engines["blue"])) == 1


async def test_a_job_of_the_future_is_no_work_yet(row: Row) -> None:
    await row.engines["red"].jobs.enqueue([NewJob("a", delay_seconds=3600)])
    await row.settled()
    assert not (await row.look())["red"].work


async def test_an_idle_check_of_many_tells_which_rest(row: Row) -> None:
    """Over the connection that hints come by, so somebody has to wait for them."""
    (scan,) = row.stores.scans
    me = UUID(int=7)
    for name in ("red", "blue"):
        await row.engines[name].nodes.beat(beat_of(node_id=me))
    await row.engines["red"].jobs.enqueue([NewJob("a", delay_seconds=3600)])
    async with trio.open_nursery() as nursery:
        for engine in row.engines.values():
            nursery.start_soon(hear_always, engine)
        await trio.sleep(0.5)
        found = dict(await scan.check(NAMES, me))
        await put(row.engines["blue"], 0)
        then = dict(await scan.check(NAMES, me))
        nursery.cancel_scope.cancel()
    if row.engines["red"].name == "sqlite":
        assert found == then == {}
        return
    assert set(found) == {"red", "blue"}  # the default tenant's store does not know the node
    assert found["blue"] == IdleCheck(at_rest=True, due=False, next_due_seconds=None)
    assert found["red"].at_rest
    assert 3500 < (found["red"].next_due_seconds or 0) <= 3600
    assert then["blue"] == IdleCheck(at_rest=False, due=True, next_due_seconds=None)


async def hear_always(engine: Engine) -> None:
    while True:
        await engine.queue.wait_for_hint()
