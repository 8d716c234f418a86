"""What becomes of a job: success, retries after their delay, failure that touches nobody else."""

import json
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest
import trio

from musterd.catalog import kinds
from musterd.catalog.kinds import JSON, Planned, WorkKind, delay_seconds
from musterd.config.settings import Jitter, Retry
from musterd.manager.node.status import verdict
from musterd.store.jobs import JobRecord
from musterd.store.leases import ClaimRequest, Settlement
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.workers import toolbox
from tests.support.history import settlements_of
from tests.support.stage import Stage, kind, until


async def run_one(stage: Stage, kind: str, **options: Any) -> JobRecord:
    """A job of this kind, from its enqueueing to its end."""
    job_id = await stage.put_one(kind, **options)
    await stage.all_ended()
    return await stage.job(job_id)


def damage_attempt(stage: Stage, job_id: int) -> None:
    """The store refuses to count it up, which a claim of the job would do."""
    stage.raw("pragma ignore_check_constraints = on")
    stage.raw(f"update job_rows set attempt = {2**63 - 1} where id = {job_id}")
    stage.raw("pragma ignore_check_constraints = off")


def outcomes(job: JobRecord) -> list[str | None]:
    return [one.outcome for one in job.attempts]


def error_type(job: JobRecord) -> str:
    assert job.error is not None
    return str(json.loads(job.error)["type"])


async def test_a_success_is_reported_with_its_times_and_its_worker(stage: Stage) -> None:
    await stage.start()
    job = await run_one(stage, "report")
    assert job.state is JobState.SUCCEEDED
    assert (job.node, job.attempt, job.result) == ("north", 1, '{"duration_ms": 200}')
    assert job.worker in (1, 2)
    assert job.started_at is not None
    assert job.finished_at is not None
    assert (job.finished_at - job.started_at).total_seconds() == pytest.approx(0.2, abs=1e-5)
    assert outcomes(job) == [AttemptOutcome.SUCCEEDED]


async def test_a_job_that_fails_first_succeeds_in_the_end(stage: Stage) -> None:
    node = await stage.start()
    job = await run_one(stage, "flaky")
    assert job.state is JobState.SUCCEEDED
    assert outcomes(job) == ["retrying", "retrying", "succeeded"]
    assert node.metric("job_retries_total", kind="flaky") == 2


async def test_an_attempt_that_will_be_retried_leaves_one_line(stage: Stage) -> None:
    node = await stage.start()
    job = await run_one(stage, "flaky")
    told = node.events.named("attempt failed")
    assert [(one["job_id"], one["kind"], one["attempt"]) for one in told] == [
        (job.id, "flaky", 1),
        (job.id, "flaky", 2),
    ]
    for one, later in zip(told, job.attempts[1:], strict=True):
        assert one["error"].startswith("planned_failure: ")
        assert later.started_at is not None
        waited = later.started_at - datetime.fromisoformat(one["next_at"])
        assert 0 <= waited.total_seconds() < 0.5, "it says when the next one is due"
    assert not node.events.named("job failed")


@pytest.mark.parametrize("jitter", ["none", "equal", "full"])
@pytest.mark.parametrize("poll_interval_ms", [250, 60_000])
async def test_a_retry_waits_its_delay_to_the_millisecond(
    stage: Stage, jitter: Jitter, poll_interval_ms: int
) -> None:
    policy = Retry(4, "exponential", 1.0, 2.0, 300.0, jitter)
    stage.kinds["again"] = kind("again", 100, outcome="fail", retryable=True, retry=policy)
    await stage.start(workers__poll_interval_ms=poll_interval_ms)
    await trio.sleep(100)
    job_id = await stage.put_one("again")
    await stage.all_ended()
    tries = (await stage.job(job_id)).attempts
    assert len(tries) == 5
    for number, (before, after) in enumerate(pairwise(tries), start=1):
        assert before.finished_at is not None
        assert after.started_at is not None
        waited = (after.started_at - before.finished_at).total_seconds()
        wanted = delay_seconds(policy, number, job_id, number)
        assert -2e-6 <= waited - wanted <= 0.002  # the store counts whole microseconds


