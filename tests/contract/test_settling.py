"""Settlements: what they write, whom they refuse, how they are read back."""

import json
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from musterd.store.errors import InputRefused
from musterd.store.jobs import JobFilter, JobRecord, NewJob
from musterd.store.leases import Claim, Ends, Successes
from musterd.store.lifecycle import AttemptOutcome, JobState
from tests.contract.job_tools import ending, ids, moment_of, put, settle, state_of, take, take_one
from tests.contract.rigs import Rig
from tests.contract.target_tools import put_target, take_all

ERROR = '{"type": "Boom", "message": "it broke"}'


async def look(rig: Rig, job_id: int) -> JobRecord:
    record = await rig.engine.jobs.get(job_id)
    assert record is not None
    return record


def near(found: datetime | None, wanted: datetime | None) -> bool:
    assert found is not None
    assert wanted is not None
    return abs(found - wanted) < timedelta(seconds=2)


@pytest.mark.parametrize(
    "state", [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED, JobState.PAUSED]
)
async def test_an_end_is_written_whole(rig: Rig, state: JobState) -> None:
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    error = None if state is JobState.SUCCEEDED else ERROR
    visit = await settle(rig.engine, ending(claim, state, result="[1]", error=error, reason="so"))
    assert (visit.rejected, visit.claims) == (frozenset(), [])
    record = await look(rig, claim.id)
    assert (record.state, record.result, record.reason) == (state, "[1]", "so")
    assert (record.error is None) is (error is None)
    assert (record.lease_expires_at, record.heartbeat_at) == (None, None)
    (attempt,) = record.attempts
    assert attempt.outcome is not None
    assert (attempt.attempt, attempt.node, attempt.worker) == (1, "north", 1)
    assert attempt.outcome.value == state.value
    assert attempt.error == record.error


async def end_in_any_way(rig: Rig, way: str, claim: Claim, started: float, ended: float) -> None:
    """`started`, `ended`: seconds since the claim."""
    start, end = claim.claimed_epoch + started, claim.claimed_epoch + ended
    if way == "plain success":
        ends = Successes.of([claim], [1], [start], [end], [None], [ended - started])
        await rig.engine.leases.exchange(Ends(successes=ends), None)
        return
    state = JobState.QUEUED if way == "retry" else JobState.FAILED
    await settle(rig.engine, ending(claim, state, started_epoch=start, ended_epoch=end))


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("way", ["plain success", "failure", "retry"])
async def test_an_attempt_began_and_ended_when_its_node_says(
    rig: Rig, way: str, ahead: bool
) -> None:
    """Whatever the claim has written of its start, and to the microsecond."""
    await put(rig.engine, 0)
    (claim,) = await take(rig.engine, workers=not ahead, ahead=ahead)
    await end_in_any_way(rig, way, claim, 0.123456, 2.654321)
    (attempt,) = (await look(rig, claim.id)).attempts
    assert attempt.started_at == moment_of(claim.claimed_epoch + 0.123456)
    assert attempt.finished_at == moment_of(claim.claimed_epoch + 2.654321)


@pytest.mark.parametrize("ahead", [False, True])
async def test_a_claim_says_when_it_was_made(rig: Rig, ahead: bool) -> None:
    """Never before its jobs: their clock may have been put back."""
    await put(rig.engine, 0)
    (claim,) = await take(rig.engine, workers=not ahead, ahead=ahead)
    record = await look(rig, claim.id)
    assert moment_of(claim.claimed_epoch) == record.heartbeat_at
    (again,) = await rig.engine.leases.claims_under(claim.token)
    assert again.claimed_epoch == claim.claimed_epoch
    await settle(rig.engine, ending(claim, JobState.QUEUED, delay_seconds=-3600))
    made_at = claim.claimed_epoch + 1000
    rig.raw(SET_CREATED[rig.table].format(made_at))
    (claim,) = await take(rig.engine, workers=not ahead, ahead=ahead)
    assert claim.claimed_epoch == pytest.approx(made_at, abs=1e-6)
    (again,) = await rig.engine.leases.claims_under(claim.token)
    assert again.claimed_epoch == claim.claimed_epoch


SET_CREATED = {
    # Refused otherwise: no row made by hand may put starts off.
    "live_jobs": "set session_replication_role = replica;"
    " update job_rows set created_at = to_timestamp({})",
    "job_rows": "update job_rows set created_at = round({} * 1e6)",
}


async def test_a_start_that_nobody_told_is_as_the_claim_wrote_it(rig: Rig) -> None:
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    await settle(rig.engine, ending(claim, JobState.QUEUED, started_epoch=None))
    (attempt,) = (await look(rig, claim.id)).attempts
    assert attempt.started_at == moment_of(claim.claimed_epoch)


