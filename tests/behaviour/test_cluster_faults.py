"""Five nodes on one store, and one is stuck, cut off, dead or gone: the others do its part."""

import pytest
import trio

from musterd.store.lifecycle import JobState
from musterd.store.nodes import LIVE_SECONDS
from tests.support.cluster import FLOOR, LAG_SECONDS, MOST, NODES, Cluster
from tests.support.faulty_engine import Fault
from tests.support.stage import until


@pytest.mark.parametrize("demand", [12, 27, 32])
async def test_a_node_that_claims_nothing_starves_nobody(cluster: Cluster, demand: int) -> None:
    """It goes on saying that it lives."""
    stuck = (await cluster.five())[2]
    cluster.lines[stuck.name].broken |= {"claim", "settle"}
    await cluster.put("long", demand)
    await cluster.all_running(demand, 5)


@pytest.mark.parametrize("demand", [12, 27, 32])
async def test_a_node_that_hangs_starves_nobody(cluster: Cluster, demand: int) -> None:
    hanging = (await cluster.five())[2]
    cluster.freeze(hanging)
    async with cluster.never_beyond(demand):
        await cluster.put("long", demand)
        await cluster.all_running(demand, 5)
        await trio.sleep(2)


async def test_nobody_acts_on_what_he_saw_long_ago(cluster: Cluster) -> None:
    late = (await cluster.five())[2]
    await cluster.put("long", NODES * FLOOR)
    await trio.sleep(3)
    cluster.lines[late.name].faults["observe"].append(Fault("slow_reply", 12))
    await cluster.put("long", 20)
    await cluster.all_running(30, 5)
    async with cluster.never_beyond(30):
        await trio.sleep(14)
    assert late.size == FLOOR


async def test_who_hung_comes_back_to_a_cluster_that_needs_him_no_more(cluster: Cluster) -> None:
    hanging = (await cluster.five())[2]
    cluster.freeze(hanging)
    await cluster.put("long", 30)
    await cluster.all_running(30, 5)
    await trio.sleep(10)
    async with cluster.never_beyond(30):
        cluster.thaw(hanging)
        await trio.sleep(10)
    assert hanging.size == FLOOR


async def test_who_leaves_is_replaced_within_two_intervals(cluster: Cluster) -> None:
    leaving = (await cluster.five(shutdown__grace_period_seconds=0.5))[2]
    await cluster.put("long", 20)
    await cluster.all_running(20, 4)
    await trio.sleep(3)
    leaving.daemon.stop()
    await leaving.ended.wait()
    async with cluster.never_beyond(20):
        await cluster.all_running(20, 2)


async def test_a_draining_node_is_not_counted_on(cluster: Cluster) -> None:
    """It has work for a long time yet, and takes none."""
    leaving = (await cluster.five())[2]
    leaving.daemon.stop()
    async with cluster.never_beyond(32):
        await cluster.put("long", 32)
        await cluster.all_running(32, 3)


async def test_the_work_of_a_killed_node_is_done_by_the_others(cluster: Cluster) -> None:
    nodes = await cluster.five(workers__lease_timeout_seconds=10)
    await cluster.put("long", 25)
    await cluster.all_running(25, 4)
    await cluster.kill(nodes[2])
    async with cluster.never_beyond(25):
        await until(lambda: len(cluster.running_now()) == 25, 10 + 5)
        await trio.sleep(LIVE_SECONDS)
    await trio.sleep(100)
    await cluster.all_ended(30)
    assert {one.state for one in await cluster.jobs()} == {JobState.SUCCEEDED}


async def test_what_is_due_while_a_dead_node_still_counts_is_done_all_the_same(
    cluster: Cluster,
) -> None:
    nodes = await cluster.five()
    await cluster.kill(nodes[2])
    await cluster.put("long", 32)
    await cluster.all_running(32, 5)
    await cluster.put("long", 1)
    await trio.sleep(LIVE_SECONDS)
    observed = await cluster.store.engine.queue.observe(1, None)
    assert observed.due == 1


async def test_the_dead_are_not_counted_on_once_they_have_been_silent(cluster: Cluster) -> None:
    nodes = await cluster.five()
    await cluster.kill(nodes[2])
    await trio.sleep(LIVE_SECONDS)
    async with cluster.never_beyond(32):
        await cluster.put("long", 32)
        await cluster.all_running(32, 3)
    assert max(node.journal[-1].others_free or 0 for node in cluster.alive) <= 3 * MOST


async def test_after_an_outage_nobody_takes_all(cluster: Cluster) -> None:
    """Nobody could give a sign of life, and all see only themselves for a moment."""
    nodes = await cluster.five(0.0)
    cluster.lag(LAG_SECONDS)
    await cluster.put("long", 12)
    await cluster.all_running(12, 4)
    for node in nodes:
        cluster.cut(node)
    await trio.sleep(LIVE_SECONDS + 5)
    await cluster.put("long", 8)
    async with cluster.never_beyond(20):
        for node in nodes:
            cluster.heal(node)
        await cluster.all_running(20, 6)
        await trio.sleep(5)
    assert {one.attempt for one in await cluster.jobs()} == {1}


async def test_a_node_that_was_cut_off_comes_back(cluster: Cluster) -> None:
    nodes = await cluster.five()
    await cluster.put("long", 20)
    await cluster.all_running(20, 4)
    cluster.cut(nodes[2])
    await trio.sleep(LIVE_SECONDS + 40)  # its leases are lost meanwhile
    assert len(cluster.running_now()) == 20
    assert not any(worker.job_id for worker in nodes[2].workers)
    cluster.heal(nodes[2])
    await trio.sleep(5)
    await cluster.put("long", 20)
    await cluster.all_running(40, 4)


async def test_claims_need_no_shares(cluster: Cluster) -> None:
    """Nobody sees anything, no crew grows: whoever is idle takes what is there."""
    await cluster.five()
    for line in cluster.lines.values():
        line.broken |= {"observe", "beat"}
    await cluster.put("report", 100)
    await cluster.all_ended(within_seconds=100 * 0.2 / (NODES * FLOOR) + 1)
    assert cluster.sizes == [FLOOR] * NODES