async def test_a_retry_is_on_time_while_all_workers_but_one_are_busy(stage: Stage) -> None:
    """No hint announces a retry, and the desk's last look may be long ago."""
    await stage.start(workers__default_count=3, workers__poll_interval_ms=60_000)
    await stage.put_one("slow")
    job_id = await stage.put_one("flaky")
    await stage.all_ended()
    first, second, _ = (await stage.job(job_id)).attempts
    assert first.finished_at is not None
    assert second.started_at is not None
    assert (second.started_at - first.finished_at).total_seconds() <= 1.002


async def test_a_failure_is_final_where_the_kind_is_not_retryable(stage: Stage) -> None:
    await stage.start()
    job = await run_one(stage, "broken")
    assert job.state is JobState.FAILED
    assert outcomes(job) == ["failed"]
    assert error_type(job) == "planned_failure"


async def test_a_job_fails_once_its_attempts_are_used_up(stage: Stage) -> None:
    await stage.start()
    by_kind = await stage.put_one("stubborn")
    by_itself = await stage.put_one("stubborn", max_attempts=2)
    await stage.all_ended()
    assert outcomes(await stage.job(by_kind)) == ["retrying"] * 3 + ["failed"]
    assert outcomes(await stage.job(by_itself)) == ["retrying", "failed"]


async def test_a_kind_may_end_its_jobs_as_canceled(stage: Stage) -> None:
    await stage.start()
    job = await run_one(stage, "declined")
    assert job.state is JobState.CANCELED
    assert job.reason == "kind 'declined' ends its jobs as canceled"


async def test_an_attempt_ends_at_its_time_limit(stage: Stage) -> None:
    await stage.start()
    job = await run_one(stage, "overdue")
    assert job.state is JobState.FAILED
    assert error_type(job) == "time_limit"
    assert job.started_at is not None
    assert job.finished_at is not None
    assert (job.finished_at - job.started_at).total_seconds() == pytest.approx(1.0, abs=1e-3)


async def test_a_time_limit_is_retried_where_the_kind_is_retryable(stage: Stage) -> None:
    stage.kinds["lazy"] = kind("lazy", 3_000, time_limit_seconds=0.5, retryable=True)
    await stage.start()
    assert outcomes(await run_one(stage, "lazy", max_attempts=2)) == ["retrying", "failed"]


async def test_a_job_of_an_unknown_kind_waits_ever_longer_and_burns_no_attempt(
    stage: Stage,
) -> None:
    await stage.start()
    job_id = await stage.put_one("later", max_attempts=1)
    await trio.sleep(900)
    job = await stage.job(job_id)
    assert job.state is JobState.QUEUED
    assert job.reason == "kind 'later' is in no catalog of the node that claimed it"
    starts = [one.started_at for one in job.attempts]
    gaps = [
        round((after - before).total_seconds())
        for before, after in pairwise(starts)
        if before and after
    ]
    assert gaps == [5, 10, 20, 40, 80, 160, 300]
    assert job.attempt == job.forgiven == len(job.attempts)
    assert job.max_attempts == 1 + job.forgiven


async def test_a_job_of_an_unknown_kind_runs_where_its_kind_is_known(stage: Stage) -> None:
    await stage.start("north")
    job_id = await stage.put_one("later")
    await until(lambda: bool(settlements_of(stage.store.deeds, job_id)))
    stage.kinds["later"] = kind("later", 100)
    await stage.nodes[0].stop()
    await stage.start("south")
    await stage.all_ended()
    job = await stage.job(job_id)
    assert (job.state, job.node) == (JobState.SUCCEEDED, "south")


BAD_PAYLOADS = {
    "no JSON": "{not json",
    "a huge number": "1e999",
    "many digits": "9" * 6000,
    "too deep to read": "[" * 5_000 + "]" * 5_000,
    "NUL": '"\\u0000"',
    "a lone surrogate": '"\\ud800"',
}


