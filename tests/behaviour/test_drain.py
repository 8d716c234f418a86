"""The end of a node: what runs may finish, what waits is given back, all in bounded time."""

import pytest
import trio

from musterd.store.lifecycle import Action, JobState
from tests.support.faulty_engine import Fault
from tests.support.stage import Node, Stage, until


async def start_with_claims_ahead(stage: Stage, kind: str) -> Node:
    """Two workers, measured to be quick, that meet jobs which are not: some are claimed ahead."""
    node = await stage.start(workers__default_count=2, workers__max_count=2)
    await stage.put("noop", 500)
    await stage.all_ended()
    await stage.put(kind, 30)
    await trio.sleep(0.01)
    assert await stage.jobs(JobState.ASSIGNED)
    return node


async def test_an_idle_node_stops_at_once(stage: Stage) -> None:
    node = await stage.start()
    await trio.sleep(1)
    before = trio.current_time()
    await node.stop()
    assert trio.current_time() - before <= 0.1
    assert node.daemon.status().phase == "stopped"


async def test_running_jobs_finish_and_no_other_is_claimed(stage: Stage) -> None:
    node = await stage.start()
    await stage.put("slow", 6)
    await trio.sleep(0.5)
    claimed = node.metric("jobs_claimed_total")
    await node.stop()
    assert node.metric("jobs_claimed_total") == claimed == 2
    assert 5.0 <= trio.current_time() <= 5.2
    assert len(await stage.jobs(JobState.SUCCEEDED)) == 2
    assert {one.attempt for one in await stage.jobs(JobState.QUEUED)} == {0}


async def test_what_was_claimed_ahead_is_given_back_and_burns_no_attempt(stage: Stage) -> None:
    node = await start_with_claims_ahead(stage, "slow")
    await node.stop()
    assert not await stage.jobs(JobState.ASSIGNED, JobState.RUNNING)
    waiting = await stage.jobs(JobState.QUEUED)
    assert len(waiting) == 28
    assert {one.attempt - one.forgiven for one in waiting} == {0}


async def test_what_has_not_started_is_given_back_when_the_drain_begins(stage: Stage) -> None:
    node = await start_with_claims_ahead(stage, "long")
    node.daemon.stop()
    await trio.sleep(0.01)
    assert not await stage.jobs(JobState.ASSIGNED)
    assert len(stage.running_now()) == 2
    seen = node.daemon.status()
    assert seen.phase == "draining"
    assert seen.drain_seconds_left == pytest.approx(299.99, abs=0.05)


async def test_a_cancel_is_obeyed_while_the_node_drains(stage: Stage) -> None:
    node = await stage.start(shutdown__grace_period_seconds=60)
    job_id = await stage.put_one("long")
    await until(stage.running_now)
    node.daemon.drain()
    await trio.sleep(10)
    await stage.store.control.apply(Action.CANCEL, job_id)
    with trio.fail_after(3):
        await node.ended.wait()
    assert await stage.state(job_id) is JobState.CANCELED


async def test_a_request_that_nobody_heard_survives_the_end_of_the_node(stage: Stage) -> None:
    node = await stage.start(
        shutdown__grace_period_seconds=1, workers__lease_timeout_seconds=300,
        leases__heartbeat_seconds=60,
    )  # fmt: skip
    stage.store.deaf = True
    job_id = await stage.put_one("long")
    await until(stage.running_now)
    node.daemon.drain()
    await stage.store.control.apply(Action.CANCEL, job_id)
    await node.ended.wait()
    job = await stage.job(job_id)
    assert (job.state, [one.outcome for one in job.attempts]) == (JobState.CANCELED, ["released"])


async def test_a_signal_after_a_drain_is_the_first_one(stage: Stage) -> None:
    node = await stage.start()
    await stage.put_one("long")
    await until(stage.running_now)
    for tell in (node.daemon.drain, node.daemon.drain, node.daemon.stop):
        tell()
        await trio.sleep(1)
        assert stage.running_now()
    await node.stop()


@pytest.mark.parametrize("policy", ["requeue", "pause"])
async def test_after_the_grace_period_jobs_are_interrupted_as_configured(
    stage: Stage, policy: str
) -> None:
    node = await stage.start(shutdown__grace_period_seconds=20, shutdown__interrupted=f'"{policy}"')
    with_budget = await stage.put_one("long", max_attempts=1)
    without = await stage.put_one("long")
    await until(lambda: len(stage.running_now()) == 2)
    before = trio.current_time()
    await node.stop()
    assert 20 <= trio.current_time() - before <= 20.2
    for job_id in (with_budget, without):
        job = await stage.job(job_id)
        if policy == "pause":
            assert (job.state, job.reason) == (JobState.PAUSED, "Job was interrupted by user")
            continue
        assert (job.state, job.attempt, job.forgiven) == (JobState.QUEUED, 1, 1)
        assert [one.outcome for one in job.attempts] == ["released"]
        assert job.reason == "its node shut down"
    assert (await stage.job(with_budget)).max_attempts == 2  # either burns no attempt


