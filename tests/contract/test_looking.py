"""What only looks: one job, lists, the queue's depth, the next due time, counts."""

import json
from random import Random
from typing import Any

import attrs
import pytest

from musterd.store.jobs import BRIEF_CHARACTERS, JobFilter, JobRecord, NewJob
from musterd.store.leases import ReapRequest, ReapRule
from musterd.store.lifecycle import Action, AttemptOutcome, JobState
from musterd.store.queue import LINE_MAX, Counts
from tests.contract.job_tools import ending, put, settle, take, take_one
from tests.contract.rigs import Rig


def ids(records: list[JobRecord]) -> list[int]:
    return [record.id for record in records]


@pytest.mark.parametrize("job_id", [0, -1, 999_999, 2**63 - 1])
async def test_an_unknown_job_is_none(rig: Rig, job_id: int) -> None:
    assert await rig.engine.jobs.get(job_id) is None


@pytest.mark.parametrize("job_id", [2**63, -(2**63) - 1, 10**40])
async def test_a_number_that_can_be_no_id_is_an_unknown_job(rig: Rig, job_id: int) -> None:
    assert await rig.engine.jobs.get(job_id) is None


async def test_jobs_are_listed_newest_first_a_page_at_a_time(rig: Rig) -> None:
    made = await put(rig.engine, *[0] * 7)
    assert await rig.engine.jobs.find(JobFilter(limit=0)) == []
    first = await rig.engine.jobs.find(JobFilter(limit=4))
    assert ids(first) == made[:2:-1]
    second = await rig.engine.jobs.find(JobFilter(limit=4, before_id=first[-1].id))
    assert ids(second) == made[2::-1]
    assert await rig.engine.jobs.find(JobFilter(before_id=second[-1].id)) == []


async def test_jobs_are_listed_by_state_and_kind(rig: Rig) -> None:
    a1, b1, a2, b2 = await rig.engine.jobs.enqueue([NewJob(kind) for kind in "abab"])
    claims = await take(rig.engine, workers=2, ahead=1)
    await settle(rig.engine, ending(claims[0], JobState.FAILED), ending(claims[1]))
    in_states = {
        (JobState.FAILED,): [a1],
        (JobState.SUCCEEDED,): [b1],
        (JobState.ASSIGNED,): [a2],
        (JobState.QUEUED,): [b2],
        (JobState.QUEUED, JobState.FAILED, JobState.ASSIGNED): [b2, a2, a1],
        (JobState.PAUSED,): [],
        (): [b2, a2, b1, a1],
    }
    for states, wanted in in_states.items():
        assert ids(await rig.engine.jobs.find(JobFilter(states=states))) == wanted
    assert ids(await rig.engine.jobs.find(JobFilter(kind="a"))) == [a2, a1]
    assert ids(await rig.engine.jobs.find(JobFilter(kind="a", states=(JobState.FAILED,)))) == [a1]
    assert ids(
        await rig.engine.jobs.find(JobFilter(states=(JobState.FAILED, JobState.QUEUED), limit=1))
    ) == [b2]
    assert await rig.engine.jobs.find(JobFilter(kind="' or true --")) == []


async def test_a_listed_job_is_the_job_with_its_attempts(rig: Rig) -> None:
    await put(rig.engine, 0, 0)
    for claim in await take(rig.engine, workers=2):
        await settle(rig.engine, ending(claim, JobState.QUEUED))
    await take_one(rig.engine)
    listed = await rig.engine.jobs.find(JobFilter())
    assert listed == [await rig.engine.jobs.get(record.id) for record in listed]
    assert [len(record.attempts) for record in listed] == [1, 2]


