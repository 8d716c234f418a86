"""How a store's connections are used is told as it is: who has one, and who waits."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import attrs
import trio
from trio.testing import wait_all_tasks_blocked

from musterd.config.load import load
from musterd.store.connections import ConnectionUse
from musterd.store.engine import Engine
from musterd.store.opening import Stores
from musterd.store.postgres.engine import Hub
from musterd.store.sqlite.runners import InlineRunner, ThreadRunner
from tests.contract.rigs import OPTIONS


async def hold(hub: Hub, held: trio.Semaphore, let_go: trio.Event) -> None:
    async with hub.shared.use("holding"):
        held.release()
        await let_go.wait()


async def test_a_pool_tells_who_has_a_connection_and_who_waits(
    fresh_database: Callable[[], str],
) -> None:
    hub = Hub(fresh_database(), attrs.evolve(OPTIONS, pool_size=2), Random(1))
    hub.join()
    assert hub.use_now == ConnectionUse(most=5)
    held, let_go = trio.Semaphore(0), trio.Event()
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(hold, hub, held, let_go)
        with trio.fail_after(10):
            for _ in range(2):
                await held.acquire()
        assert hub.use_now == ConnectionUse(busy=2, most=5, waiting=3)
        let_go.set()
    assert hub.use_now == ConnectionUse(idle=2, most=5)
    await hub.leave()
    assert hub.use_now.idle == 0


async def test_a_thread_has_one_connection_for_which_calls_wait() -> None:
    runner, go = ThreadRunner("a file"), threading.Event()
    assert runner.use_now == ConnectionUse(idle=1, most=1)
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(runner.run, go.wait)
        await wait_all_tasks_blocked()
        assert runner.use_now == ConnectionUse(busy=1, most=1, waiting=2)
        go.set()
    assert runner.use_now == ConnectionUse(idle=1, most=1)
    runner.close()
    assert InlineRunner().use_now == ConnectionUse(idle=1, most=1)


async def test_the_stores_of_a_node_are_summed_up(tmp_path: Path) -> None:
    settings = load(None, {}, [], Path("none.toml")).settings
    stores = Stores(time.time, Random(1))
    engines: list[Engine] = []
    for name in ("default", "acme"):
        own = attrs.evolve(settings, tenant=name)
        engines.append(stores.engine(f"sqlite:///{tmp_path}/{name}.db", own))
    assert stores.use_now() == ConnectionUse(), "no file is open"
    for engine in engines:
        await engine.open()
    assert stores.use_now() == ConnectionUse(idle=2, most=2)
    for engine in engines:
        await engine.close()
    stores.forget("acme")
    assert stores.use_now() == ConnectionUse()