@pytest.mark.parametrize("what", BAD_PAYLOADS)
async def test_a_bad_payload_fails_its_own_job_and_no_other(stage: Stage, what: str) -> None:
    good = await stage.put("varied", 3)
    stage.raw("pragma ignore_check_constraints = on")
    stage.raw(
        "insert into job_rows (kind, payload, created_at, run_at)"
        f" select 'varied', '{BAD_PAYLOADS[what]}', created_at, run_at from job_rows where id = 1"
    )
    await stage.start()
    await stage.all_ended()
    assert [await stage.state(one) for one in good] == [JobState.SUCCEEDED] * 3
    bad = await stage.job(good[-1] + 1)
    assert bad.state is JobState.FAILED
    assert error_type(bad) == "payload_invalid"
    assert outcomes(bad) == ["failed"]


@pytest.mark.parametrize("depth", [200, 400, 600, 800, 900, 950, 990, 1_200])
async def test_no_depth_of_a_payload_ends_the_daemon(stage: Stage, depth: int) -> None:
    """Between what Python parses and what the hash of a ranged duration walks through."""
    payload = "[" * depth + "]" * depth
    good = await stage.put("varied")
    stage.raw("pragma ignore_check_constraints = on")
    stage.raw(
        "insert into job_rows (kind, payload, created_at, run_at)"
        f" select 'varied', '{payload}', created_at, run_at from job_rows where id = 1"
    )
    node = await stage.start()
    await stage.all_ended()
    assert await stage.state(good[0]) is JobState.SUCCEEDED
    assert await stage.state(2) in (JobState.SUCCEEDED, JobState.FAILED)
    assert node.daemon.status().phase == "running"


async def test_a_row_with_more_forgiven_than_claimed_fails_only_itself(stage: Stage) -> None:
    good = await stage.put("report")
    odd = await stage.put("stubborn", max_attempts=3)
    stage.raw(f"update job_rows set forgiven = 7 where id = {odd[0]}")
    node = await stage.start()
    await stage.all_ended()
    assert await stage.state(good[0]) is JobState.SUCCEEDED
    assert await stage.state(odd[0]) is JobState.FAILED
    assert node.daemon.status().phase == "running"


async def test_a_result_that_cannot_be_stored_fails_its_own_job_and_no_other(
    stage: Stage,
) -> None:
    await stage.start(workers__default_count=8)
    ids = await stage.put("report", 8)
    culprit = ids[3]
    stage.store.refuses = lambda one: one.id == culprit and one.result is not None
    await stage.all_ended()
    states = {one: await stage.state(one) for one in ids}
    assert states.pop(culprit) is JobState.FAILED
    assert set(states.values()) == {JobState.SUCCEEDED}
    assert error_type(await stage.job(culprit)) == "result_invalid"
    assert {len((await stage.job(one)).attempts) for one in ids} == {1}


async def test_a_good_end_is_not_made_a_failure_by_a_claim_that_is_refused(stage: Stage) -> None:
    """Both travel in one visit. A row that cannot be claimed is the fault of no end."""
    node = await stage.start(workers__default_count=1)
    good = await stage.put_one("report")
    await until(lambda: node.daemon.status().busy == 1)
    bad = await stage.put_one("report")
    damage_attempt(stage, bad)
    await trio.sleep(5)
    assert await stage.state(good) is JobState.SUCCEEDED