async def test_a_brief_job_is_the_job_without_what_may_be_large(rig: Rig) -> None:
    jobs = [
        NewJob(kind, payload='{"a": 1}', target="t" if kind == "c" else None) for kind in "abcd"
    ]
    made = await rig.engine.jobs.enqueue(jobs)
    claims = await take(rig.engine, workers=3)
    long = json.dumps({"type": "E", "message": "m" * 9_000})
    failed = ending(claims[0], JobState.FAILED, error=long, reason="r" * 9_000, log="said\n")
    await settle(rig.engine, failed, ending(claims[1], result="[1]"))
    await rig.engine.control.apply(Action.CANCEL, made[2])
    asked = [*made, made[-1] + 1, 10**15]
    briefs = {one.id: one for one in await rig.engine.jobs.briefs(asked)}
    assert sorted(briefs) == made
    assert await rig.engine.jobs.briefs([]) == []
    short: dict[str, Any] = {
        "payload": "{}",
        "result": None,
        "spent": None,
        "log": None,
        "attempts": (),
        "webhook": None,
    }
    for job_id in made:
        whole, brief = await rig.engine.jobs.get(job_id), briefs[job_id]
        assert whole is not None
        if job_id == made[0]:
            assert brief.error is not None
            assert json.loads(brief.error) == {"type": "E", "message": "m" * BRIEF_CHARACTERS}
            assert brief.reason == "r" * BRIEF_CHARACTERS
            whole = attrs.evolve(whole, error=brief.error, reason=brief.reason)
        assert attrs.evolve(brief, attempts=()) == attrs.evolve(whole, **short)


async def test_the_depth_counts_what_is_due_up_to_a_limit(rig: Rig) -> None:
    empty = await rig.engine.queue.observe(10)
    assert (empty.due, empty.oldest_due_seconds, empty.paused) == (0, 0, False)
    await put(rig.engine, 0, 5, 5, -5)
    await rig.engine.jobs.enqueue([NewJob("a", delay_seconds=500, priority=9)] * 2)
    assert (await rig.engine.queue.observe(10)).due == 4
    assert [(await rig.engine.queue.observe(limit)).due for limit in (0, 1, 2, 3, 4, 5)] == [
        0,
        1,
        2,
        3,
        4,
        4,
    ]
    rig.pass_time(120)
    assert (await rig.engine.queue.observe(10)).oldest_due_seconds == pytest.approx(120, abs=2)
    await take(rig.engine, workers=3)
    assert (await rig.engine.queue.observe(10)).due == 1


async def test_the_next_due_time_is_that_of_the_first_job_that_waits(rig: Rig) -> None:
    assert await rig.engine.queue.next_due_seconds() is None
    await put(rig.engine, 0)
    assert await rig.engine.queue.next_due_seconds() is None
    delays = [(90, 0), (60, -3), (70, 8)]
    await rig.engine.jobs.enqueue([NewJob("a", delay_seconds=d, priority=p) for d, p in delays])
    assert await rig.engine.queue.next_due_seconds() == pytest.approx(60, abs=2)
    rig.pass_time(65)
    assert await rig.engine.queue.next_due_seconds() == pytest.approx(5, abs=2)
    rig.pass_time(60)
    assert await rig.engine.queue.next_due_seconds() is None


async def test_an_empty_store_counts_nothing(rig: Rig) -> None:
    nothing = dict.fromkeys(JobState, 0)
    assert await rig.engine.queue.counts() == Counts(nothing, 0, 0, 0.0, None, None)


async def test_counts_tell_what_is_due_from_what_waits(rig: Rig) -> None:
    await put(rig.engine, 0, 0)
    await rig.engine.jobs.enqueue([NewJob("a", delay_seconds=99)] * 3)
    rig.pass_time(10)
    counts = await rig.engine.queue.counts()
    assert (counts.by_state[JobState.QUEUED], counts.due, counts.enqueued_total) == (5, 2, 5)
    assert counts.oldest_due_seconds == pytest.approx(10, abs=2)


async def test_the_due_count_is_right_beyond_the_bound(rig: Rig) -> None:
    await rig.engine.jobs.enqueue([NewJob("a")] * 10_500)
    await rig.engine.jobs.enqueue([NewJob("a", delay_seconds=999)] * 40)
    assert (await rig.engine.queue.counts()).due == 10_500


