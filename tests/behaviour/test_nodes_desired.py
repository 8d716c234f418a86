"""How many nodes a real node says that there is work for."""

from __future__ import annotations

from typing import Any

import trio

from musterd.store.jobs import NewJob
from tests.support.stage import Node, Stage, kind

SHORT = kind("short", 5)
LATENCY: dict[str, Any] = {
    "scaling__policy": '"latency"',
    "scaling__max_wait_seconds": 30,
    "workers__default_count": 1,
}


async def desired(node: Node) -> float | None:
    """As a scrape finds it; None = this node does not export it."""
    await trio.sleep(6)  # nobody is asked twice within 5 seconds
    await node.daemon.refresh_metrics()
    return node.metrics.registry.get_sample_value("musterd_nodes_desired", {"tenant": "default"})


async def test_nodes_are_wanted_for_all_work_and_not_for_what_is_there(stage: Stage) -> None:
    node = await stage.start(workers__max_count=4)
    assert await desired(node) == 0
    await stage.put("slow", 100)
    await stage.store.engine.jobs.enqueue([NewJob("slow", delay_seconds=3600)])
    wanted = await desired(node)
    assert wanted is not None
    assert 20 <= wanted <= 25, "100 jobs, less those that four workers have ended by now"
    await stage.store.engine.queue.pause("ann")
    assert await desired(node) == 0, "nothing is in hand any more"
    await stage.store.engine.queue.resume()
    await node.stop()


async def test_one_node_alone_says_it(stage: Stage) -> None:
    north = await stage.start("north")
    south = await stage.start("south")
    await trio.sleep(60)
    assert sorted([await desired(north) is None, await desired(south) is None]) == [False, True]
    await north.stop()
    await trio.sleep(20)
    assert await desired(south) == 0


async def test_under_latency_short_jobs_want_no_more_nodes_than_keep_the_promise(
    stage: Stage,
) -> None:
    stage.kinds = {SHORT.name: SHORT}
    node = await stage.start(workers__max_count=2, **LATENCY)
    await stage.put("short", 20)
    await stage.all_ended()
    await stage.store.engine.queue.pause("ann")
    await trio.sleep(20)
    await stage.put("short", 1_000)
    await stage.store.engine.queue.resume()
    await trio.sleep(1.5)
    await node.daemon.refresh_metrics()
    assert node.metric("queue_depth", tenant="default") > 100
    assert node.metric("nodes_desired", tenant="default") == 1


async def test_a_bound_on_all_jobs_bounds_the_nodes(stage: Stage) -> None:
    node = await stage.start(workers__max_count=4, limits__max_running=6)
    await stage.put("slow", 100)
    assert await desired(node) == 2
