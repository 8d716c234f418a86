"""Whatever changes a job tells exactly what happened, once, in the order in which it did."""

import json
from typing import Any
from uuid import uuid4

import pytest

from musterd.store.jobs import NewJob
from musterd.store.leases import Claim, ClaimRequest, Ends, Hold, ProgressNote
from musterd.store.lifecycle import Action, AttemptOutcome, JobState
from musterd.store.phases import PhaseEnd, PhaseStart, PhaseState
from musterd.store.words import time_text
from tests.contract.asking import put_one
from tests.contract.event_tools import everything, since, told, types_told
from tests.contract.job_tools import ending, put, settle, take, take_one
from tests.contract.rigs import Rig

ERROR = '{"type": "Boom", "message": "it broke"}'
TOLD_ERROR = {"type": "Boom", "message": "it broke"}
STARTED = ("started", {"attempt": 1, "node": "north", "worker": 1})


async def test_the_way_of_a_job(rig: Rig) -> None:
    job_id = await put_one(rig.engine, target="shelf")
    await settle(rig.engine, ending(await claim_of_target(rig)))
    enqueued, started, succeeded = await everything(rig.engine)
    assert (enqueued.type, enqueued.data) == ("job.enqueued", {})
    assert (started.type, started.data) == ("job.started", STARTED[1])
    assert (succeeded.type, succeeded.data) == ("job.succeeded", {"attempt": 1})
    for event in (enqueued, started, succeeded):
        assert (event.job_id, event.kind, event.target) == (job_id, "report", "shelf")
    record = await rig.engine.jobs.get(job_id)
    assert record is not None
    assert abs((enqueued.at - record.created_at).total_seconds()) < 5
    assert enqueued.at.tzinfo is not None


async def claim_of_target(rig: Rig) -> Claim:
    """The first claim that meets a target may find that it has to look again."""
    return (await take(rig.engine) or await take(rig.engine))[0]


async def test_a_job_that_is_held_says_so_and_is_released(rig: Rig) -> None:
    job_id = await put_one(rig.engine, hold=True)
    await rig.engine.control.apply(Action.RELEASE, job_id)
    assert await told(rig.engine, job_id) == [("enqueued", {"state": "pending"}), ("released", {})]


async def test_one_call_may_make_held_jobs_and_others(rig: Rig) -> None:
    jobs = [NewJob("a", hold=number % 2 == 0, target=f"t{number}") for number in range(6)]
    made = await rig.engine.jobs.enqueue(jobs)
    found = {event.job_id: event for event in await everything(rig.engine)}
    assert [found[one].data.get("state") for one in made] == ["pending", None] * 3
    assert [found[one].target for one in made] == [job.target for job in jobs]


LATER: tuple[dict[str, Any], ...] = (
    {}, {"priority": 7}, {"priority": -7}, {"delay_seconds": 90}, {"hold": True},
    {"delay_seconds": 90, "priority": 3, "hold": True},
)  # fmt: skip


