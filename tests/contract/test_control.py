"""What may be done to one job from outside: every action in every state."""

import json

import pytest

from musterd.store.jobs import JobRecord, NewJob
from musterd.store.leases import ProgressNote
from musterd.store.lifecycle import EFFECTS, LEASED, TRANSITIONS, Action, AttemptOutcome, JobState
from tests.contract.job_tools import ending, ids, put, settle, state_of, take, take_one
from tests.contract.rigs import Rig
from tests.contract.test_laws import bring_to

ERROR = '{"type": "Boom", "message": "it broke"}'


async def look(rig: Rig, job_id: int) -> JobRecord:
    record = await rig.engine.jobs.get(job_id)
    assert record is not None
    return record


async def counted(rig: Rig) -> dict[JobState, int]:
    counts = await rig.engine.queue.counts()
    return {state: number for state, number in counts.by_state.items() if number}


def test_every_effect_is_a_legal_step() -> None:
    steps = {(before, after) for (_, before), after in EFFECTS.items() if before is not after}
    assert steps <= TRANSITIONS.keys()


@pytest.mark.parametrize("action", Action)
@pytest.mark.parametrize("state", JobState)
async def test_an_action_does_what_the_table_says(
    rig: Rig, action: Action, state: JobState
) -> None:
    job_id = await bring_to(rig, state)
    if state is JobState.PENDING:
        rig.raw(f"delete from job_rows where id = {job_id - 1}")
    effect = EFFECTS.get((action, state))
    done = await rig.engine.control.apply(action, job_id)
    assert (done.found, done.allowed) == (True, effect is not None)
    assert done.requested is (effect is not None and state in LEASED)
    assert done.state_before is state
    stands = state if effect is None or state in LEASED else effect
    record = await look(rig, job_id)
    assert (done.state_after, record.state) == (stands, stands)
    assert (record.cleared_at is not None) is (action is Action.CLEAR and effect is not None)
    if state is not JobState.PENDING:
        assert await counted(rig) == {stands: 1}


@pytest.mark.parametrize("action", Action)
@pytest.mark.parametrize("job_id", [1, 0, -1, 2**63 - 1])
async def test_a_job_that_is_not_there_is_not_found(rig: Rig, action: Action, job_id: int) -> None:
    done = await rig.engine.control.apply(action, job_id)
    assert (done.found, done.allowed, done.state_before) == (False, False, None)


async def test_a_held_job_waits_for_its_release(rig: Rig) -> None:
    (job_id,) = await rig.engine.jobs.enqueue([NewJob("a", hold=True)])
    assert await state_of(rig.engine, job_id) is JobState.PENDING
    assert await take(rig.engine) == []
    created = (await look(rig, job_id)).created_at
    await rig.engine.control.apply(Action.RELEASE, job_id)
    assert (await look(rig, job_id)).run_at == created
    assert ids(await take(rig.engine)) == [job_id]
    assert (await counted(rig)) == {JobState.RUNNING: 1}


@pytest.mark.parametrize("own_budget", [None, 3])
async def test_a_resumed_job_has_its_whole_budget_again(rig: Rig, own_budget: int | None) -> None:
    (job_id,) = await rig.engine.jobs.enqueue([NewJob("a", max_attempts=own_budget)])
    for state in (JobState.QUEUED, JobState.QUEUED, JobState.FAILED):
        claim = await take_one(rig.engine)
        await settle(rig.engine, ending(claim, state, error=ERROR, log=f"log {claim.attempt}"))
    before = await look(rig, job_id)
    await rig.engine.control.apply(Action.CLEAR, job_id)
    rig.pass_time(100)
    await rig.engine.control.apply(Action.RESUME, job_id)
    record = await look(rig, job_id)
    assert record.run_at > before.run_at
    assert (record.attempt, record.forgiven, record.cleared_at) == (3, 3, None)
    assert record.max_attempts == (None if own_budget is None else 6)
    assert [one.error for one in record.attempts] == [one.error for one in before.attempts]
    assert [one.attempt for one in record.attempts] == [1, 2, 3]
    assert [one.outcome for one in record.attempts[2:]] == [AttemptOutcome.FAILED]
    assert [one.log for one in record.attempts] == ["log 1", "log 2", "log 3"]
    claim = await take_one(rig.engine)
    assert (claim.attempt, claim.forgiven) == (4, 3)
    await settle(rig.engine, ending(claim))
    assert len((await look(rig, job_id)).attempts) == 4


