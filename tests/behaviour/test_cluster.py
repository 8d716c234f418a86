"""Five nodes on one store: each takes its share of what is due, nobody hands the shares out."""

import pytest
import trio

from tests.support.cluster import FLOOR, LAG_SECONDS, MOST, NODES, Cluster
from tests.support.stage import kind, until


@pytest.mark.parametrize(
    ("apart_seconds", "lag_seconds"),
    [(0.0, 0.0), (0.0, LAG_SECONDS), (0.23, 0.0), (0.07, LAG_SECONDS), (0.23, 0.5)],
)
@pytest.mark.parametrize("demand", [7, 12, 27, 39, 40, 200])
async def test_a_burst_is_met_in_a_few_intervals_and_not_overshot(
    cluster: Cluster, demand: int, apart_seconds: float, lag_seconds: float
) -> None:
    nodes = await cluster.five(apart_seconds)
    cluster.lag(lag_seconds)
    async with cluster.never_beyond(demand):
        await cluster.put("long", demand)
        await cluster.all_running(min(demand, NODES * MOST), 4 + 2 * lag_seconds)
        await trio.sleep(5)
    if demand <= NODES * MOST:
        assert all(node.size - demand / NODES <= 3 for node in nodes)


async def test_who_has_more_room_takes_more(cluster: Cluster) -> None:
    (small,) = await cluster.join(1, 0.3, workers__max_count=4)
    (middle,) = await cluster.join(1, 0.3, workers__max_count=12)
    (large,) = await cluster.join(1, 5.03, workers__max_count=28)
    async with cluster.never_beyond(24):
        await cluster.put("long", 6 + 19)
        await cluster.all_running(25, 4)
    assert small.size <= 4
    assert middle.size == pytest.approx(2 + 19 * 10 / 38, abs=2)
    assert large.size == pytest.approx(2 + 19 * 26 / 38, abs=3)


async def test_one_job_more_is_one_worker_more(cluster: Cluster) -> None:
    """Not one on each node."""
    await cluster.join(2)
    cluster.lag(LAG_SECONDS)
    await cluster.put("long", 4)
    await trio.sleep(3)
    await cluster.put("long", 1)
    await cluster.all_running(5, 2)
    await trio.sleep(5)
    assert sorted(cluster.sizes) == [2, 3]


async def test_where_there_is_no_floor_one_job_is_one_worker(cluster: Cluster) -> None:
    await cluster.five(0.0, workers__default_count=0)
    cluster.lag(LAG_SECONDS)
    for number in range(1, 6):
        await cluster.put("long")
        await cluster.all_running(number, 2)
        await trio.sleep(2.5)
        assert sum(cluster.sizes) == number


async def test_what_waited_in_a_paused_queue_is_shared_as_if_it_were_new(cluster: Cluster) -> None:
    await cluster.join(2)
    await cluster.store.engine.queue.pause("me")
    await cluster.put("long", 5)
    await trio.sleep(60)
    cluster.lag(LAG_SECONDS)
    await cluster.store.engine.queue.resume()
    await cluster.all_running(5, 3)
    await trio.sleep(5)
    assert sorted(cluster.sizes) == [2, 3]


async def test_a_node_that_joins_takes_its_share_within_two_intervals(cluster: Cluster) -> None:
    await cluster.join(4, 0.23)
    await cluster.put("long", 4 * MOST + 6)
    await cluster.all_running(4 * MOST, 5)
    await trio.sleep(5)
    (late,) = await cluster.join(1)
    await cluster.all_running(4 * MOST + 6, 2)
    assert late.size == 6


async def test_who_has_just_joined_counts_at_once(cluster: Cluster) -> None:
    (first,) = await cluster.join(1, 5.03, workers__max_count=40)
    (second,) = await cluster.join(1, 0.3, workers__max_count=40)
    async with cluster.never_beyond(40):
        await cluster.put("long", 40)
        await cluster.all_running(40, 4)
    assert min(first.size, second.size) >= 12
    # Its first look counts as far as matters to both, though it had not known of the first.
    assert next(one.due for one in second.journal if one.due) > 2


async def test_the_first_look_counts_as_far_as_matters_to_all(cluster: Cluster) -> None:
    await cluster.join(4, workers__default_count=0, workers__poll_interval_ms=60_000)
    await cluster.put("long", 500)
    (late,) = await cluster.join(1, 1.1)
    assert late.journal[0].due == 2 * (MOST + (late.journal[0].others_free or 0)) + 1


async def test_an_idle_cluster_goes_down_to_its_floor_and_stays_there(cluster: Cluster) -> None:
    await cluster.five()
    await cluster.put("slow", 40)
    await cluster.all_ended()
    await until(lambda: cluster.sizes == [FLOOR] * NODES, 60)
    before = [len(node.events.named("crew resized")) for node in cluster.nodes]
    await trio.sleep(60)
    assert [len(node.events.named("crew resized")) for node in cluster.nodes] == before


async def test_with_a_constant_demand_no_crew_changes(cluster: Cluster) -> None:
    cluster.kinds["endless"] = kind("endless", 3_600_000)
    await cluster.five()
    await cluster.put("endless", 23)
    await cluster.all_running(23, 4)
    await trio.sleep(20)
    sizes = cluster.sizes
    before = [len(node.events.named("crew resized")) for node in cluster.nodes]
    await trio.sleep(600)
    assert cluster.sizes == sizes
    assert [len(node.events.named("crew resized")) for node in cluster.nodes] == before


async def test_jobs_that_follow_each_other_make_no_crew_flap(cluster: Cluster) -> None:
    """Each that ends is followed by another, anywhere: crews change seldom, and little."""
    await cluster.five()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep_up, cluster, "slow", 25)
        await trio.sleep(30)
        before = {node.name: len(node.journal) for node in cluster.nodes}
        await trio.sleep(120)
        nursery.cancel_scope.cancel()
    later = [one for node in cluster.nodes for one in node.journal[before[node.name] :]]
    steps = [one.hired - one.retired for one in later if one.hired or one.retired]
    assert len(steps) <= 120 / 10 * 2
    assert max(map(abs, steps)) <= 2
    assert sum(cluster.sizes) <= 25 + 2 * NODES


async def keep_up(cluster: Cluster, kind_name: str, count: int) -> None:
    while True:
        await cluster.put(kind_name, count - await cluster.unended())
        await trio.sleep(0.1)