async def test_a_job_that_never_started_may_end(rig: Rig) -> None:
    await put(rig.engine, 0)
    (claim,) = await take(rig.engine, workers=0, ahead=1)
    await settle(rig.engine, ending(claim, JobState.FAILED, started_epoch=None, error=ERROR))
    record = await look(rig, claim.id)
    assert (record.state, record.started_at) == (JobState.FAILED, None)


async def test_a_retry_waits_its_delay_and_leaves_its_attempt_in_the_history(rig: Rig) -> None:
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    before = await look(rig, claim.id)
    await settle(rig.engine, ending(claim, JobState.QUEUED, delay_seconds=60, error=ERROR))
    record = await look(rig, claim.id)
    assert record.state is JobState.QUEUED
    assert near(record.run_at, before.run_at + timedelta(seconds=60))
    assert json.loads(record.error or "") == json.loads(ERROR)
    (attempt,) = record.attempts
    assert (attempt.attempt, attempt.outcome) == (1, AttemptOutcome.RETRYING)
    assert json.loads(attempt.error or "") == json.loads(ERROR)
    assert await take(rig.engine) == []
    rig.pass_time(61)
    (again,) = await take(rig.engine)
    assert (again.id, again.attempt) == (claim.id, 2)


async def test_without_a_delay_a_job_keeps_its_due_time(rig: Rig) -> None:
    await put(rig.engine, 0)
    run_at = (await rig.engine.jobs.find(JobFilter()))[0].run_at
    claim = await take_one(rig.engine)
    await settle(rig.engine, ending(claim, JobState.QUEUED, AttemptOutcome.RELEASED))
    assert (await look(rig, claim.id)).run_at == run_at


async def test_what_comes_back_stands_where_it_stood(rig: Rig) -> None:
    await put(rig.engine, 0, 5)
    (targeted,) = await put_target(rig.engine, 7)
    urgent, first, second = await take_all(rig.engine, workers=3)
    assert (urgent.id, first.id, second.id) == (targeted, 2, 1)
    await settle(rig.engine, *(ending(each, JobState.QUEUED) for each in (second, urgent, first)))
    assert rig.faults() == []
    assert ids(await take_all(rig.engine, workers=3)) == [targeted, 2, 1]


async def test_many_come_back_at_once_in_their_order(rig: Rig) -> None:
    made = await rig.engine.jobs.enqueue([NewJob("report")] * 200)
    claims = await take(rig.engine, workers=200)
    back = [ending(each, JobState.QUEUED, AttemptOutcome.RELEASED) for each in claims]
    assert (await settle(rig.engine, *back)).rejected == frozenset()
    assert ids(await take(rig.engine, workers=200)) == made


async def test_every_attempt_is_listed_in_order_the_current_one_last(rig: Rig) -> None:
    await put(rig.engine, 0)
    for outcome in (AttemptOutcome.RETRYING, AttemptOutcome.SNOOZED, AttemptOutcome.RELEASED):
        claim = await take_one(rig.engine, node=outcome.value)
        await settle(rig.engine, ending(claim, JobState.QUEUED, outcome))
    claim = await take_one(rig.engine)
    attempts = (await look(rig, claim.id)).attempts
    assert [(one.attempt, one.outcome) for one in attempts] == [
        (1, AttemptOutcome.RETRYING),
        (2, AttemptOutcome.SNOOZED),
        (3, AttemptOutcome.RELEASED),
        (4, None),
    ]
    assert [one.node for one in attempts] == ["retrying", "snoozed", "released", "north"]
    assert (attempts[3].finished_at, attempts[3].error) == (None, None)
    assert all(one.finished_at is not None for one in attempts[:3])


async def test_an_attempt_under_way_does_not_show_the_error_before_it(rig: Rig) -> None:
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    await settle(rig.engine, ending(claim, JobState.QUEUED, error=ERROR))
    claim = await take_one(rig.engine)
    first, second = (await look(rig, claim.id)).attempts
    assert first.error is not None
    assert second.error is None
    await settle(rig.engine, ending(claim))
    record = await look(rig, claim.id)
    assert (record.error, record.attempts[1].error) == (None, None)


@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.PAUSED])
async def test_what_is_forgiven_raises_the_budget(rig: Rig, state: JobState) -> None:
    own, _kinds = await rig.engine.jobs.enqueue([NewJob("a", max_attempts=3), NewJob("a")])
    claims = await take(rig.engine, workers=2)
    await settle(rig.engine, *(ending(claim, state, forgive=True) for claim in claims))
    records = [await look(rig, claim.id) for claim in claims]
    assert [(one.forgiven, one.max_attempts, one.attempt) for one in records] == [
        (1, 4, 1),
        (1, None, 1),
    ]
    assert records[0].id == own


async def test_a_forgiven_attempt_is_told_to_the_next_claim(rig: Rig) -> None:
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    await settle(rig.engine, ending(claim, JobState.QUEUED, forgive=True))
    claim = await take_one(rig.engine)
    assert (claim.attempt, claim.forgiven) == (2, 1)


