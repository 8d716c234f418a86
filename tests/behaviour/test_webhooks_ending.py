"""No end of a node, and no weather, loses a message."""

import trio

from tests.support.receiver import SIGNED, URL, due_seconds, message, received
from tests.support.stage import Node, Stage, until


async def test_a_store_that_is_away_loses_none(stage: Stage) -> None:
    receiver = received(stage, 5.0)
    node = await stage.start(**SIGNED)
    await stage.put("noop", webhook=URL)
    await until(lambda: receiver.got)
    stage.store.away = True
    await trio.sleep(30)
    stage.store.away = False
    await until(lambda: node.metric("webhooks_total", result="delivered"), 60)
    assert len({got.headers["webhook-id"] for got in receiver.got}) == 1


async def test_what_a_dead_node_held_another_sends(stage: Stage) -> None:
    receiver = received(stage, 1000.0)
    node = await stage.start("north", **SIGNED)
    await stage.put("noop", webhook=URL)
    await until(lambda: receiver.got)
    node.kill()
    await node.ended.wait()
    await stage.start("south", **SIGNED)
    await until(lambda: len(receiver.got) == 2, 120)
    first, second = receiver.got
    assert first.headers["webhook-id"] == second.headers["webhook-id"]


async def test_a_node_that_ends_sends_what_its_last_jobs_left_and_waits_for_it(
    stage: Stage,
) -> None:
    receiver = received(stage, 10.0)
    node = await stage.start(**SIGNED)
    await stage.put("report", webhook=URL)
    await until(lambda: node.workers[0].job_id or node.workers[1].job_id)
    started = trio.current_time()
    await node.stop()
    assert 10 < trio.current_time() - started < 11
    assert len(receiver.got) == 1
    assert (await message(stage)).state == "delivered"


async def sending_for_long(stage: Stage) -> Node:
    """A node with a message under way to a receiver that does not answer."""
    received(stage, 1000.0)
    node = await stage.start(webhooks__timeout_seconds=20, **SIGNED)
    await stage.put("noop", webhook=URL)
    await trio.sleep(2)
    return node


async def test_a_node_that_ends_waits_only_so_long_and_gives_the_rest_back(stage: Stage) -> None:
    node = await sending_for_long(stage)
    started = trio.current_time()
    await node.stop()
    assert trio.current_time() - started < 21
    found = await message(stage)
    assert (found.state, found.tries) == ("waiting", 1)
    assert await due_seconds(stage) < 10


async def test_a_node_that_is_hurried_gives_back_at_once(stage: Stage) -> None:
    node = await sending_for_long(stage)
    started = trio.current_time()
    node.daemon.stop()
    await node.stop()
    assert trio.current_time() - started < 1
    found = await message(stage)
    assert (found.state, found.error) == (
        "waiting",
        "the node stopped before there was an answer",
    )
    assert await due_seconds(stage) <= 0
