"""Reaping: leases that ran out are ended by the rules of their kinds, so many at a time."""

import json
import re

import pytest

from musterd.store.jobs import NewJob
from musterd.store.leases import ReapRequest, ReapRule
from musterd.store.lifecycle import AttemptOutcome, JobState
from tests.contract.job_tools import ending, look, put, reap_by, settle, take, take_one
from tests.contract.rigs import LEASE_SECONDS, Rig


async def reap_all(rig: Rig, request: ReapRequest) -> dict[int, JobState]:
    rig.pass_time(LEASE_SECONDS + 1)
    return {one.id: one.state for one in await rig.engine.leases.reap(request)}


async def test_a_lease_that_has_not_run_out_is_left_alone(rig: Rig) -> None:
    await put(rig.engine, 0)
    await take_one(rig.engine)
    rig.pass_time(LEASE_SECONDS - 2)
    assert await rig.engine.leases.reap(reap_by("fail")) == []


async def test_a_requeued_job_keeps_its_due_time_and_its_attempt_is_lost(rig: Rig) -> None:
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    rig.pass_time(LEASE_SECONDS + 1)
    run_at = (await look(rig, claim.id)).run_at
    (reaped,) = await rig.engine.leases.reap(reap_by("requeue"))
    assert (reaped.id, reaped.kind, reaped.attempt) == (claim.id, "report", 1)
    assert (reaped.node, reaped.state) == ("north", JobState.QUEUED)
    record = await look(rig, claim.id)
    assert (record.state, record.run_at, record.forgiven) == (JobState.QUEUED, run_at, 0)
    assert (record.lease_expires_at, record.heartbeat_at) == (None, None)
    (attempt,) = record.attempts
    assert (attempt.outcome, attempt.worker) == (AttemptOutcome.LOST, 1)
    assert attempt.finished_at is not None


async def test_a_job_may_fail_with_its_lease(rig: Rig) -> None:
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    assert await reap_all(rig, reap_by("fail")) == {claim.id: JobState.FAILED}
    record = await look(rig, claim.id)
    error = json.loads(record.error or "")
    assert error["type"] == "lease_lost"
    assert "north" in error["message"]
    assert "attempt 1" in error["message"]
    assert re.search(r"ran out at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$", error["message"])
    assert record.finished_at is not None
    assert record.attempts[-1].outcome is AttemptOutcome.LOST
    assert json.loads(record.attempts[-1].error or "") == error


async def test_a_job_may_pause_with_its_lease(rig: Rig) -> None:
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    assert await reap_all(rig, reap_by("pause")) == {claim.id: JobState.PAUSED}
    record = await look(rig, claim.id)
    assert record.reason
    assert record.attempts[-1].outcome is AttemptOutcome.LOST


async def test_what_was_only_assigned_is_reaped_too(rig: Rig) -> None:
    await put(rig.engine, 0)
    (claim,) = await take(rig.engine, workers=0, ahead=1)
    assert await reap_all(rig, reap_by("requeue")) == {claim.id: JobState.QUEUED}


@pytest.mark.parametrize("on_lease_lost", ["requeue", "pause", "fail"])
async def test_a_job_whose_attempts_are_used_up_fails_whatever_the_rule(
    rig: Rig, on_lease_lost: str
) -> None:
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    assert await reap_all(rig, reap_by(on_lease_lost, max_attempts=1)) == {
        claim.id: JobState.FAILED
    }


async def test_the_jobs_own_budget_goes_before_that_of_its_kind(rig: Rig) -> None:
    less, more = await rig.engine.jobs.enqueue(
        [NewJob("a", max_attempts=1), NewJob("a", max_attempts=2)]
    )
    await take(rig.engine, workers=2)
    assert await reap_all(rig, reap_by("requeue", 10)) == {
        less: JobState.FAILED,
        more: JobState.QUEUED,
    }
    await take_one(rig.engine)
    assert await reap_all(rig, reap_by("requeue", 10)) == {more: JobState.FAILED}


async def test_what_was_forgiven_is_not_held_against_a_job(rig: Rig) -> None:
    await put(rig.engine, 0)
    for _ in range(3):
        claim = await take_one(rig.engine)
        await settle(rig.engine, ending(claim, JobState.QUEUED, forgive=True))
    claim = await take_one(rig.engine)
    assert await reap_all(rig, reap_by("requeue", 2)) == {claim.id: JobState.QUEUED}
    await take_one(rig.engine)
    assert await reap_all(rig, reap_by("requeue", 2)) == {claim.id: JobState.FAILED}


async def test_each_kind_has_its_rule_and_unknown_ones_the_default(rig: Rig) -> None:
    made = await rig.engine.jobs.enqueue([NewJob("a"), NewJob("b"), NewJob("c")])
    await take(rig.engine, workers=3)
    rules = {"a": ReapRule("fail", 9), "b": ReapRule("requeue", 9), "x": ReapRule("fail", 1)}
    ended = await reap_all(rig, ReapRequest(rules, ReapRule("pause", 9), 100))
    assert ended == dict(
        zip(made, (JobState.FAILED, JobState.QUEUED, JobState.PAUSED), strict=True)
    )


async def test_a_reap_ends_no_more_than_its_batch(rig: Rig) -> None:
    await put(rig.engine, *[0] * 7)
    await take(rig.engine, workers=7)
    rig.pass_time(LEASE_SECONDS + 1)
    sizes = [len(await rig.engine.leases.reap(reap_by("requeue", batch=3))) for _ in range(4)]
    assert sizes == [3, 3, 1, 0]


async def test_nor_with_targets_among_them(rig: Rig) -> None:
    jobs = [NewJob("a"), NewJob("a"), *(NewJob("a", target=name) for name in "xyz")]
    await rig.engine.jobs.enqueue(jobs)
    await take(rig.engine, workers=5)
    rig.pass_time(LEASE_SECONDS + 1)
    sizes = [len(await rig.engine.leases.reap(reap_by("requeue", batch=3))) for _ in range(3)]
    assert sizes == [3, 2, 0]


async def test_a_paused_or_ended_job_has_no_lease_to_lose(rig: Rig) -> None:
    await put(rig.engine, 0, 0)
    first, second = await take(rig.engine, workers=2)
    await settle(rig.engine, ending(first), ending(second, JobState.PAUSED))
    assert await reap_all(rig, reap_by("fail")) == {}


async def test_a_job_that_loses_every_lease_ends_with_all_its_attempts_listed(rig: Rig) -> None:
    (job_id,) = await put(rig.engine, 0)
    for _ in range(4):
        await take_one(rig.engine)
        await reap_all(rig, reap_by("requeue", 4))
    record = await look(rig, job_id)
    assert record.state is JobState.FAILED
    assert [one.attempt for one in record.attempts] == [1, 2, 3, 4]
    assert {one.outcome for one in record.attempts} == {AttemptOutcome.LOST}
    assert await take(rig.engine) == []
