"""When a node tells the others of itself: at once where they decide by it, and else seldom."""

import trio

from musterd.store.nodes import HEARTBEAT_SECONDS, NodeRecord
from tests.support.stage import Stage, kind, until

SOON_SECONDS = 0.2


async def told(stage: Stage) -> NodeRecord:
    (record,) = await stage.store.engine.nodes.all()
    return record


def beats(stage: Stage) -> int:
    return stage.store.calls["beat"]


async def test_a_node_that_arrives_is_there_at_once(stage: Stage) -> None:
    await stage.start(workers__max_count=12)
    await trio.sleep(SOON_SECONDS)
    record = await told(stage)
    assert (record.phase, record.crew, record.max_count) == ("running", 2, 12)


async def test_a_node_that_drains_says_so_at_once(stage: Stage) -> None:
    node = await stage.start()
    await stage.put("long")
    await trio.sleep(7.5)
    node.daemon.stop()
    await trio.sleep(SOON_SECONDS)
    assert (await told(stage)).phase == "draining"


async def test_who_was_hired_is_told_when_he_has_found_work(stage: Stage) -> None:
    node = await stage.start(workers__scale_interval_ms=1300)
    await trio.sleep(7)
    await stage.put("long", 7)
    await until(lambda: node.size == 7)
    await trio.sleep(SOON_SECONDS)
    record = await told(stage)
    assert (record.idle, record.busy) == (0, 7)


async def test_an_idle_node_tells_nothing_but_that_it_lives(stage: Stage) -> None:
    await stage.start()
    await trio.sleep(10)
    before = beats(stage)
    await trio.sleep(600)
    assert beats(stage) - before <= 600 / HEARTBEAT_SECONDS + 1


async def test_a_node_with_long_work_tells_no_more(stage: Stage) -> None:
    stage.kinds["endless"] = kind("endless", 3_600_000)
    await stage.start()
    await stage.put("endless", 5)
    await trio.sleep(20)
    before = beats(stage)
    await trio.sleep(100)
    assert beats(stage) - before <= 100 / HEARTBEAT_SECONDS + 1


async def test_one_whose_work_comes_and_goes_tells_no_more(stage: Stage) -> None:
    await stage.start(workers__default_count=8)
    await trio.sleep(10)
    before = beats(stage)
    for _ in range(100):
        await stage.put("report", 8)
        await trio.sleep(0.5)
    assert beats(stage) - before <= 50 / HEARTBEAT_SECONDS + 1


async def test_while_the_store_is_away_it_tries_seldom(stage: Stage) -> None:
    await stage.start()
    await trio.sleep(10)
    stage.store.away = True
    before = beats(stage)
    await trio.sleep(60)
    assert beats(stage) - before <= 60 / 2 + 1
    stage.store.away = False
    await trio.sleep(2.5)
    assert (await told(stage)).silent_seconds < 2.5
