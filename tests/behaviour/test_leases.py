"""Leases: kept while the job runs, given up when they cannot be kept, never ended early."""

from datetime import datetime, timedelta

import pytest
import trio

from musterd.store.lifecycle import JobState
from tests.support.faulty_engine import Fault
from tests.support.history import settlements_of
from tests.support.stage import Stage, kind, until


async def test_heartbeats_keep_a_long_job_alive(stage: Stage) -> None:
    await stage.start("north", workers__lease_timeout_seconds=5)
    await stage.start("south", workers__lease_timeout_seconds=5)
    job_id = await stage.put_one("long")
    await stage.all_ended(within_seconds=101)
    job = await stage.job(job_id)
    assert (job.state, job.attempt) == (JobState.SUCCEEDED, 1)
    assert stage.store.calls["renew"] >= 20


async def test_a_lease_survives_two_renewals_that_fail(stage: Stage) -> None:
    node = await stage.start(workers__lease_timeout_seconds=5)
    job_id = await stage.put_one("long")
    for _ in range(6):
        await trio.sleep(7)
        stage.store.faults["renew"] += [Fault("request_lost"), Fault("reply_lost")]
    await stage.all_ended()
    assert (await stage.job(job_id)).attempt == 1
    assert not node.events.named("lease lost; job stopped here")


async def test_a_young_claim_is_renewed_if_the_next_renewal_might_come_too_late(
    stage: Stage,
) -> None:
    node = await stage.start(workers__lease_timeout_seconds=8, leases__heartbeat_seconds=4)
    first = await stage.put_one("long")
    await until(stage.running_now)
    await trio.sleep(3.0)
    second = await stage.put_one("long")
    await trio.sleep(2.0)  # a second after it was claimed there was a heartbeat
    stage.store.faults["renew"] += [Fault("slow_request", 2.9)]
    await stage.all_ended(within_seconds=130)
    assert [(await stage.job(each)).attempt for each in (first, second)] == [1, 1]
    assert not node.events.named("lease lost; job stopped here")


async def test_a_job_whose_lease_cannot_be_renewed_is_stopped_in_time_and_runs_elsewhere(
    stage: Stage,
) -> None:
    north = await stage.start("north", workers__lease_timeout_seconds=5)
    job_id = await stage.put_one("slow")
    await until(lambda: stage.running_now() == [job_id])
    stage.store.broken.add("renew")
    stopped_after = await until(lambda: not stage.running_now())
    assert 4.0 <= stopped_after <= 4.8  # the lease, less its margin
    assert len(north.events.named("lease lost; job stopped here")) == 1
    assert settlements_of(stage.store.deeds, job_id) == []
    assert await stage.state(job_id) is JobState.RUNNING  # as far as the store knows
    north.daemon.stop()
    stage.store.broken.clear()
    await stage.start("south", workers__lease_timeout_seconds=5)
    await stage.all_ended()
    job = await stage.job(job_id)
    assert (job.state, job.node, job.attempt) == (JobState.SUCCEEDED, "south", 2)
    assert [one.outcome for one in job.attempts] == ["lost", "succeeded"]


async def test_renewals_that_hang_end_trust_as_those_that_fail(stage: Stage) -> None:
    node = await stage.start(workers__lease_timeout_seconds=5)
    await stage.put_one("long")
    await until(stage.running_now)
    stage.store.faults["renew"] += [Fault("slow_request", 600)] * 20
    await trio.sleep(4.8)
    assert not stage.running_now()
    assert len(node.events.named("lease lost; job stopped here")) == 1


async def test_a_claim_whose_reply_comes_after_its_lease_is_not_begun(stage: Stage) -> None:
    job_id = await stage.put_one("noop")
    stage.store.faults["claim"].append(Fault("slow_reply", 5))
    node = await stage.start("north", workers__lease_timeout_seconds=5)
    await until(lambda: node.events.named("lease lost; job stopped here"))
    assert settlements_of(stage.store.deeds, job_id) == []
    await stage.all_ended()
    assert (await stage.job(job_id)).attempt == 2