async def test_an_interrupted_job_runs_on_the_next_node_though_it_had_one_attempt(
    stage: Stage,
) -> None:
    north = await stage.start("north", shutdown__grace_period_seconds=0)
    job_id = await stage.put_one("slow", max_attempts=1)
    await until(stage.running_now)
    await north.stop()
    await stage.start("south")
    await stage.all_ended()
    assert await stage.state(job_id) is JobState.SUCCEEDED


async def test_the_second_stop_dismisses_at_once(stage: Stage) -> None:
    node = await stage.start()
    job_id = await stage.put_one("long")
    await until(stage.running_now)
    node.daemon.stop()
    await trio.sleep(10)
    assert node.daemon.status().phase == "draining"
    assert stage.running_now() == [job_id]
    before = trio.current_time()
    await node.stop()
    assert trio.current_time() - before <= 0.1
    assert await stage.state(job_id) is JobState.QUEUED


async def test_a_store_that_is_away_bounds_the_drain(stage: Stage) -> None:
    node = await stage.start(shutdown__grace_period_seconds=10, shutdown__dismiss_seconds=3)
    job_id = await stage.put_one("long")
    await until(stage.running_now)
    stage.store.away = True
    before = trio.current_time()
    await node.stop()
    assert trio.current_time() - before <= 13.2
    stage.store.away = False
    assert await stage.state(job_id) is JobState.RUNNING  # until its lease runs out


async def test_a_store_that_comes_back_during_the_drain_gets_all_that_was_done(
    stage: Stage,
) -> None:
    node = await stage.start(workers__default_count=4)
    ids = await stage.put("slow", 4)
    await until(lambda: len(stage.running_now()) == 4)
    stage.store.away = True
    node.daemon.stop()
    await trio.sleep(7)
    stage.store.away = False
    await node.ended.wait()
    assert {await stage.state(one) for one in ids} == {JobState.SUCCEEDED}


async def test_a_claim_that_is_under_way_when_the_node_stops_is_given_back(stage: Stage) -> None:
    """Its jobs are leased already: would nobody hear the reply, they would lie for a lease."""
    node = await stage.start()
    await trio.sleep(10)
    stage.store.faults["claim"].append(Fault("slow_reply", 0.5))
    ids = await stage.put("noop", 2)
    await trio.sleep(0.1)
    assert len(await stage.jobs(JobState.RUNNING)) == 1  # a node at rest claims one first
    await node.stop()
    for job_id in ids:
        job = await stage.job(job_id)
        assert job.state in (JobState.QUEUED, JobState.SUCCEEDED)
        assert job.state is JobState.SUCCEEDED or job.attempt == job.forgiven


async def test_a_claim_whose_reply_was_lost_is_given_back_by_a_node_that_stops(
    stage: Stage,
) -> None:
    node = await stage.start()
    await trio.sleep(10)
    stage.store.faults["claim"].append(Fault("reply_lost"))
    await stage.put("slow", 2)
    await trio.sleep(0.01)
    assert len(await stage.jobs(JobState.RUNNING)) == 1
    await node.stop()
    waiting = await stage.jobs(JobState.QUEUED)
    assert len(waiting) == 2
    assert {one.attempt - one.forgiven for one in waiting} == {0}


async def test_leases_are_kept_through_a_long_drain(stage: Stage) -> None:
    north = await stage.start("north", workers__lease_timeout_seconds=5)
    job_id = await stage.put_one("long")
    await until(stage.running_now)
    north.daemon.stop()
    await stage.start("south", workers__lease_timeout_seconds=5)
    await north.ended.wait()
    job = await stage.job(job_id)
    assert (job.state, job.node, job.attempt) == (JobState.SUCCEEDED, "north", 1)


async def test_a_node_that_waits_for_its_store_can_be_stopped(stage: Stage) -> None:
    stage.store.away = True
    node = stage.start_soon()
    await trio.sleep(60)
    assert node.daemon.status().phase == "starting"
    assert node.events.named("waiting for the store")
    before = trio.current_time()
    await node.stop()
    assert trio.current_time() - before <= 0.1


async def test_a_node_starts_once_its_store_is_there(stage: Stage) -> None:
    stage.store.away = True
    node = stage.start_soon()
    await trio.sleep(60)
    stage.store.away = False
    assert await until(lambda: node.daemon.status().phase == "running") <= 5
