"""Which job comes next, and when it is found."""

import trio

from musterd.manager.webhooks.postman import LOOK_SECONDS
from musterd.store.lifecycle import JobState
from tests.support.history import claims_in_order
from tests.support.stage import Stage, until


async def started_in_order(stage: Stage) -> list[int]:
    """Ids by the moment at which they were started, those of one moment as they were claimed."""
    place = {job_id: at for at, job_id in enumerate(claims_in_order(stage.store.deeds))}
    jobs = await stage.jobs()
    return [
        one.id
        for one in sorted(jobs, key=lambda one: (one.started_at or one.run_at, place[one.id]))
    ]


async def test_jobs_run_by_priority_then_due_time_then_id(stage: Stage) -> None:
    late = await stage.put("report", 2, delay_seconds=1)
    early = await stage.put("report", 2)
    low = await stage.put("report", 2, priority=-5)
    high = await stage.put("report", 2, priority=32767, delay_seconds=1.5)
    await trio.sleep(2)
    await stage.start(workers__default_count=1, workers__max_count=1)
    await stage.all_ended()
    assert await started_in_order(stage) == high + early + late + low


async def test_jobs_claimed_ahead_run_in_order_too(stage: Stage) -> None:
    await stage.start(workers__default_count=3, workers__max_count=3)
    await stage.put("noop", 500)  # teaches the desk that jobs are short
    await stage.all_ended()
    await stage.store.engine.queue.pause("a test")
    low = await stage.put("brief", 60, priority=1)
    high = await stage.put("brief", 60, priority=2)
    await stage.store.engine.queue.resume()
    claimed_ahead = 0
    while await stage.jobs(JobState.QUEUED, JobState.ASSIGNED):
        claimed_ahead = max(claimed_ahead, len(await stage.jobs(JobState.ASSIGNED)))
        await trio.sleep(0.001)
    assert claimed_ahead > 3
    await stage.all_ended()
    order = [one for one in await started_in_order(stage) if one > 500]
    assert order == high + low


async def test_an_idle_worker_is_woken_by_a_hint(stage: Stage) -> None:
    await stage.start(workers__poll_interval_ms=60_000)
    await trio.sleep(100)
    job_id = await stage.put_one("noop")
    await trio.sleep(0.001)
    assert await stage.state(job_id) is JobState.SUCCEEDED


async def test_polling_finds_the_work_that_no_hint_announced(stage: Stage) -> None:
    await stage.start(workers__poll_interval_ms=250)
    stage.store.deaf = True
    await trio.sleep(10)
    for _ in range(10):
        job_id = await stage.put_one("noop")
        await trio.sleep(0.276)  # the interval, and its jitter
        assert await stage.state(job_id) is JobState.SUCCEEDED


async def test_a_hint_that_overtakes_its_commit_costs_no_poll_interval(stage: Stage) -> None:
    node = await stage.start(workers__poll_interval_ms=10_000)
    await trio.sleep(60)
    stage.store.deaf = True
    node.tenancy()._desk.hint()  # pyright: ignore[reportPrivateUsage] - a hint without its job
    await trio.sleep(0.005)
    job_id = await stage.put_one("noop")
    await trio.sleep(0.02)
    assert await stage.state(job_id) is JobState.SUCCEEDED


async def test_an_idle_node_asks_the_store_seldom(stage: Stage) -> None:
    await stage.start()
    await trio.sleep(100)
    stage.store.calls.clear()
    await trio.sleep(100)
    calls = stage.store.calls
    for_others = calls["outbox_next_due_seconds"]  # what other nodes, or programs, want told
    assert for_others <= 100 / (0.8 * LOOK_SECONDS) + 2
    looks = calls["history_look"]  # of the charts, each with five other calls beside it
    assert looks <= 100 / 15 + 1
    assert calls.total() - for_others - 6 * looks <= 650


async def test_a_delayed_job_starts_at_its_due_time(stage: Stage) -> None:
    await stage.start(workers__poll_interval_ms=60_000)
    await trio.sleep(100)
    job_id = await stage.put_one("noop", delay_seconds=12.5)
    await trio.sleep(20)
    job = await stage.job(job_id)
    assert job.started_at is not None
    assert 0 <= (job.started_at - job.run_at).total_seconds() <= 0.002


async def test_each_of_many_delayed_jobs_starts_at_its_due_time(stage: Stage) -> None:
    await stage.start(workers__poll_interval_ms=60_000)
    await trio.sleep(100)
    for delay_seconds in (9.0, 3.0, 6.0, 3.5, 0.7):
        await stage.put_one("noop", delay_seconds=delay_seconds)
    await trio.sleep(10)
    for job in await stage.jobs():
        assert job.started_at is not None
        assert 0 <= (job.started_at - job.run_at).total_seconds() <= 0.002


async def test_a_paused_queue_gives_no_job_until_it_is_resumed(stage: Stage) -> None:
    node = await stage.start(workers__poll_interval_ms=60_000)
    await stage.store.engine.queue.pause("a test")
    await stage.put("noop", 20)
    await trio.sleep(30)
    assert not claims_in_order(stage.store.deeds)
    assert node.size == 2
    assert node.journal[-1].due == 0
    await stage.store.engine.queue.resume()
    await trio.sleep(0.01)
    assert len(await stage.jobs(JobState.SUCCEEDED)) == 20


async def test_jobs_claimed_ahead_are_given_back_when_the_crew_gets_stuck(stage: Stage) -> None:
    node = await stage.start(workers__default_count=2, workers__max_count=2)
    await stage.put("noop", 500)
    await stage.all_ended()
    await stage.put("long", 2)
    await stage.put("noop", 50)
    await until(lambda: len(stage.running_now()) == 2)
    assert await stage.jobs(JobState.ASSIGNED)
    await trio.sleep(0.5)
    assert not await stage.jobs(JobState.ASSIGNED)
    waiting = await stage.jobs(JobState.QUEUED)
    assert len(waiting) == 50
    assert {one.attempt - one.forgiven for one in waiting} == {0}
    await stage.start("south")
    await until(lambda: node.metric("jobs_claimed_total") >= 502)
    await trio.sleep(1)
    assert not await stage.jobs(JobState.QUEUED)


async def test_nothing_is_claimed_ahead_where_that_is_turned_off(stage: Stage) -> None:
    node = await stage.start(
        workers__default_count=1, workers__max_count=1, limits__claim_ahead_ms=0
    )
    await stage.put("noop", 200)
    await stage.put("brief", 50)
    while await stage.jobs(JobState.QUEUED):
        assert len(await stage.jobs(JobState.ASSIGNED, JobState.RUNNING)) <= 1
        await trio.sleep(0.001)
    await stage.all_ended()
    assert node.metric("jobs_claimed_total") == 250