async def test_trust_counts_from_when_a_renewal_was_sent_not_from_its_reply(stage: Stage) -> None:
    await stage.start(workers__lease_timeout_seconds=5)
    await stage.put_one("long")
    await trio.sleep(3)
    stage.store.faults["renew"].append(Fault("slow_reply", 0.6))
    await until(lambda: not stage.store.faults["renew"])
    stage.store.broken.add("renew")
    await until(lambda: not stage.running_now())
    renewed = [one.at for one in stage.store.deeds if one.what == "renew"]
    assert 4.5 <= trio.current_time() - renewed[-1] <= 4.8


async def test_a_job_that_another_node_has_reaped_is_cancelled_at_the_next_renewal(
    stage: Stage,
) -> None:
    node = await stage.start()
    job_id = await stage.put_one("long")
    await until(stage.running_now)
    stage.raw(f"update job_rows set claim_token = zeroblob(16) where id = {job_id}")
    stage.store.deeds.clear()  # what was done by hand is no fault of the product
    assert await until(lambda: not stage.running_now()) <= 2.01
    assert len(node.events.named("lease lost; job stopped here")) == 1
    await trio.sleep(5)
    assert not stage.store.deeds
    await until(lambda: node.daemon.status().idle == 2)


async def test_a_settlement_that_comes_after_its_lease_was_lost_is_refused_and_counted(
    stage: Stage,
) -> None:
    north = await stage.start("north", workers__default_count=1, workers__lease_timeout_seconds=5)
    job_id = await stage.put_one("report")
    await until(stage.running_now)
    stage.store.broken |= {"settle", "renew"}
    await stage.store.engine.queue.pause("a test")
    await until(lambda: any(one.what == "reap" for one in stage.store.deeds))
    stage.store.broken.clear()
    await until(lambda: north.metric("stale_writes_rejected_total") == 1)
    assert settlements_of(stage.store.deeds, job_id) == []
    await stage.store.engine.queue.resume()
    await stage.all_ended()
    assert (await stage.job(job_id)).attempt == 2


async def test_after_a_suspend_all_leases_are_distrusted_at_once(stage: Stage) -> None:
    node = await stage.start()
    await stage.put("long", 2)
    await until(lambda: len(stage.running_now()) == 2)
    stage.store.broken.add("renew")
    node.machine_sleeps(3600)
    assert await until(lambda: not stage.running_now()) <= 1.01
    assert len(node.events.named("lease lost; job stopped here")) == 2


async def test_a_job_of_a_dead_node_is_taken_over_within_its_lease_and_two_seconds(
    stage: Stage,
) -> None:
    north = await stage.start("north", workers__lease_timeout_seconds=10)
    job_id = await stage.put_one("slow")
    await until(stage.running_now)
    north.kill()
    await stage.start("south", workers__lease_timeout_seconds=10)
    taken_after = await until(stage.running_now)
    assert taken_after <= 12
    await stage.all_ended()
    assert (await stage.job(job_id)).node == "south"


async def test_a_job_that_kills_its_nodes_fails_once_its_attempts_are_used_up(
    stage: Stage,
) -> None:
    job_id = await stage.put_one("long", max_attempts=3)
    for name in ("first", "second", "third"):
        node = await stage.start(name, workers__lease_timeout_seconds=2)
        await until(stage.running_now)
        node.kill()
        await node.ended.wait()
    await stage.start("last", workers__lease_timeout_seconds=2)
    await until(lambda: len(stage.store.deeds) and stage.store.deeds[-1].what == "reap")
    job = await stage.job(job_id)
    assert (job.state, job.attempt) == (JobState.FAILED, 3)
    assert [one.outcome for one in job.attempts] == ["lost"] * 3