@pytest.mark.parametrize("at_once", [1, 6, 40])
async def test_a_job_says_when_it_is_due_and_its_priority_where_that_says_something(
    rig: Rig, at_once: int
) -> None:
    """One by one, several at once, and many of each."""
    jobs = [NewJob("a", **options) for options in LATER for _ in range(max(1, at_once // 6))]
    made: list[int] = []
    for first in range(0, len(jobs), at_once):
        made += await rig.engine.jobs.enqueue(jobs[first : first + at_once])
    found = {event.job_id: event.data for event in await everything(rig.engine)}
    for job_id, job in zip(made, jobs, strict=True):
        record = await rig.engine.jobs.get(job_id)
        assert record is not None
        wanted: dict[str, Any] = {"state": "pending"} if job.hold else {}
        if job.delay_seconds:
            wanted["run_at"] = time_text(record.run_at)
        if job.priority:
            wanted["priority"] = job.priority
        assert found[job_id] == wanted


async def test_jobs_that_are_alike_say_when_they_are_due_one_by_one(rig: Rig) -> None:
    made = await rig.engine.jobs.enqueue([NewJob("a", delay_seconds=30, priority=2)] * 5)
    found = {event.job_id: event.data for event in await everything(rig.engine)}
    assert [found[one]["priority"] for one in made] == [2] * 5
    assert all("run_at" in found[one] for one in made)


async def test_a_key_that_is_held_makes_no_job_and_tells_nothing(rig: Rig) -> None:
    first = await rig.engine.jobs.enqueue_keyed([NewJob("a", dedup_key="k"), NewJob("b")])
    await rig.engine.jobs.enqueue_keyed([NewJob("a", dedup_key="k")])
    assert [event.job_id for event in await everything(rig.engine)] == [one.id for one in first]


async def test_a_start_is_told_once_by_the_renewal_that_writes_it(rig: Rig) -> None:
    job_id = await put_one(rig.engine)
    (claim,) = await take(rig.engine, workers=0, ahead=1)
    hold = hold_of(claim, worker=None, started=None)
    await rig.engine.leases.renew([hold], 30)
    assert await since(rig.engine, job_id, 1) == [
        ("assigned", {"attempt": 1, "node": "north", "worker": None})
    ]
    started = hold_of(claim, worker=4, started=claim.claimed_epoch)
    for _ in range(3):  # the first reply may have been lost
        await rig.engine.leases.renew([started], 30)
    await settle(rig.engine, ending(claim))
    assert await since(rig.engine, job_id, 2) == [
        ("started", {"attempt": 1, "node": "north", "worker": 4}),
        ("succeeded", {"attempt": 1}),
    ]


def hold_of(claim: Claim, *, worker: int | None, started: float | None) -> Hold:
    return Hold(claim.id, claim.token, worker, started)


async def test_a_start_that_was_not_written_is_told_before_the_end(rig: Rig) -> None:
    await put(rig.engine, 0, 0, 0)
    first, second, third = await take(rig.engine, workers=1, ahead=2)
    await settle(
        rig.engine,
        ending(first),
        ending(second, JobState.FAILED, error=ERROR)._replace(worker=2),
        ending(third, JobState.QUEUED, AttemptOutcome.RELEASED, started_epoch=None),
    )
    assert await since(rig.engine, first.id, 1) == [STARTED, ("succeeded", {"attempt": 1})]
    assigned = ("assigned", {"attempt": 1, "node": "north", "worker": None})
    assert await since(rig.engine, second.id, 1) == [
        assigned,
        ("started", {"attempt": 1, "node": "north", "worker": 2}),
        ("failed", {"attempt": 1, "error": TOLD_ERROR}),
    ]
    given_back = {"attempt": 1, "outcome": "released", "reason": None}
    assert await since(rig.engine, third.id, 1) == [assigned, ("requeued", given_back)]


ENDS: dict[str, tuple[JobState, AttemptOutcome, dict[str, Any]]] = {
    "succeeded": (JobState.SUCCEEDED, AttemptOutcome.SUCCEEDED, {}),
    "failed": (JobState.FAILED, AttemptOutcome.FAILED, {"error": TOLD_ERROR}),
    "canceled": (JobState.CANCELED, AttemptOutcome.CANCELED, {"reason": "so"}),
    "paused": (JobState.PAUSED, AttemptOutcome.PAUSED, {"reason": "so"}),
    "snoozed": (JobState.QUEUED, AttemptOutcome.SNOOZED, {"outcome": "snoozed", "reason": "so"}),
    "released": (JobState.QUEUED, AttemptOutcome.RELEASED, {"outcome": "released", "reason": "so"}),
}


@pytest.mark.parametrize("which", ENDS)
async def test_an_end_is_told_with_what_belongs_to_it(rig: Rig, which: str) -> None:
    state, outcome, data = ENDS[which]
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    end = ending(claim, state, outcome, error=ERROR, reason="so")
    await settle(rig.engine, end)
    type_ = "requeued" if state is JobState.QUEUED else which
    if which == "snoozed":
        record = await rig.engine.jobs.get(claim.id)
        assert record is not None
        data = {**data, "run_at": time_text(record.run_at)}
    wanted = [(type_, {"attempt": 1, **data})]
    assert await since(rig.engine, claim.id, 2) == wanted
    assert (await settle(rig.engine, end)).rejected == {claim.id}  # its reply had been lost
    assert await since(rig.engine, claim.id, 2) == wanted


async def test_a_retry_is_told_with_its_error_and_its_time(rig: Rig) -> None:
    job_id = await put_one(rig.engine)
    claim = await take_one(rig.engine)
    await settle(rig.engine, ending(claim, JobState.QUEUED, delay_seconds=90, error=ERROR))
    record = await rig.engine.jobs.get(job_id)
    assert record is not None
    ((type_, data),) = await since(rig.engine, job_id, 2)
    run_at = time_text(record.run_at)
    assert (type_, data) == ("retrying", {"attempt": 1, "error": TOLD_ERROR, "run_at": run_at})
    rig.pass_time(100)
    again = await take_one(rig.engine)
    assert await since(rig.engine, job_id, 3) == [
        ("started", {**STARTED[1], "attempt": again.attempt})
    ]


async def test_what_is_settled_and_claimed_in_one_visit_is_told_in_order(rig: Rig) -> None:
    job_id = await put_one(rig.engine)
    (claim,) = await take(rig.engine, workers=0, ahead=1)
    end = ending(claim, JobState.QUEUED, delay_seconds=0, error=ERROR)
    await rig.engine.leases.exchange(Ends([end]), ClaimRequest(uuid4(), "north", (1,), 0, 30))
    assert await types_told(rig.engine, job_id) == [
        "enqueued", "assigned", "started", "retrying", "started",
    ]  # fmt: skip


@pytest.mark.parametrize("request_", [Action.CANCEL, Action.PAUSE])
async def test_a_request_is_told_when_it_has_been_obeyed_and_once(
    rig: Rig, request_: Action
) -> None:
    job_id = await put_one(rig.engine)
    claim = await take_one(rig.engine)
    await rig.engine.control.apply(request_, job_id)
    await rig.engine.control.apply(request_, job_id)
    assert len(await told(rig.engine, job_id)) == 2
    await settle(rig.engine, ending(claim, JobState.QUEUED, error=ERROR))
    record = await rig.engine.jobs.get(job_id)
    assert record is not None
    assert await since(rig.engine, job_id, 2) == [
        (record.state.value, {"attempt": 1, "reason": record.reason})
    ]


async def test_progress_is_told_as_people_read_it(rig: Rig) -> None:
    job_id = await put_one(rig.engine)
    claim = await take_one(rig.engine)
    plain = ProgressNote(job_id, claim.token, 12.5, "on its way", None)
    spent = ProgressNote(job_id, claim.token, None, None, '{"tokens": 3}')
    in_phase = ProgressNote(job_id, claim.token, 41.25, None, None, "load", 82.5)
    stale = plain._replace(token=type(claim.token)(int=7))
    for note in (plain, spent, stale, in_phase):
        await rig.engine.leases.note_progress([note])
    assert await since(rig.engine, job_id, 2) == [
        ("progress", {"overall": 13, "phase": None, "progress": 12.5, "note": "on its way"}),
        ("progress", {"overall": 41, "phase": "load", "progress": 82.5, "note": None}),
    ]


async def test_how_far_an_attempt_came_is_written_and_told_before_its_end(rig: Rig) -> None:
    job_id = await put_one(rig.engine)
    claim = await take_one(rig.engine)
    await settle(
        rig.engine, ending(claim, JobState.FAILED, error=ERROR, percent=62.5, note="nearly")
    )
    record = await rig.engine.jobs.get(job_id)
    assert record is not None
    assert (record.progress, record.progress_note) == (62.5, "nearly")
    assert await since(rig.engine, job_id, 2) == [
        ("progress", {"overall": 63, "phase": None, "progress": 62.5, "note": "nearly"}),
        ("failed", {"attempt": 1, "error": TOLD_ERROR}),
    ]


async def test_the_last_phase_is_completed_before_its_job_succeeds(rig: Rig) -> None:
    job_id = await put_one(rig.engine)
    claim = await take_one(rig.engine)
    start = PhaseStart(job_id, claim.token, claim.worker, claim.claimed_epoch, ("upload",))
    await rig.engine.phases.begin([start])
    await settle(rig.engine, ending(claim, phase=PhaseEnd("upload", PhaseState.SUCCEEDED)))
    completed = {"attempt": 1, "phase": "upload", "progress": 100, "overall": 100}
    assert (await since(rig.engine, job_id, 2))[-2:] == [
        ("phase_completed", completed),
        ("succeeded", {"attempt": 1}),
    ]


async def test_long_words_are_told_in_short_and_kept_whole(rig: Rig) -> None:
    failing, pausing = await put(rig.engine, 0, 0)
    claims = await take(rig.engine, 2)
    long = '{"type": "Boom", "message": "' + "é" * 5000 + '"}'
    await settle(
        rig.engine,
        ending(claims[0], JobState.FAILED, error=long),
        ending(claims[1], JobState.PAUSED, reason="é" * 5000),
    )
    ((_, failed),) = await since(rig.engine, failing, 2)
    assert failed["error"] == {"type": "Boom", "message": "é" * 1000}
    ((_, paused),) = await since(rig.engine, pausing, 2)
    assert paused["reason"] == "é" * 1000
    record = await rig.engine.jobs.get(failing)
    assert record is not None
    assert len(record.error or "") > 5000


async def test_the_view_for_people_shows_what_readers_get(rig: Rig) -> None:
    await rig.engine.jobs.enqueue([NewJob("a", hold=number == 1) for number in range(3)])
    claims = await take(rig.engine, workers=1, ahead=1)
    await settle(rig.engine, *[ending(one, JobState.FAILED, error=ERROR) for one in claims])
    read = await everything(rig.engine)
    seen = rig.raw("select id, type, job_id, kind, target, data from events order by id")
    assert len(read) == 8
    for event, row in zip(read, seen, strict=True):
        assert row[:5] == (event.id, event.type, event.job_id, event.kind, event.target)
        assert (json.loads(row[5]) if isinstance(row[5], str) else row[5]) == event.data