async def test_a_cancel_does_not_lengthen_the_attempt_that_was_paused(rig: Rig) -> None:
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    await settle(rig.engine, ending(claim, JobState.PAUSED, error=ERROR))
    rig.pass_time(1)
    (paused,) = (await look(rig, claim.id)).attempts
    await rig.engine.control.apply(Action.CANCEL, claim.id)
    record = await look(rig, claim.id)
    assert record.attempts == (paused,)
    assert json.loads(paused.error or "") == json.loads(ERROR)
    assert record.finished_at is not None
    assert paused.finished_at is not None
    assert record.finished_at > paused.finished_at
    assert record.reason == "canceled on request"


async def test_a_paused_job_is_claimed_by_nobody_until_it_is_resumed(rig: Rig) -> None:
    first, second = await put(rig.engine, 0, 0)
    await rig.engine.control.apply(Action.PAUSE, first)
    assert (await look(rig, first)).reason == "Job was interrupted by user"
    assert ids(await take(rig.engine, workers=2)) == [second]
    await rig.engine.control.apply(Action.RESUME, first)
    assert (await look(rig, first)).reason is None
    (claim,) = await take(rig.engine, workers=2)
    assert (claim.id, claim.attempt, claim.forgiven) == (first, 1, 0)


async def test_clearing_twice_keeps_the_first_time(rig: Rig) -> None:
    job_id = await bring_to(rig, JobState.FAILED)
    await rig.engine.control.apply(Action.CLEAR, job_id)
    before = (await look(rig, job_id)).cleared_at
    assert (await rig.engine.control.apply(Action.CLEAR, job_id)).allowed
    assert (await look(rig, job_id)).cleared_at == before


async def test_a_resumed_job_may_spend_its_budgets_again(rig: Rig) -> None:
    (job_id,) = await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    note = ProgressNote(job_id, claim.token, None, None, '{"tokens": 60}')
    assert await rig.engine.leases.note_progress([note]) == {job_id}
    assert json.loads((await look(rig, job_id)).spent or "") == {"tokens": 60}
    again = ending(claim, JobState.QUEUED, AttemptOutcome.RETRYING)._replace(delay_seconds=0.0)
    await settle(rig.engine, again)
    claim = await take_one(rig.engine)
    assert json.loads(claim.spent or "") == {"tokens": 60}
    await settle(rig.engine, ending(claim, JobState.FAILED))
    await rig.engine.control.apply(Action.RESUME, job_id)
    assert (await take_one(rig.engine)).spent is None


async def test_resume_leaves_a_job_its_own_delay(rig: Rig) -> None:
    """It asked for it itself: a pause in between does not make it due."""
    (job_id,) = await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    snoozed = ending(claim, JobState.QUEUED, AttemptOutcome.SNOOZED, delay_seconds=900)
    await settle(rig.engine, snoozed)
    due = (await look(rig, job_id)).run_at
    for _ in range(2):
        await rig.engine.control.apply(Action.PAUSE, job_id)
        await rig.engine.control.apply(Action.RESUME, job_id)
        assert (await look(rig, job_id)).run_at == due
    rig.pass_time(1000)
    await rig.engine.control.apply(Action.PAUSE, job_id)
    await rig.engine.control.apply(Action.RESUME, job_id)
    assert (await take_one(rig.engine)).id == job_id