@pytest.mark.parametrize(("kind_name", "state"), [("once", "failed"), ("long", "queued")])
async def test_the_kind_says_what_becomes_of_a_lost_job(
    stage: Stage, kind_name: str, state: str
) -> None:
    north = await stage.start("north", workers__lease_timeout_seconds=2)
    job_id = await stage.put_one(kind_name)
    await until(stage.running_now)
    north.kill()
    await stage.store.engine.queue.pause("a test")
    await stage.start("south", workers__lease_timeout_seconds=2)
    await until(lambda: any(one.what == "reap" for one in stage.store.deeds))
    assert await stage.state(job_id) == state


async def test_a_job_is_seen_as_running_soon_after_it_was_started(stage: Stage) -> None:
    """Also where it was claimed ahead, and started by a worker that was busy at the claim."""
    await stage.start(workers__default_count=2, workers__max_count=2)
    await stage.put("noop", 500)
    await stage.all_ended()
    await stage.put("slow", 4)
    await trio.sleep(0.3)
    assert len(await stage.jobs(JobState.RUNNING)) == 2
    await trio.sleep(5)
    running = await stage.jobs(JobState.RUNNING)
    assert sorted(one.id for one in running) == sorted(stage.running_now())


async def test_a_lost_lease_of_an_unknown_kind_is_ended_by_the_settings_rule(stage: Stage) -> None:
    stage.kinds["strange"] = kind("strange", 100_000)
    north = await stage.start("north", workers__lease_timeout_seconds=5)
    job_id = await stage.put_one("strange")
    await until(stage.running_now)
    north.kill()
    del stage.kinds["strange"]
    await stage.start("south", workers__lease_timeout_seconds=5, leases__on_lease_lost="pause")
    await trio.sleep(10)
    assert await stage.state(job_id) is JobState.PAUSED


async def test_lost_leases_are_ended_in_batches_as_the_settings_say(stage: Stage) -> None:
    """A full batch is followed by the next one soon, not after the interval."""
    values = {"workers__default_count": 5, "workers__lease_timeout_seconds": 5}
    north = await stage.start("north", **values)
    await stage.put("long", 5)
    await until(lambda: len(stage.running_now()) == 5)
    north.kill()
    await stage.start("south", leases__reap_batch=2, **values)
    told = "select at, count(*) from events where type = 'job.requeued' group by at order by at"
    await until(lambda: sum(count for _, count in stage.raw(told)) == 5, 30)
    batches = stage.raw(told)
    assert [count for _, count in batches] == [2, 2, 1]
    first, *_, last = (datetime.fromisoformat(at) for at, _ in batches)
    assert last - first < timedelta(seconds=0.5)


@pytest.mark.parametrize("heartbeat_seconds", [2.5, 5 / 3])
async def test_a_heartbeat_of_half_or_a_third_of_the_lease_keeps_jobs(
    stage: Stage, heartbeat_seconds: float
) -> None:
    node = await stage.start(
        leases__heartbeat_seconds=heartbeat_seconds, workers__lease_timeout_seconds=5
    )
    made: list[int] = []
    for _ in range(8):  # at all times between two heartbeats
        made += [await stage.put_one("long")]
        await trio.sleep(0.7)
    await stage.all_ended(within_seconds=130)
    assert [(await stage.job(job_id)).attempt for job_id in made] == [1] * 8
    assert not node.events.named("lease lost; job stopped here")


async def test_with_half_a_lease_as_heartbeat_work_ends_before_its_lease_does(
    stage: Stage,
) -> None:
    await stage.start(leases__heartbeat_seconds=2.5, workers__lease_timeout_seconds=5)
    job_id = await stage.put_one("slow")
    await until(lambda: stage.running_now() == [job_id])
    stage.store.broken.add("renew")
    stopped_after = await until(lambda: not stage.running_now())
    assert 4.0 <= stopped_after <= 4.8
