"""Requests to the holder of a job, progress, log and what was spent."""

import json
from uuid import uuid4

import pytest
import trio

from musterd.store.leases import Claim, Hold, ProgressNote
from musterd.store.lifecycle import Action, AttemptOutcome, JobState
from tests.contract.job_tools import ending, look, put, reap_by, settle, state_of, take, take_one
from tests.contract.rigs import Rig, closing_engine

ERROR = '{"type": "Boom", "message": "it broke"}'
STOPS = [(Action.CANCEL, JobState.CANCELED), (Action.PAUSE, JobState.PAUSED)]
stops = pytest.mark.parametrize(("action", "end"), STOPS)


async def running(rig: Rig) -> Claim:
    await put(rig.engine, 0)
    return await take_one(rig.engine)


def hold(claim: Claim) -> Hold:
    return Hold(claim.id, claim.token, None, None)


async def counted(rig: Rig) -> dict[JobState, int]:
    counts = await rig.engine.queue.counts()
    return {state: number for state, number in counts.by_state.items() if number}


@stops
async def test_a_holder_hears_with_its_renewal(rig: Rig, action: Action, end: JobState) -> None:
    claim, other = await running(rig), await running(rig)
    asked = await rig.engine.control.apply(action, claim.id)
    assert (asked.requested, asked.allowed, asked.state_after) == (True, True, JobState.RUNNING)
    renewal = await rig.engine.leases.renew([hold(claim), hold(other)], 30)
    assert renewal.kept == {claim.id, other.id}
    assert renewal.requests == {claim.id: action.value}
    assert (await look(rig, claim.id)).request == action.value
    await settle(rig.engine, ending(claim, end))
    record = await look(rig, claim.id)
    assert (record.state, record.request) == (end, None)


@stops
@pytest.mark.parametrize(
    ("outcome", "shown"),
    [
        (AttemptOutcome.RETRYING, AttemptOutcome.FAILED),
        (AttemptOutcome.SNOOZED, AttemptOutcome.SNOOZED),
        (AttemptOutcome.RELEASED, AttemptOutcome.RELEASED),
    ],
)
async def test_no_retry_loses_a_request(
    rig: Rig, action: Action, end: JobState, outcome: AttemptOutcome, shown: AttemptOutcome
) -> None:
    claim = await running(rig)
    await rig.engine.control.apply(action, claim.id)
    given_up = ending(claim, JobState.QUEUED, outcome, error=ERROR, delay_seconds=9)
    visit = await settle(rig.engine, given_up)
    assert visit.rejected == frozenset()
    record = await look(rig, claim.id)
    assert (record.state, record.request, record.finished_at is None) == (end, None, False)
    assert [one.outcome for one in record.attempts] == [shown]
    assert record.reason in ("canceled on request", "Job was interrupted by user")
    assert await counted(rig) == {end: 1}
    assert await rig.engine.leases.settled_already([given_up]) == {claim.id}


@stops
async def test_an_attempt_that_is_turned_is_no_retry(
    rig: Rig, action: Action, end: JobState
) -> None:
    claim = await running(rig)
    await settle(rig.engine, ending(claim, JobState.QUEUED, error=ERROR, delay_seconds=0))
    again = await take_one(rig.engine)
    run_at = (await look(rig, again.id)).run_at
    await rig.engine.control.apply(action, again.id)
    snoozed = ending(again, JobState.QUEUED, AttemptOutcome.SNOOZED, delay_seconds=9)
    await settle(rig.engine, snoozed)
    record = await look(rig, again.id)
    assert (record.state, record.run_at) == (end, run_at)
    assert [one.error is None for one in record.attempts] == [False, True]


async def test_a_shutdown_that_pauses_loses_no_cancel(rig: Rig) -> None:
    claim = await running(rig)
    await rig.engine.control.apply(Action.CANCEL, claim.id)
    await settle(rig.engine, ending(claim, JobState.PAUSED))
    assert await state_of(rig.engine, claim.id) is JobState.CANCELED


@stops
@pytest.mark.parametrize("rule", ["requeue", "fail", "pause"])
async def test_no_reap_loses_a_request(rig: Rig, action: Action, end: JobState, rule: str) -> None:
    claim = await running(rig)
    await rig.engine.control.apply(action, claim.id)
    rig.pass_time(60)
    (reaped,) = await rig.engine.leases.reap(reap_by(rule, 1, 10))
    assert reaped.state is end
    record = await look(rig, claim.id)
    assert (record.state, record.request) == (end, None)
    assert [one.outcome for one in record.attempts] == [AttemptOutcome.LOST]
    assert json.loads(record.attempts[0].error or "")["type"] == "lease_lost"
    assert await counted(rig) == {end: 1}


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.FAILED])
async def test_an_end_of_its_own_wins(rig: Rig, state: JobState) -> None:
    claim = await running(rig)
    await rig.engine.control.apply(Action.CANCEL, claim.id)
    await settle(rig.engine, ending(claim, state))
    record = await look(rig, claim.id)
    assert (record.state, record.request) == (state, None)


