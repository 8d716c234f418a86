"""Why a job does not run: each reason is true, and when its cause is gone the job runs or the next
reason shows.
"""

import pytest

from musterd.store.lifecycle import Action, AttemptOutcome, JobState
from musterd.store.nodes import KnownKind
from musterd.store.reasons import Code
from tests.contract.asking import ask, codes, first, put_one
from tests.contract.job_tools import ending, ids, reap_by, settle, take, take_one
from tests.contract.rigs import LEASE_SECONDS, Rig
from tests.support.beats import live_node

REAP = reap_by("requeue", 4, 100)


async def test_of_a_job_that_is_not_there_nothing_is_said(rig: Rig) -> None:
    for job_id in (0, -3, 7, 2**63 - 1, 2**63, 10**30):
        assert await rig.engine.jobs.why_facts(job_id) is None


async def test_a_job_on_hold_is_next_once_it_is_released(rig: Rig) -> None:
    await live_node(rig.engine)
    job_id = await put_one(rig.engine, hold=True)
    assert await codes(rig, job_id) == ["not_released"]
    assert (await first(rig, job_id)).do == f"`musterd release {job_id}`"
    await rig.engine.control.apply(Action.RELEASE, job_id)
    assert await codes(rig, job_id) == ["next_up"]
    assert (await take_one(rig.engine)).id == job_id


async def test_a_delayed_job_says_until_when(rig: Rig) -> None:
    await live_node(rig.engine)
    job_id = await put_one(rig.engine, delay_seconds=100)
    reason = await first(rig, job_id)
    record = await rig.engine.jobs.get(job_id)
    assert record is not None
    assert (reason.code, reason.until, reason.what) == (Code.NOT_DUE, record.run_at, None)
    assert await take(rig.engine) == []
    rig.pass_time(101)
    await live_node(rig.engine)
    assert await codes(rig, job_id) == ["next_up"]
    assert ids(await take(rig.engine)) == [job_id]


async def test_a_retry_names_the_attempt_and_its_error(rig: Rig) -> None:
    await live_node(rig.engine)
    job_id = await put_one(rig.engine)
    claim = await take_one(rig.engine)
    error = '{"type": "oops", "message": "it rained"}'
    await settle(rig.engine, ending(claim, JobState.QUEUED, delay_seconds=60, error=error))
    reason = await first(rig, job_id)
    assert (reason.code, reason.what) == (
        Code.NOT_DUE,
        {"attempt": 1, "error": "oops: it rained"},
    )
    assert "attempt 1 ended with oops: it rained" in reason.text


async def test_a_paused_queue_says_by_whom_and_since_when(rig: Rig) -> None:
    await live_node(rig.engine)
    job_id = await put_one(rig.engine)
    await rig.engine.queue.pause("anna")
    reason = await first(rig, job_id)
    assert (reason.code, reason.who) == (Code.QUEUE_PAUSED, "anna")
    assert reason.since == (await rig.engine.queue.counts()).paused_at
    assert (await ask(rig, job_id)).position is not None
    assert await take(rig.engine) == []
    await rig.engine.queue.resume()
    assert await codes(rig, job_id) == ["next_up"]
    assert ids(await take(rig.engine)) == [job_id]


async def test_reasons_stand_in_the_order_in_which_they_are_to_be_removed(rig: Rig) -> None:
    job_id = await put_one(rig.engine, "ghost", hold=True, delay_seconds=50)
    await rig.engine.queue.pause("anna")
    wanted = ["not_released", "not_due", "queue_paused", "no_live_node"]
    assert await codes(rig, job_id) == wanted
    await rig.engine.control.apply(Action.RELEASE, job_id)
    assert await codes(rig, job_id) == wanted[1:]
    rig.pass_time(51)
    assert await codes(rig, job_id) == wanted[2:]
    await rig.engine.queue.resume()
    assert await codes(rig, job_id) == wanted[3:]
    await live_node(rig.engine)
    assert await codes(rig, job_id) == ["kind_unknown"]
    await live_node(rig.engine, "south", kinds={"ghost": KnownKind("no such file")})
    assert await codes(rig, job_id) == ["kind_broken"]
    await live_node(rig.engine, "east", kinds={"ghost": KnownKind()})
    assert await codes(rig, job_id) == ["next_up"]