@pytest.mark.parametrize("seed", range(3))
async def test_counts_are_exact_after_any_history(rig: Rig, seed: int) -> None:
    rng = Random(seed)
    enqueued = 0
    for _ in range(60):
        enqueued += await _some_step(rig, rng)
    counts = await rig.engine.queue.counts()
    found = dict(rig.raw(f"select state, count(*) from {rig.table} group by state"))
    assert {state.value: n for state, n in counts.by_state.items() if n} == found
    assert counts.enqueued_total == enqueued


async def _some_step(rig: Rig, rng: Random) -> int:
    """One random operation; how many jobs it made."""
    made = rng.randint(0, 4)
    await rig.engine.jobs.enqueue([NewJob("a", priority=rng.randint(0, 2)) for _ in range(made)])
    claims = await take(rig.engine, workers=rng.randint(0, 3), ahead=rng.randint(0, 3))
    ends = [JobState.SUCCEEDED, JobState.FAILED, JobState.PAUSED, JobState.CANCELED]
    for claim in claims:
        state = rng.choice([*ends, JobState.QUEUED, None])
        if state is JobState.QUEUED:
            await settle(rig.engine, ending(claim, state, AttemptOutcome.SNOOZED))
        elif state is not None:
            await settle(rig.engine, ending(claim, state), ending(claim))
    if rng.random() < 0.2:
        rig.pass_time(40)
        rule = ReapRule(rng.choice(["requeue", "fail", "pause"]), rng.randint(1, 3))
        await rig.engine.leases.reap(ReapRequest({}, rule, 5))
    return made


async def test_the_line_is_read_in_the_order_of_claims_up_to_a_horizon(rig: Rig) -> None:
    assert (await rig.engine.queue.observe(10)).line is None
    empty = (await rig.engine.queue.observe(10, horizon_seconds=5)).line
    assert empty is not None
    assert (list(empty.waiting), empty.unseen) == ([], 0)
    await rig.engine.jobs.enqueue([NewJob("old")])
    rig.pass_time(60)
    jobs = [
        *(NewJob("soon", delay_seconds=4), NewJob("later", delay_seconds=90), NewJob("new")),
        *(NewJob("first", priority=7), NewJob("soon", delay_seconds=4.5, priority=-2)),
    ]
    made = await rig.engine.jobs.enqueue(jobs)
    view = await rig.engine.queue.observe(10, horizon_seconds=5)
    assert view.due == 3
    assert view.oldest_due_seconds == pytest.approx(60, abs=2)
    assert view.line is not None
    assert [(one.kind, one.number) for one in view.line.waiting] == [
        ("first", 1), ("old", 1), ("new", 1), ("soon", 1), ("soon", 1),
    ]  # fmt: skip
    assert [one.last_id for one in view.line.waiting[2:]] == [made[2], made[0], made[4]]
    waited = [one.waited_seconds for one in view.line.waiting]
    assert waited == pytest.approx([0, 60, 0, -4, -4.5], abs=2)
    await take(rig.engine, workers=3)
    view = await rig.engine.queue.observe(10, horizon_seconds=5)
    assert view.line is not None
    assert [one.kind for one in view.line.waiting] == ["soon", "soon"]


async def test_what_stands_behind_the_end_of_a_look_is_counted(rig: Rig) -> None:
    names = "ab" * (LINE_MAX // 2 + 50)  # no two neighbours are alike
    await rig.engine.jobs.enqueue([NewJob(name) for name in names])
    await take(rig.engine, workers=30)
    view = await rig.engine.queue.observe(10, horizon_seconds=1)
    assert (view.due, view.room) == (10, None)
    assert view.line is not None
    assert sum(one.number for one in view.line.waiting) == LINE_MAX
    assert view.line.unseen == 70


async def test_what_is_due_is_counted_beyond_a_line_of_what_is_due_soon(rig: Rig) -> None:
    ahead = [NewJob(name, priority=1, delay_seconds=60) for name in "ab" * (LINE_MAX // 2)]
    due = [NewJob(name) for name in "ab" * (LINE_MAX // 2 + 50)]
    await rig.engine.jobs.enqueue([*ahead, *due])
    view = await rig.engine.queue.observe(10_000, horizon_seconds=90)
    assert view.due == len(due)
    assert view.line is not None
    assert sum(one.number for one in view.line.waiting) == LINE_MAX