async def test_a_cancel_goes_before_a_pause(rig: Rig) -> None:
    claim = await running(rig)
    assert (await rig.engine.control.apply(Action.PAUSE, claim.id)).requested
    assert (await rig.engine.control.apply(Action.CANCEL, claim.id)).requested
    late = await rig.engine.control.apply(Action.PAUSE, claim.id)
    assert (late.found, late.allowed, late.requested) == (True, False, False)
    assert (await look(rig, claim.id)).request == "cancel"


async def test_what_lies_ready_at_a_desk_may_be_asked_for(rig: Rig) -> None:
    await put(rig.engine, 0)
    (claim,) = await take(rig.engine, workers=0, ahead=1)
    asked = await rig.engine.control.apply(Action.CANCEL, claim.id)
    assert (asked.requested, asked.state_before) == (True, JobState.ASSIGNED)


async def hear(rig: Rig, heard: list[frozenset[int]], nursery: trio.Nursery) -> None:
    while not any(heard):
        heard.append((await rig.engine.queue.wait_for_hint()).requests)
    nursery.cancel_scope.cancel()


async def test_a_request_wakes_the_holder(shared: Rig) -> None:
    await shared.engine.start_node("north")
    claim = await running(shared)
    heard: list[frozenset[int]] = []
    async with closing_engine(shared.another()) as other:
        await other.open()
        async with trio.open_nursery() as nursery:
            nursery.cancel_scope.deadline = trio.current_time() + 5
            nursery.start_soon(hear, shared, heard, nursery)
            while True:  # it may not have begun to listen
                await other.control.apply(Action.CANCEL, claim.id)
                await trio.sleep(0.02)
    assert heard[-1] == {claim.id}


async def test_progress_is_written_by_its_holder_alone(rig: Rig) -> None:
    claim = await running(rig)
    stranger = ProgressNote(claim.id, uuid4(), 99.0, "mine", None)
    gone = ProgressNote(claim.id + 99, claim.token, 99.0, "mine", None)
    own = ProgressNote(claim.id, claim.token, 12.5, 'half "way" \\ ü', '{"tokens": 7}')
    assert await rig.engine.leases.note_progress([stranger]) == frozenset()
    assert await rig.engine.leases.note_progress([own, gone]) == {claim.id}
    record = await look(rig, claim.id)
    assert (record.progress, record.progress_note) == (12.5, 'half "way" \\ ü')
    assert json.loads(record.spent or "") == {"tokens": 7}
    only_spent = ProgressNote(claim.id, claim.token, None, None, '{"tokens": 8}')
    assert await rig.engine.leases.note_progress([only_spent]) == {claim.id}
    record = await look(rig, claim.id)
    assert (record.progress, record.progress_note) == (12.5, 'half "way" \\ ü')
    assert json.loads(record.spent or "") == {"tokens": 8}
    only_noted = ProgressNote(claim.id, claim.token, 25.0, "nearly", None)
    assert await rig.engine.leases.note_progress([only_noted]) == {claim.id}
    record = await look(rig, claim.id)
    assert (record.progress, record.progress_note) == (25.0, "nearly")
    assert json.loads(record.spent or "") == {"tokens": 8}
    await settle(rig.engine, ending(claim))
    assert await rig.engine.leases.note_progress([own]) == frozenset()


async def test_progress_is_fenced_though_others_of_its_claim_are_in_hand(rig: Rig) -> None:
    await put(rig.engine, 0, 0)
    given_back, _other = await take(rig.engine, workers=2)
    await settle(rig.engine, ending(given_back, JobState.QUEUED, AttemptOutcome.RELEASED))
    note = ProgressNote(given_back.id, given_back.token, 50.0, "late", None)
    assert await rig.engine.leases.note_progress([note]) == frozenset()
    assert (await look(rig, given_back.id)).progress_note is None


async def test_a_new_attempt_begins_at_nothing_but_what_was_spent(rig: Rig) -> None:
    first = await running(rig)
    assert first.spent is None
    await rig.engine.leases.note_progress([ProgressNote(first.id, first.token, 50.0, "x", None)])
    await settle(
        rig.engine, ending(first, JobState.QUEUED, log="line 1\nline 2", spent='{"tokens": 9}')
    )
    second = await take_one(rig.engine)
    assert json.loads(second.spent or "") == {"tokens": 9}
    assert json.loads((await rig.engine.leases.claims_under(second.token))[0].spent or "") == {
        "tokens": 9
    }
    record = await look(rig, second.id)
    assert (record.progress, record.progress_note, record.log) == (None, None, None)
    assert [one.log for one in record.attempts] == ["line 1\nline 2", None]
    await settle(rig.engine, ending(second, log="line 3"))
    record = await look(rig, second.id)
    assert [one.log for one in record.attempts] == ["line 1\nline 2", "line 3"]
    assert json.loads(record.spent or "") == {"tokens": 9}
