"""Kinds with `max_running` among others, on one node and on two."""

import trio

from musterd.store.lifecycle import JobState
from tests.support.stage import Stage, kind, until

KIND = kind("narrow", 200, max_running=2)


async def running(stage: Stage, kind_name: str) -> int:
    jobs = await stage.jobs(JobState.ASSIGNED, JobState.RUNNING)
    return sum(one.kind == kind_name for one in jobs)


async def most_at_once(stage: Stage, kind_name: str) -> int:
    """Looks until all have ended."""
    most = 0
    with trio.fail_after(120):
        while await stage.jobs(JobState.QUEUED, JobState.ASSIGNED, JobState.RUNNING):
            most = max(most, await running(stage, kind_name))
            await trio.sleep(0.005)
    return most


async def test_no_more_than_the_cap_run_at_once_on_two_nodes(stage: Stage) -> None:
    stage.kinds["narrow"] = KIND
    await stage.start("north")
    await stage.start("south")
    await stage.put("narrow", 40, priority=1)
    await stage.put("brief", 40)
    assert await most_at_once(stage, "narrow") == 2


async def test_other_kinds_run_beside_those_that_wait_for_their_cap(stage: Stage) -> None:
    stage.kinds["narrow"] = KIND
    await stage.start(workers__default_count=4, workers__max_count=4)
    narrow = await stage.put("narrow", 100, priority=1)
    await stage.put("brief", 100)
    await until(lambda: count_ended(stage, "brief") == 100, 4)
    assert count_ended(stage, "narrow") < len(narrow) / 2
    await stage.all_ended()


def count_ended(stage: Stage, kind_name: str) -> int:
    found = stage.raw(
        f"select count(*) from job_rows where state='succeeded' and kind='{kind_name}'"
    )
    return int(found[0][0])


async def test_room_is_used_without_a_pause(stage: Stage) -> None:
    """Forty jobs of 200 ms, two at a time, take 4 s."""
    stage.kinds["narrow"] = KIND
    await stage.start(workers__poll_interval_ms=60_000)
    await stage.put("narrow", 40)
    start = trio.current_time()
    await stage.all_ended()
    assert trio.current_time() - start < 4.1


async def test_a_node_finds_the_room_that_another_left_by_polling(stage: Stage) -> None:
    stage.kinds["narrow"] = KIND
    north = await stage.start("north")
    await stage.put("narrow", 3)
    await until(lambda: len(stage.running_now()) == 2)
    await stage.start("south", workers__poll_interval_ms=250)
    await north.stop()
    await stage.all_ended(1)


async def test_a_killed_node_gives_its_room_back_with_its_leases(stage: Stage) -> None:
    stage.kinds["narrow"] = kind("narrow", 100_000, max_running=2)
    north = await stage.start("north")
    await stage.start("south")
    await stage.put("narrow", 5)
    await until(lambda: len(stage.running_now()) == 2)
    north.kill()
    await trio.sleep(40)
    assert await running(stage, "narrow") == 2
    assert len(stage.running_now()) >= 2


async def test_a_crew_that_may_be_empty_is_hired_for_parked_jobs(stage: Stage) -> None:
    """Nobody claims while nobody is there: that jobs are parked must bring somebody."""
    stage.kinds["narrow"] = KIND
    await stage.put("narrow", 5)
    stage.raw("update job_rows set parked = 1")
    await stage.start(workers__default_count=0)
    await stage.all_ended()


async def test_what_was_parked_runs_once_the_catalog_has_no_cap(stage: Stage) -> None:
    await stage.put("report", 30)
    stage.raw("update job_rows set parked = 1")
    await stage.start()
    await stage.all_ended(30)
