"""The files under docs/designs do what their designs say, to the second, as they are: nothing in
them is changed for these tests.
"""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise

import pytest
import trio

from musterd.catalog.load import catalog_of
from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.manager.duties.duty import DUTIES
from musterd.store.lifecycle import Action, JobState
from tests.support.cluster import Cluster
from tests.support.pages import DOCS
from tests.support.stage import Node, Stage, kind, settings_with, until
from tests.support.stage_idle_scan import wall_clock

LEASE_SECONDS = 30.0
WATCH_SECONDS = 0.05
LEASE_CALLS = ("duties_look", "duties_take", "duties_renew", "duties_release")


async def follow(stage: Stage, name: str) -> None:
    """Nodes to come have the settings and the catalog of this file, and the tenants it names."""
    stage.config_file = DOCS / "designs" / name
    settings = settings_with(stage.config_file)
    stage.kinds = dict(catalog_of(settings, {}))
    await stage.add_tenants(*(set(settings.tenants) - {DEFAULT_TENANT}))


def is_busy(node: Node) -> bool:
    return any(one.job_id is not None for one in node.workers)


def held(node: Node) -> set[str]:
    return {duty for duty in DUTIES if node.tenancy().duties.holds(duty)}


async def reaped(stage: Stage, job_id: int) -> None:
    """Until its first attempt has ended."""
    with trio.fail_after(2 * LEASE_SECONDS):
        while (await stage.job(job_id)).attempts[0].outcome is None:  # noqa: ASYNC110 - only asking tells
            await trio.sleep(WATCH_SECONDS)


# -- design 0


async def test_0_crews_are_fixed_for_each_tenant(stage: Stage) -> None:
    await follow(stage, "0-targets.toml")
    node = await stage.start()
    await stage.put("slow", 20)
    await stage.put("slow", 20, tenant="acme")
    for _ in range(60):
        await trio.sleep(1)
        assert (node.tenancy().status().size, node.tenancy("acme").status().size) == (2, 1)


async def test_0_the_oldest_job_goes_first_and_none_is_claimed_before_a_worker_is_idle(
    stage: Stage,
) -> None:
    await follow(stage, "0-targets.toml")
    await stage.start()
    ids = await stage.put("report", 30)
    while await stage.unended():
        assert not await stage.jobs(JobState.ASSIGNED)
        await trio.sleep(WATCH_SECONDS)
    jobs = [await stage.job(one) for one in ids]
    starts = [job.started_at for job in jobs if job.started_at is not None]
    assert len(starts) == 30
    assert starts == sorted(starts)


async def test_0_the_grace_period_ends_with_paused_jobs(stage: Stage) -> None:
    await follow(stage, "0-targets.toml")
    stage.kinds["endless"] = kind("endless", 3_600_000)
    node = await stage.start()
    quick, endless = await stage.put_one("slow"), await stage.put_one("endless", target="shop")
    behind = await stage.put_one("noop", target="shop")
    await until(lambda: len(stage.running_now()) == 2)
    before = trio.current_time()
    await node.stop()
    assert 300 <= trio.current_time() - before <= 300.5
    assert await stage.state(quick) is JobState.SUCCEEDED
    job = await stage.job(endless)
    assert (job.state, job.reason) == (JobState.PAUSED, "Job was interrupted by user")
    await stage.start("south")
    await trio.sleep(60)
    assert await stage.state(behind) is JobState.QUEUED
    await stage.store.control.apply(Action.CANCEL, endless)
    await stage.all_ended()
    assert await stage.state(behind) is JobState.SUCCEEDED


async def test_0_a_request_is_seen_by_the_next_heartbeat_at_the_latest(stage: Stage) -> None:
    """Also where nobody hears the notification; and resuming begins with a clean slate."""
    await follow(stage, "0-targets.toml")
    await stage.start()
    job_id = await stage.put_one("slow")
    await until(stage.running_now)
    stage.store.deaf = True
    await stage.store.control.apply(Action.PAUSE, job_id)
    assert await until(lambda: not stage.running_now()) <= 2.1
    job = await stage.job(job_id)
    assert (job.state, job.reason) == (JobState.PAUSED, "Job was interrupted by user")
    await stage.store.control.apply(Action.RESUME, job_id)
    await stage.all_ended()
    job = await stage.job(job_id)
    assert (job.state, job.request) == (JobState.SUCCEEDED, None)


