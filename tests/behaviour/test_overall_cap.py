"""`limits.max_running`: a bound on all jobs that run at once in a store, on one node and on two."""

import attrs
import pytest
import trio

from musterd.config.settings import Settings
from musterd.store.lifecycle import JobState
from tests.support.stage import Node, Stage, kind, until

POLL_SECONDS = 0.25
POLL_SECONDS_MAX = 1.1 * POLL_SECONDS  # with its jitter


def lower(node: Node, most: int) -> Settings:
    """What a reload hands over."""
    settings = node.tenancy().settings.now
    return attrs.evolve(settings, limits=attrs.evolve(settings.limits, max_running=most))


async def most_at_once(stage: Stage, within_seconds: float = 120) -> int:
    """Looks until all have ended."""
    most = 0
    with trio.fail_after(within_seconds):
        while await stage.jobs(JobState.QUEUED, JobState.ASSIGNED, JobState.RUNNING):
            most = max(most, len(await stage.jobs(JobState.ASSIGNED, JobState.RUNNING)))
            await trio.sleep(0.005)
    return most


async def test_no_more_than_the_bound_run_at_once_on_two_nodes(stage: Stage) -> None:
    await stage.start("north", limits__max_running=5)
    await stage.start("south", limits__max_running=5)
    await stage.put("report", 40)
    await stage.put("brief", 40, priority=1)
    assert await most_at_once(stage) == 5


async def test_it_holds_beside_the_cap_of_a_kind_and_beside_targets(stage: Stage) -> None:
    stage.kinds["narrow"] = kind("narrow", 100, max_running=2)
    await stage.start("north", limits__max_running=4)
    await stage.start("south", limits__max_running=4)
    await stage.put("narrow", 20, priority=1)
    for target in ("a", "b", "c"):
        await stage.put("brief", 10, target=target)
    await stage.put("report", 20)
    assert await most_at_once(stage) == 4


async def test_no_bound_is_none(stage: Stage) -> None:
    await stage.start(limits__max_running=0, workers__default_count=8)
    await stage.put("report", 40)
    assert await most_at_once(stage) >= 8


async def test_each_tenant_has_its_own_bound(stage: Stage) -> None:
    await stage.add_tenants("acme")
    await stage.start(
        limits__max_running=3, tenants__acme__schema="a", tenants__acme__limits__max_running=1,
        workers__max_count=16,
    )  # fmt: skip
    await stage.put("report", 12)
    await stage.put("report", 4, tenant="acme")
    acme = stage.stores["acme"].engine
    most = {"default": 0, "acme": 0}
    with trio.fail_after(10):
        while await stage.jobs(JobState.QUEUED):
            for name, engine in (("default", stage.store.engine), ("acme", acme)):
                by_state = (await engine.queue.counts()).by_state
                leased = by_state[JobState.ASSIGNED] + by_state[JobState.RUNNING]
                most[name] = max(most[name], leased)
            await trio.sleep(0.005)
    assert most == {"default": 3, "acme": 1}


async def test_the_crew_is_no_larger_than_may_run_and_says_why(stage: Stage) -> None:
    node = await stage.start(limits__max_running=3)
    await stage.put("slow", 20)
    await trio.sleep(12)
    assert max(len(node.workers), *(one.desired for one in node.journal)) == 3
    last = node.journal[-1]
    assert (last.desired, last.limited_by, last.room) == (3, "max_running", 0)
    assert node.metric("scale_limited_total", reason="max_running") > 0
    assert node.metric("scale_limited_total", reason="max") == 0


async def test_a_bound_below_the_floor_bounds_the_floor(stage: Stage) -> None:
    node = await stage.start(limits__max_running=1, workers__default_count=4)
    assert len(node.workers) == 1
    await trio.sleep(5)
    assert (node.size, node.journal[-1].limited_by) == (1, "max_running")


async def test_a_crew_does_not_grow_for_what_may_run_elsewhere_only(stage: Stage) -> None:
    await stage.start("north", limits__max_running=8, workers__default_count=8)
    await stage.put("long", 100)
    await until(lambda: len(stage.running_now()) == 8)
    south = await stage.start("south", limits__max_running=8)
    await trio.sleep(60)
    assert {one.hired for one in south.journal} == {0}
    last = south.journal[-1]
    assert (last.size_before, last.desired, last.limited_by, last.room) == (2, 2, "max_running", 0)
    assert last.due is not None
    assert last.due > 2