async def test_a_paused_job_waits_to_be_resumed(rig: Rig) -> None:
    await live_node(rig.engine)
    job_id = await put_one(rig.engine)
    await rig.engine.control.apply(Action.PAUSE, job_id)
    reason = await first(rig, job_id)
    assert reason.code is Code.PAUSED
    assert "Job was interrupted by user" in reason.text
    await rig.engine.control.apply(Action.RESUME, job_id)
    assert await codes(rig, job_id) == ["next_up"]


async def test_without_a_live_node_nothing_runs(rig: Rig) -> None:
    job_id = await put_one(rig.engine)
    assert await codes(rig, job_id) == ["no_live_node"]
    north = await live_node(rig.engine, phase="draining")
    reason = await first(rig, job_id)
    assert (reason.code, reason.who) == (Code.NO_LIVE_NODE, "north")
    await live_node(rig.engine, node_id=north.id)
    assert await codes(rig, job_id) == ["next_up"]
    rig.pass_time(60)
    assert await codes(rig, job_id) == ["no_live_node"]


async def test_a_kind_that_some_node_can_run_is_neither_unknown_nor_broken(rig: Rig) -> None:
    job_id = await put_one(rig.engine)
    await live_node(rig.engine, kinds={})
    reason = await first(rig, job_id)
    assert (reason.code, reason.who) == (Code.KIND_UNKNOWN, "north")
    south = await live_node(rig.engine, "south", kinds={"report": KnownKind("no module shop")})
    reason = await first(rig, job_id)
    assert (reason.code, reason.what) == (
        Code.KIND_BROKEN,
        {"kind": "report", "nodes": {"south": "no module shop"}},
    )
    await live_node(rig.engine, "south", node_id=south.id)
    assert await codes(rig, job_id) == ["next_up"]


async def test_a_job_put_off_since_its_kind_is_unknown_says_that_first(rig: Rig) -> None:
    await live_node(rig.engine, kinds={})
    job_id = await put_one(rig.engine)
    claim = await take_one(rig.engine)
    given_back = ending(
        claim, JobState.QUEUED, AttemptOutcome.RELEASED,
        delay_seconds=5, reason="kind 'report' is in no catalog", forgive=True, started_epoch=None,
    )  # fmt: skip
    await settle(rig.engine, given_back)
    assert await codes(rig, job_id) == ["kind_unknown", "not_due"]
    assert "postponed" in (await ask(rig, job_id)).reasons[1].text
    await live_node(rig.engine, "south")
    assert await codes(rig, job_id) == ["not_due"]


# -- in hand, and ended


async def test_a_running_job_says_where_and_until_when(rig: Rig) -> None:
    job_id = await put_one(rig.engine)
    await take_one(rig.engine)
    reason = await first(rig, job_id)
    record = await rig.engine.jobs.get(job_id)
    assert record is not None
    assert (reason.code, reason.who) == (Code.RUNNING, "north/1")
    assert (reason.since, reason.until) == (record.started_at, record.lease_expires_at)
    assert reason.what == {"attempt": 1, "asked_for": None}
    await rig.engine.control.apply(Action.CANCEL, job_id)
    assert (await first(rig, job_id)).what == {"attempt": 1, "asked_for": "cancel"}


async def test_a_job_claimed_ahead_has_not_started(rig: Rig) -> None:
    job_id = await put_one(rig.engine)
    await take(rig.engine, workers=0, ahead=1)
    reason = await first(rig, job_id)
    assert (reason.code, reason.who, reason.since) == (Code.CLAIMED, "north", None)


async def test_a_lease_that_ran_out_waits_for_the_reaper(rig: Rig) -> None:
    job_id = await put_one(rig.engine)
    await take_one(rig.engine)
    rig.pass_time(LEASE_SECONDS + 1)
    assert await codes(rig, job_id) == ["lease_lost", "no_live_node"]
    await live_node(rig.engine, "south")
    assert await codes(rig, job_id) == ["lease_lost"]
    await rig.engine.leases.reap(REAP)
    assert await codes(rig, job_id) == ["next_up"]


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED])
async def test_a_job_that_has_ended_says_how(rig: Rig, state: JobState) -> None:
    job_id = await put_one(rig.engine)
    error = '{"type": "oops", "message": "it rained"}' if state is JobState.FAILED else None
    await settle(rig.engine, ending(await take_one(rig.engine), state, error=error))
    reason = await first(rig, job_id)
    record = await rig.engine.jobs.get(job_id)
    assert record is not None
    assert (reason.code, reason.since) == (Code.FINISHED, record.finished_at)
    assert state.value in reason.text
    assert ("oops: it rained" in reason.text) is (state is JobState.FAILED)