async def test_0_a_lost_lease_is_an_error_that_halts_its_target(cluster: Cluster) -> None:
    await follow(cluster, "0-targets.toml")
    (north,) = await cluster.join(1)
    job_id = await cluster.put_one("slow", target="shop", max_attempts=5)  # which it does not get
    behind = await cluster.put_one("noop", target="shop")
    await until(cluster.running_now)
    killed = trio.current_time()
    await cluster.kill(north)
    await cluster.join(1)
    await reaped(cluster, job_id)
    assert LEASE_SECONDS - 2 <= trio.current_time() - killed <= LEASE_SECONDS + 2
    job = await cluster.job(job_id)
    assert job.state is JobState.FAILED
    assert '"lease_lost"' in (job.error or "")
    await trio.sleep(60)
    assert await cluster.state(behind) is JobState.QUEUED
    await cluster.store.control.apply(Action.RESUME, job_id)
    await cluster.all_ended()
    assert [await cluster.state(one) for one in (job_id, behind)] == [JobState.SUCCEEDED] * 2


async def test_0_an_exception_is_an_error_even_of_a_kind_that_is_retryable(stage: Stage) -> None:
    await follow(stage, "0-targets.toml")
    await stage.start()
    job_id = await stage.put_one("flaky", target="shop")
    behind = await stage.put_one("noop", target="shop")
    await trio.sleep(60)
    job = await stage.job(job_id)
    assert (job.state, job.attempt) == (JobState.FAILED, 1)
    assert await stage.state(behind) is JobState.QUEUED


# -- design 1


async def test_1_a_claim_leads_from_queued_to_running(cluster: Cluster) -> None:
    await follow(cluster, "1-work-queue.toml")
    cluster.kinds["brief"] = kind("brief", 10)
    await cluster.join(1)
    await cluster.put("brief", 300)
    while await cluster.unended():
        assert not await cluster.jobs(JobState.ASSIGNED)
        await trio.sleep(0.004)


async def test_1_no_more_than_w_jobs_are_in_hand_and_w_are(cluster: Cluster) -> None:
    await follow(cluster, "1-work-queue.toml")
    await cluster.join(3)
    await cluster.put("report", 60)
    most = 0
    while await cluster.unended():
        in_hand = len(await cluster.jobs(JobState.RUNNING, JobState.ASSIGNED))
        assert in_hand <= 4
        most = max(most, in_hand)
        await trio.sleep(WATCH_SECONDS)
    assert most == 4


async def test_1_expired_leases_go_back_to_the_queue_however_often(cluster: Cluster) -> None:
    """Of a kind that is not retryable. What its workers die of does not count as a failure."""
    await follow(cluster, "1-work-queue.toml")
    job_id = await cluster.put_one("slow")
    for _ in range(6):
        (node,) = await cluster.join(1)
        await until(cluster.running_now, LEASE_SECONDS + 2)
        await cluster.kill(node)
    await cluster.join(1)
    await cluster.all_ended()
    job = await cluster.job(job_id)
    assert [one.outcome for one in job.attempts] == ["lost"] * 6 + ["succeeded"]
    assert (job.state, job.lease_expires_at) == (JobState.SUCCEEDED, None)


@pytest.mark.parametrize("heartbeat_seconds", [10, 15])
async def test_1_a_lease_is_kept_by_heartbeats_of_a_third_to_a_half_of_it(
    cluster: Cluster, heartbeat_seconds: int
) -> None:
    await follow(cluster, "1-work-queue.toml")
    cluster.kinds["minutes"] = kind("minutes", 100_000)
    assert settings_with(cluster.config_file).leases.heartbeat_seconds == 10  # as the file says
    await cluster.join(2, leases__heartbeat_seconds=heartbeat_seconds)
    job_id = await cluster.put_one("minutes")
    await trio.sleep(1)
    beats: set[datetime] = set()
    while (job := await cluster.job(job_id)).state is JobState.RUNNING:
        if job.heartbeat_at is not None:
            beats.add(job.heartbeat_at)
        await trio.sleep(0.5)
    gaps = [(after - before).total_seconds() for before, after in pairwise(sorted(beats))]
    assert gaps == [pytest.approx(heartbeat_seconds, abs=0.1)] * len(gaps)
    assert len(gaps) >= 6
    assert job.attempt == 1


async def test_1_a_failure_is_terminal_unless_its_kind_says_retryable(cluster: Cluster) -> None:
    await follow(cluster, "1-work-queue.toml")
    await cluster.join(1)
    final, again = await cluster.put_one("broken"), await cluster.put_one("flaky")
    await cluster.all_ended()
    assert (await cluster.job(final)).attempt == 1
    assert (await cluster.job(again)).attempt == 3