async def test_a_fault_of_ours_in_an_attempt_costs_that_attempt(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the daemon nor the next one ends over it."""
    stage.kinds["odd"] = kind("odd", 1, retryable=True)
    planned = kinds.plan

    def plan(kind: WorkKind, payload: JSON, attempt: int) -> Planned:
        if kind.name == "odd":
            raise KeyError("a fault of ours")
        return planned(kind, payload, attempt)

    monkeypatch.setattr(toolbox, "plan", plan)
    node = await stage.start()
    culprit, good = await stage.put_one("odd", max_attempts=2), await stage.put_one("report")
    await stage.all_ended()
    assert await stage.state(good) is JobState.SUCCEEDED
    job = await stage.job(culprit)
    assert (job.state, outcomes(job)) == (JobState.FAILED, ["retrying", "failed"])
    assert error_type(job) == "internal_error"
    assert node.daemon.status().phase == "running"
    assert node.metric("faults_contained_total", where="attempt") == 2


async def test_a_fault_of_ours_while_an_attempt_is_cancelled_gives_its_job_back(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it was cancelled for still happens, at once, and the fault is told of."""

    async def run(_runner: object, _assignment: object) -> None:
        async def ends_badly() -> None:
            try:
                await trio.sleep_forever()
            finally:
                raise KeyError("a fault of ours")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ends_badly)
            nursery.start_soon(trio.sleep_forever)

    monkeypatch.setattr(toolbox.DeterministicRunner, "run", run)
    node = await stage.start(shutdown__grace_period_seconds=1)
    job_id = await stage.put_one("long")
    await until(stage.running_now)
    await node.stop()
    job = await stage.job(job_id)
    assert (job.state, outcomes(job)) == (JobState.QUEUED, ["released"])
    assert node.metric("faults_contained_total", where="attempt") == 1


async def test_an_end_that_cannot_be_stored_at_all_costs_its_job_alone(stage: Stage) -> None:
    """Nothing can be written about it: its lease runs out, and it is reaped until it has failed."""
    node = await stage.start(workers__lease_timeout_seconds=3)
    ids = await stage.put("report", 4)
    culprit = ids[1]
    stage.store.refuses = lambda one: one.id == culprit
    await stage.all_ended()
    assert node.daemon.status().phase == "running"
    states = {one: await stage.state(one) for one in ids}
    assert states.pop(culprit) is JobState.FAILED
    assert set(states.values()) == {JobState.SUCCEEDED}
    assert error_type(await stage.job(culprit)) == "lease_lost"


async def test_a_row_that_no_claim_can_take_fails_alone(stage: Stage) -> None:
    """An attempt counter at its end cannot be counted up: that stopped all claims."""
    node = await stage.start()
    bad, good = await stage.put("report", 2, delay_seconds=1)
    damage_attempt(stage, bad)
    await stage.all_ended()
    assert await stage.state(good) is JobState.SUCCEEDED
    assert await stage.state(bad) is JobState.FAILED
    assert error_type(await stage.job(bad)) == "row_damaged"
    (told,) = node.events.named("job failed")
    assert told["job_id"] == bad
    assert "attempt is 9223372036854775807" in str(told["error"])
    assert node.daemon.status().store_trouble is None
    assert (
        node.metric("jobs_finished_total", tenant="default", kind="report", outcome="failed") == 1
    )


async def test_a_claim_that_the_store_refuses_is_not_asked_for_without_a_pause(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nobody finds the row that it is refused for."""

    async def none(_refused: ClaimRequest) -> list[Settlement]:
        await trio.lowlevel.checkpoint()
        return []

    node = await stage.start()
    monkeypatch.setattr(stage.store.engine.leases, "set_aside", none)
    job_id = await stage.put_one("report", delay_seconds=1)
    damage_attempt(stage, job_id)
    await trio.sleep(1)
    await until(lambda: node.daemon.status().store_trouble == "unclaimable")
    assert verdict(node.daemon.status())[0] is False
    before = stage.store.calls["claim"]
    with trio.move_on_after(20):
        await until(lambda: stage.store.calls["claim"] - before > 100)
    assert stage.store.calls["claim"] - before <= 100
    stage.raw(f"update job_rows set attempt = 0 where id = {job_id}")
    await stage.all_ended()
    await until(lambda: node.daemon.status().store_trouble is None)


async def test_a_budget_at_its_end_does_not_end_the_daemon(stage: Stage) -> None:
    """An attempt that burns none raises the job's budget, which may be as large as it gets."""
    node = await stage.start()
    job_id = await stage.put_one("later", max_attempts=2**63 - 1)
    await stage.all_ended()
    assert await stage.state(job_id) is JobState.FAILED
    assert node.daemon.status().phase == "running"
