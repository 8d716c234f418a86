"""Several nodes on one store."""

import trio

from musterd.store.job import JobState
from tests.support.history import claims_in_order
from tests.support.stage import Stage, until


async def test_two_nodes_share_the_work_and_run_no_job_twice(stage: Stage) -> None:
    nodes = [await stage.start(name) for name in ("north", "south")]
    ids = await stage.put("report", 200)
    await stage.all_ended()
    assert sorted(claims_in_order(stage.store.history)) == ids
    jobs = await stage.jobs()
    assert {(one.state, one.attempt) for one in jobs} == {(JobState.SUCCEEDED, 1)}
    shares = [sum(one.node == node.name for one in jobs) for node in nodes]
    assert min(shares) >= 50


async def test_a_node_that_leaves_hands_its_work_to_the_other(stage: Stage) -> None:
    north = await stage.start("north", shutdown__grace_period_seconds=1)
    await stage.start("south")
    await stage.put("slow", 8)
    await trio.sleep(2)
    await north.stop()
    await stage.all_ended()
    jobs = await stage.jobs()
    assert {one.state for one in jobs} == {JobState.SUCCEEDED}
    assert {one.attempt - one.forgiven for one in jobs} == {1}


async def test_a_late_node_takes_part_at_once(stage: Stage) -> None:
    await stage.start("north", workers__max_count=2)
    await stage.put("slow", 6)
    await trio.sleep(1)
    await stage.start("south")
    await until(lambda: len(stage.running_now()) == 4, within_seconds=0.1)