async def test_1_an_owner_whose_lease_is_gone_stops_and_changes_nothing(cluster: Cluster) -> None:
    await follow(cluster, "1-work-queue.toml")
    cluster.kinds["minutes"] = kind("minutes", 100_000)
    nodes = await cluster.join(2)
    job_id = await cluster.put_one("minutes")
    await until(cluster.running_now)
    owner = next(node for node in nodes if is_busy(node))
    cluster.cut(owner)
    began = trio.current_time()
    await until(lambda: not is_busy(owner), LEASE_SECONDS)
    stopped = trio.current_time() - began
    await reaped(cluster, job_id)
    assert stopped < trio.current_time() - began <= LEASE_SECONDS + 2
    cluster.heal(owner)
    await cluster.all_ended(within_seconds=200)
    job = await cluster.job(job_id)
    assert [one.outcome for one in job.attempts] == ["lost", "succeeded"]


# -- design 2


async def test_2_what_was_in_hand_when_the_process_died_has_failed(stage: Stage) -> None:
    await follow(stage, "2-lifecycle.toml")
    node = await stage.start()
    job_id = await stage.put_one("slow")
    await until(stage.running_now)
    node.kill()
    await node.ended.wait()
    await stage.start("again")
    await trio.sleep(LEASE_SECONDS + 2)
    job = await stage.job(job_id)
    assert job.state is JobState.FAILED
    assert '"lease_lost"' in (job.error or "")


async def test_2_max_attempts_includes_the_first_and_a_retry_is_put_off(stage: Stage) -> None:
    await follow(stage, "2-lifecycle.toml")
    await stage.start()
    job_id = await stage.put_one("recoverable")
    await stage.all_ended()
    job = await stage.job(job_id)
    starts = [one.started_at for one in job.attempts if one.started_at is not None]
    waits = [(after - before).total_seconds() for before, after in pairwise(starts)]
    assert waits == [pytest.approx(1, abs=0.3), pytest.approx(2, abs=0.3)]
    assert [one.outcome for one in job.attempts] == ["retrying", "retrying", "failed"]


# -- design 3


async def test_3_each_decision_is_the_depth_of_the_queue_within_its_bounds(stage: Stage) -> None:
    await follow(stage, "3-depth.toml")
    node = await stage.start()
    for count in (1, 5, 40, 3):
        await stage.put("report", count)
        await trio.sleep(3.3)
    await stage.put("slow", 12)
    await stage.all_ended()
    await trio.sleep(2)
    decisions = node.journal
    assert len({one.raw_wish for one in decisions}) >= 4
    for one in decisions:
        assert one.raw_wish == one.due
        assert one.desired == min(max(one.due or 0, 2), 8)
        assert one.limited_by in (None, "min", "max", "busy")
    assert (max(one.desired for one in decisions), decisions[-1].desired) == (8, 2)


async def test_3_a_crew_grows_with_each_decision(stage: Stage) -> None:
    await follow(stage, "3-depth.toml")
    stage.kinds["minutes"] = kind("minutes", 100_000)
    node = await stage.start()
    for count, size in ((5, 3), (2, 4), (30, 8)):
        await stage.put("minutes", count)
        await trio.sleep(1.05)
        assert node.size == size


async def test_3_a_crew_shrinks_with_the_next_decision(stage: Stage) -> None:
    await follow(stage, "3-depth.toml")
    node = await stage.start()
    await stage.put("report", 100)
    await until(lambda: node.size == 8)
    await stage.all_ended()
    assert await until(lambda: node.size == 2) <= 1.1


# -- design 4


async def test_4_everyone_does_everything_and_nobody_has_to_take_over(cluster: Cluster) -> None:
    """Approach 1. A node that dies leaves no gap: whoever is alive ends its leases."""
    await follow(cluster, "4-everyone.toml")
    nodes = await cluster.join(3)
    await trio.sleep(70)
    for node in nodes:
        for duty in set(DUTIES) - {"schedules"}:
            assert node.metric("duty_runs_total", duty=duty, result="ok", tenant="default") > 0, (
                duty
            )
    assert cluster.raw("select count(*) from duties where term is not null") == [(0,)]
    job_id = await cluster.put_one("slow")
    await until(cluster.running_now)
    victim = next(node for node in nodes if is_busy(node))
    await cluster.kill(victim)
    killed = trio.current_time()
    await reaped(cluster, job_id)
    assert trio.current_time() - killed <= LEASE_SECONDS + 2