async def test_a_wrong_token_changes_nothing(rig: Rig) -> None:
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    for state in (JobState.SUCCEEDED, JobState.QUEUED):
        visit = await settle(rig.engine, ending(claim._replace(token=uuid4()), state))
        assert visit.rejected == {claim.id}
    record = await look(rig, claim.id)
    assert (record.state, len(record.attempts)) == (JobState.RUNNING, 1)


async def test_an_unknown_job_is_rejected(rig: Rig) -> None:
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    visit = await settle(rig.engine, ending(claim._replace(id=999_999)), ending(claim))
    assert visit.rejected == {999_999}
    assert await state_of(rig.engine, claim.id) is JobState.SUCCEEDED


async def test_a_job_claimed_again_by_the_same_node_is_not_the_old_claim(rig: Rig) -> None:
    await put(rig.engine, 0)
    old = await take_one(rig.engine)
    await settle(rig.engine, ending(old, JobState.QUEUED))
    new = await take_one(rig.engine)
    assert (await settle(rig.engine, ending(old))).rejected == {old.id}
    assert await state_of(rig.engine, new.id) is JobState.RUNNING
    assert (await settle(rig.engine, ending(new))).rejected == frozenset()


@pytest.mark.parametrize(
    "state", [JobState.SUCCEEDED, JobState.FAILED, JobState.PAUSED, JobState.QUEUED]
)
async def test_a_second_settlement_is_rejected_but_known_as_written(
    rig: Rig, state: JobState
) -> None:
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    settlement = ending(claim, state)
    assert await rig.engine.leases.settled_already([settlement]) == frozenset()
    await settle(rig.engine, settlement)
    assert (await settle(rig.engine, settlement)).rejected == {claim.id}
    assert await rig.engine.leases.settled_already([settlement]) == {claim.id}
    assert len((await look(rig, claim.id)).attempts) == 1


async def test_a_retry_is_known_as_written_even_after_the_next_claim(rig: Rig) -> None:
    await put(rig.engine, 0)
    settlement = ending(await take_one(rig.engine), JobState.QUEUED)
    await settle(rig.engine, settlement)
    await take_one(rig.engine)
    assert await rig.engine.leases.settled_already([settlement]) == {settlement.id}


async def test_another_outcome_is_not_known_as_written(rig: Rig) -> None:
    await put(rig.engine, 0, 0)
    first, second = await take(rig.engine, workers=2)
    await settle(rig.engine, ending(first, JobState.FAILED), ending(second, JobState.QUEUED))
    wrong = [
        ending(first),
        ending(first, JobState.FAILED)._replace(token=uuid4()),
        ending(second),
        ending(second._replace(id=999_999)),
    ]
    assert await rig.engine.leases.settled_already(wrong) == frozenset()
    assert await rig.engine.leases.settled_already([]) == frozenset()


@pytest.mark.parametrize(
    "bad", [{"result": "{"}, {"error": "oops"}, {"result": '"\ud800"'}, {"reason": "a\udc00"}]
)
async def test_values_that_cannot_be_stored_undo_the_whole_batch(
    rig: Rig, bad: dict[str, Any]
) -> None:
    await put(rig.engine, 0, 0)
    good, other = await take(rig.engine, workers=2)
    with pytest.raises(InputRefused):
        await settle(rig.engine, ending(good), ending(other, **bad))
    assert await state_of(rig.engine, good.id) is JobState.RUNNING
    assert (await settle(rig.engine, ending(good), ending(other))).rejected == frozenset()


async def test_many_plain_successes_at_once_are_written_each_as_its_own(rig: Rig) -> None:
    results = [
        "null",
        '"a \\"quoted\\" \\\\ \\n text"',
        '{"ä": "ö"}',
        "[1.5, true]",
        None,
        "0",
        "1",
    ]
    await put(rig.engine, *(0 for _ in results))
    claims = await take(rig.engine, workers=4, ahead=3)
    ends = [
        ending(
            claim,
            result=result,
            started_epoch=claim.claimed_epoch + 7,
            ended_epoch=claim.claimed_epoch + 9,
        )
        for claim, result in zip(claims, results, strict=True)
    ]
    ends[5] = ends[5]._replace(token=uuid4())
    visit = await settle(rig.engine, *ends)
    assert visit.rejected == {claims[5].id}
    for claim, result in zip(claims, results, strict=True):
        record = await look(rig, claim.id)
        if claim is claims[5]:
            assert (record.state, record.finished_at) == (JobState.ASSIGNED, None)
            continue
        assert record.state is JobState.SUCCEEDED
        assert (record.result is None) is (result is None)
        assert json.loads(record.result or "null") == json.loads(result or "null")
        assert near(record.finished_at, record.created_at + timedelta(seconds=9))
        assert near(record.started_at, record.created_at + timedelta(seconds=7))
        assert record.lease_expires_at is None
    assert sorted(await rig.engine.leases.settled_already(ends)) == sorted(
        {claim.id for claim in claims} - {claims[5].id}
    )
