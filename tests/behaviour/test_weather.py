"""Bad weather at the store: nothing is lost, nothing runs twice, and the daemon stays up."""

import random

import pytest
import trio

from musterd.store.lifecycle import AttemptOutcome, JobState
from tests.support.faulty_engine import Fault, What
from tests.support.history import claims_in_order, settlements_of
from tests.support.stage import Stage, until

STORE_CALLS = ("claim", "settle", "renew", "reap", "observe", "next_due")


async def each_ran_once(stage: Stage, ids: list[int]) -> None:
    for job_id in ids:
        job = await stage.job(job_id)
        assert (job.state, job.attempt) == (JobState.SUCCEEDED, 1)
        assert [one.outcome for one in job.attempts] == ["succeeded"]
        assert settlements_of(stage.store.deeds, job_id) == ["succeeded"]
    assert sorted(claims_in_order(stage.store.deeds)) == ids


@pytest.mark.parametrize("what", ["request_lost", "reply_lost", "slow_request", "slow_reply"])
@pytest.mark.parametrize("operation", ["claim", "settle"])
@pytest.mark.parametrize("times", [1, 5])
async def test_each_job_runs_once_whatever_befalls_the_calls(
    stage: Stage, what: What, operation: str, times: int
) -> None:
    node = await stage.start(workers__default_count=4)
    await trio.sleep(1)
    stage.store.faults[operation] += [Fault(what, 0.7)] * times
    ids = await stage.put("report", 6)
    await stage.all_ended()
    await each_ran_once(stage, ids)
    ended = {"tenant": "default", "kind": "report", "outcome": "succeeded"}
    await until(lambda: node.metric("jobs_finished_total", **ended) == 6)
    assert node.metric("stale_writes_rejected_total") == 0


async def test_a_reading_back_that_fails_is_tried_again(stage: Stage) -> None:
    node = await stage.start()
    await trio.sleep(1)
    stage.store.faults["claim"].append(Fault("reply_lost"))
    stage.store.faults["claims_under"] += [Fault("request_lost"), Fault("misconfigured")]
    ids = await stage.put("report", 2)
    await stage.all_ended()
    await each_ran_once(stage, ids)
    stage.store.faults["settle"].append(Fault("reply_lost"))
    stage.store.faults["settled_already"] += [Fault("request_lost"), Fault("reply_lost")]
    more = await stage.put("report", 2)
    await stage.all_ended()
    await each_ran_once(stage, ids + more)
    await until(lambda: node.daemon.status().settled_total == 4)


@pytest.mark.parametrize("seconds", [0.02, 0.5, 3.0])
async def test_a_settlement_that_arrives_late_changes_nothing(stage: Stage, seconds: float) -> None:
    """As many jobs as workers: no claim goes with it, which would be late as well."""
    await stage.start()
    await trio.sleep(1)
    stage.store.faults["settle"] += [Fault("late", seconds)] * 3
    ids = await stage.put("report", 2)
    await stage.all_ended()
    await trio.sleep(5)
    await each_ran_once(stage, ids)


async def test_a_claim_that_arrives_after_it_was_read_back_runs_once_its_lease_is_over(
    stage: Stage,
) -> None:
    """Nobody knows of it; its lease is what gives the job back."""
    await stage.start(workers__lease_timeout_seconds=3)
    await trio.sleep(1)
    stage.store.deaf = True
    stage.store.faults["claim"].append(Fault("late", 0.4))
    await trio.sleep(0.3)
    stage.store.broken.add("claim")
    ids = await stage.put("report", 2)
    await trio.sleep(0.5)
    stage.store.broken.clear()
    await stage.all_ended(within_seconds=6)
    for job_id in ids:
        assert await stage.state(job_id) is JobState.SUCCEEDED
        assert settlements_of(stage.store.deeds, job_id) == ["succeeded"]


async def test_a_store_that_goes_away_costs_no_job_that_runs(stage: Stage) -> None:
    node = await stage.start()
    ids = await stage.put("slow", 2)
    await until(lambda: len(stage.running_now()) == 2)
    stage.store.away = True
    await trio.sleep(10)
    assert node.daemon.status().store_trouble == "unreachable"
    stage.store.away = False
    await stage.all_ended(within_seconds=5)
    await each_ran_once(stage, ids)
    assert node.daemon.status().store_trouble is None


async def test_a_store_away_for_longer_than_the_leases_loses_no_job(stage: Stage) -> None:
    node = await stage.start(workers__lease_timeout_seconds=5)
    ids = await stage.put("long", 2)
    await until(lambda: len(stage.running_now()) == 2)
    stage.store.away = True
    await trio.sleep(30)
    assert not stage.running_now()
    stage.store.away = False
    await stage.all_ended(within_seconds=115)
    for job_id in ids:
        assert await stage.state(job_id) is JobState.SUCCEEDED
        assert settlements_of(stage.store.deeds, job_id) == ["succeeded"]
    assert node.daemon.status().phase == "running"


async def test_an_absent_store_is_not_asked_without_a_pause(stage: Stage) -> None:
    await stage.start()
    await stage.put("slow", 2)
    await trio.sleep(1)
    stage.store.away = True
    before = stage.store.calls.total()
    await trio.sleep(60)
    assert stage.store.calls.total() - before <= 60 * 5


@pytest.mark.parametrize("operation", STORE_CALLS)
async def test_a_store_that_refuses_the_node_for_a_while_does_not_end_it(
    stage: Stage, operation: str
) -> None:
    """Rights that were taken away by mistake come back; a daemon that has ended does not."""
    node = await stage.start()
    await stage.put("report", 4)
    stage.store.faults[operation] += [Fault("misconfigured")] * 4
    await trio.sleep(20)
    assert node.daemon.status().phase == "running"
    await stage.all_ended()


@pytest.mark.parametrize("seed", range(12))
async def test_in_any_weather_the_laws_hold_and_all_jobs_end(stage: Stage, seed: int) -> None:
    rng = random.Random(seed)
    stage.store.chance = lambda _: _fault(rng)
    nodes = [
        await stage.start(name, workers__lease_timeout_seconds=4, workers__max_count=6)
        for name in ("north", "south")
    ]
    ids: list[int] = []
    for _ in range(8):
        for kind_name in ("noop", "brief", "varied", "flaky", "declined", "slow"):
            ids += await stage.put(kind_name, rng.randrange(4))
        await trio.sleep(rng.uniform(0, 2))
        _no_job_twice(stage)
        stage.store.away = rng.random() < 0.2
    stage.store.away = False
    await trio.sleep(20)
    stage.store.chance = lambda _: None
    await stage.all_ended(within_seconds=120)
    assert all(node.daemon.status().phase == "running" for node in nodes)
    jobs = {one.id: one for one in await stage.jobs()}
    assert sorted(jobs) == ids
    assert {one.state for one in jobs.values()} <= {
        JobState.SUCCEEDED, JobState.CANCELED, JobState.FAILED,
    }  # fmt: skip
    for job in jobs.values():
        if job.state is JobState.FAILED:  # only by leases lost until no attempt was left
            assert [one.outcome for one in job.attempts].count(AttemptOutcome.SUCCEEDED) == 0
            assert job.attempt - job.forgiven == 4


def _fault(rng: random.Random) -> Fault | None:
    if rng.random() > 0.15:
        return None
    names: list[What] = ["request_lost", "reply_lost", "late", "slow_request", "slow_reply"]
    return Fault(rng.choice(names), rng.uniform(0, 1.5))


def _no_job_twice(stage: Stage) -> None:
    running = stage.running_now()
    assert len(running) == len(set(running)), f"in two hands at once: {running}"