async def test_4_all_nodes_take_batches_and_none_does_a_row_twice(cluster: Cluster) -> None:
    """Approach 3: more nodes are quicker, and the work of one that dies is done by the others."""
    await follow(cluster, "4-stealing.toml")
    alone = await seconds_to_mark(cluster, nodes=1)
    together = await seconds_to_mark(cluster, nodes=3)
    assert together < 0.6 * alone
    await cluster.put("noop", 1000)
    await cluster.all_ended()
    await cluster.kill(cluster.alive[0])
    await until(lambda: marked(cluster) == 3000, 30)
    told = "select count(*), count(distinct job_id) from events where type = 'job.stale'"
    assert cluster.raw(told) == [(3000, 3000)]


async def seconds_to_mark(cluster: Cluster, *, nodes: int) -> float:
    """How long so many nodes take for a thousand jobs, in batches of a hundred."""
    await cluster.join(nodes - len(cluster.alive), retention__stale_after_hours=10 / 3600)
    cluster.lag(0)
    before = marked(cluster)
    await cluster.put("noop", 1000)
    await cluster.all_ended()
    cluster.lag(0.2)
    await until(lambda: marked(cluster) > before)
    return await until(lambda: marked(cluster) == before + 1000, 60)


def marked(cluster: Cluster) -> int:
    ((count,),) = cluster.raw("select count(*) from job_rows where stale_at is not null")
    return int(count)


async def test_4_one_node_leads_and_is_replaced_in_ten_seconds(cluster: Cluster) -> None:
    """Approach 4: its lease, its heartbeat, its hand-over, whatever the number of nodes."""
    await follow(cluster, "4-leader.toml")
    nodes = await cluster.join(10, 0.23)
    await trio.sleep(60)
    leads = [duty for node in nodes for duty in held(node)]
    assert sorted(leads) == sorted(set(DUTIES) - {"schedules"})
    leader = next(node for node in nodes if "reaping" in held(node))
    await cluster.kill(leader)
    seconds = await until(lambda: has_leader(cluster.alive), 20)
    assert 10 - 2 <= seconds <= 10 + 5
    graceful = next(node for node in cluster.alive if "reaping" in held(node))
    graceful.daemon.stop()
    others = [node for node in cluster.alive if node is not graceful]
    assert await until(lambda: has_leader(others)) <= 5


async def test_4_a_delay_ends_in_time_whoever_leads_and_holds_no_worker(cluster: Cluster) -> None:
    await follow(cluster, "4-leader.toml")
    await cluster.join(3, 0.23)
    await trio.sleep(20)
    job_id = await cluster.put_one("parcel")
    await trio.sleep(1)
    assert not cluster.running_now()
    job = await cluster.job(job_id)
    assert [phase.name for phase in job.phases if phase.state == "succeeded"] == ["pack", "wait"]
    for node in cluster.alive[:-1]:
        await cluster.kill(node)
    (left,) = cluster.alive
    await until(lambda: is_busy(left), 70)
    assert (await cluster.job(job_id)).run_at.timestamp() == pytest.approx(wall_clock(), abs=0.3)
    await cluster.all_ended()
    assert await cluster.state(job_id) is JobState.SUCCEEDED


async def test_4_with_rotation_all_nodes_lead_in_turn(cluster: Cluster) -> None:
    await follow(cluster, "4-leader.toml")
    nodes = await cluster.join(4, 0.23, duties__rotate_seconds=60)
    led: set[str] = set()
    for _ in range(600):
        await trio.sleep(1)
        led |= {node.name for node in nodes if "reaping" in held(node)}
    assert led == {node.name for node in nodes}


async def test_4_leases_cost_less_than_five_statements_a_second(cluster: Cluster) -> None:
    await follow(cluster, "4-leader.toml")
    await cluster.join(20, 0.23)
    await trio.sleep(60)
    before = statements_about_leases(cluster)
    await trio.sleep(60)
    assert 0 < statements_about_leases(cluster) - before < 5 * 60


def statements_about_leases(cluster: Cluster) -> int:
    return sum(line.calls[call] for line in cluster.lines.values() for call in LEASE_CALLS)


def has_leader(nodes: list[Node]) -> bool:
    return any("reaping" in held(node) for node in nodes)