async def test_two_nodes_share_the_room_that_there_is(stage: Stage) -> None:
    """Sixteen workers for six jobs that may run would be ten for nothing."""
    north = await stage.start("north", limits__max_running=6)
    south = await stage.start("south", limits__max_running=6)
    await trio.sleep(7)  # each knows of the other
    await stage.put("long", 100)
    await until(lambda: len(stage.running_now()) == 6, 10)
    await trio.sleep(1)
    assert north.size + south.size <= 8


async def test_a_full_store_costs_a_node_no_more_looks_than_an_empty_one(stage: Stage) -> None:
    await stage.start("north", limits__max_running=2)
    await stage.put("long", 100)
    await until(lambda: len(stage.running_now()) == 2)
    stage.store.calls.clear()
    await trio.sleep(20)
    without = dict(stage.store.calls)
    await stage.start("south", limits__max_running=2)
    await trio.sleep(5)
    stage.store.calls.clear()
    await trio.sleep(20)
    more = {name: count - without.get(name, 0) for name, count in stage.store.calls.items()}
    assert more["claim"] <= 20 / (0.9 * POLL_SECONDS) + 1
    assert more["observe"] <= 20 + 1  # the crew of a full store says what holds it back


async def test_room_is_used_without_a_pause_by_whoever_made_it(stage: Stage) -> None:
    """Forty jobs of 200 ms, two at a time, take 4 s."""
    await stage.start(limits__max_running=2, workers__poll_interval_ms=60_000)
    await stage.put("report", 40)
    start = trio.current_time()
    await stage.all_ended()
    assert trio.current_time() - start < 4.1


@pytest.mark.parametrize("at", [0.0, 0.07, 0.13, 0.19])
async def test_another_node_finds_the_room_within_a_poll(stage: Stage, at: float) -> None:
    north = await stage.start("north", limits__max_running=1)
    await stage.put("slow", 2)
    await until(lambda: len(stage.running_now()) == 1)
    await trio.sleep(1 + at)
    south = await stage.start("south", limits__max_running=1)
    north.daemon.stop()  # it ends what it has, and takes no more
    await until(lambda: stage.raw("select 1 from job_rows where state = 'succeeded'"))
    took = await until(lambda: [one for one in south.workers if one.job_id is not None], 1)
    assert took <= POLL_SECONDS_MAX + 0.02


async def test_a_killed_node_gives_its_room_back_with_its_leases(stage: Stage) -> None:
    north = await stage.start("north", limits__max_running=2)
    await stage.put("once", 2)  # which fail with their leases
    await until(lambda: len(stage.running_now()) == 2)
    south = await stage.start("south", limits__max_running=2)
    north.kill()
    await stage.put("report", 4)
    # Until its leases are ended they count, run out or not.
    took = await until(lambda: any(one.job_id is not None for one in south.workers), 60)
    lease = south.settings.workers.lease_timeout_seconds
    assert lease - 3 <= took <= lease + 5 + POLL_SECONDS_MAX
    assert await most_at_once(stage) == 2


async def test_a_bound_lowered_below_what_runs_waits_until_it_fits(stage: Stage) -> None:
    node = await stage.start(limits__max_running=6, workers__default_count=6)
    await stage.put("slow", 20)
    await until(lambda: len(stage.running_now()) == 6)
    node.tenancy().settings.replace(lower(node, 2))
    most, started = 6, 6
    with trio.fail_after(120):
        while await stage.jobs(JobState.QUEUED):
            leased = await stage.jobs(JobState.ASSIGNED, JobState.RUNNING)
            now = int(stage.raw("select count(*) from job_rows where attempt > 0")[0][0])
            if now > started:
                assert len(leased) <= 2
            most, started = len(leased), now
            await trio.sleep(0.01)
    assert most <= 2
    assert len(node.workers) <= 2
    assert await stage.jobs(JobState.SUCCEEDED)


async def test_a_bound_that_is_raised_is_used_at_once(stage: Stage) -> None:
    node = await stage.start(limits__max_running=1, workers__default_count=4)
    await stage.put("long", 20)
    await until(lambda: len(stage.running_now()) == 1)
    node.tenancy().settings.replace(lower(node, 0))
    await until(lambda: len(stage.running_now()) == 8, 2)
