"""Enqueueing: what becomes a job, and what is refused."""

from datetime import UTC, datetime, timedelta

import pytest

from musterd.store.errors import InputRefused
from musterd.store.jobs import NewJob
from musterd.store.lifecycle import JobState
from tests.contract.job_tools import ids, take
from tests.contract.rigs import Rig

ODD_TEXTS = [
    "ü",
    "日本語",
    "🦀",
    "a'b\"c",
    "%s %(x)s {schema} :id ?",
    "\\u00e9 \\n",
    "\u2028",
    "x" * 100,
]


async def test_ids_come_back_in_the_order_of_the_jobs(rig: Rig) -> None:
    made = await rig.engine.jobs.enqueue([NewJob(f"kind{number}") for number in range(20)])
    assert made == sorted(made)
    records = [await rig.engine.jobs.get(job_id) for job_id in made]
    assert [record.kind for record in records if record] == [f"kind{n}" for n in range(20)]


async def test_no_jobs_are_no_work(rig: Rig) -> None:
    assert await rig.engine.jobs.enqueue([]) == []
    assert (await rig.engine.queue.counts()).enqueued_total == 0


async def test_a_new_job_has_what_was_asked_for_and_no_more(rig: Rig) -> None:
    (job_id,) = await rig.engine.jobs.enqueue([NewJob("a", "[1]", priority=7, max_attempts=3)])
    record = await rig.engine.jobs.get(job_id)
    assert record is not None
    assert (record.state, record.payload, record.priority) == (JobState.QUEUED, "[1]", 7)
    assert (record.attempt, record.max_attempts, record.forgiven) == (0, 3, 0)
    assert record.run_at == record.created_at
    assert record.created_at.utcoffset() == timedelta(0)
    nothing = (record.result, record.error, record.reason, record.started_at, record.finished_at)
    assert nothing == (None,) * 5
    assert (record.node, record.worker, record.attempts) == (None, None, ())


async def test_a_delay_counts_from_the_creation(rig: Rig) -> None:
    (job_id,) = await rig.engine.jobs.enqueue([NewJob("a", delay_seconds=2.5)])
    record = await rig.engine.jobs.get(job_id)
    assert record is not None
    assert record.run_at - record.created_at == timedelta(seconds=2.5)


async def test_a_due_time_may_be_named_in_any_zone(rig: Rig) -> None:
    due = datetime(2099, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
    elsewhere = due.astimezone(datetime.fromisoformat("2099-01-01T00:00:00+05:30").tzinfo)
    (job_id,) = await rig.engine.jobs.enqueue([NewJob("a", run_at=elsewhere)])
    record = await rig.engine.jobs.get(job_id)
    assert record is not None
    assert record.run_at == due


@pytest.mark.parametrize("text", ODD_TEXTS, ids=ascii)
async def test_odd_texts_come_back_as_they_were(rig: Rig, text: str) -> None:
    payload = '{"v": "' + text.replace("\\", "\\\\").replace('"', '\\"') + '"}'
    (job_id,) = await rig.engine.jobs.enqueue([NewJob(text, payload)])
    record = await rig.engine.jobs.get(job_id)
    assert record is not None
    assert (record.kind, record.payload) == (text, payload)
    (claim,) = await take(rig.engine)
    assert (claim.kind, claim.payload) == (text, payload)


REFUSED = {
    "no JSON": NewJob("a", "{"),
    "nothing": NewJob("a", ""),
    "NaN": NewJob("a", "[NaN]"),
    "NUL in the payload": NewJob("a", '"\0"'),
    "a lone surrogate": NewJob("a", '"\ud800"'),
    "no kind": NewJob(""),
    "NUL in the kind": NewJob("a\0b"),
    "a surrogate in the kind": NewJob("\udfff"),
    "a long kind": NewJob("x" * 101),
    "a high priority": NewJob("a", priority=32768),
    "a low priority": NewJob("a", priority=-32769),
    "a huge priority": NewJob("a", priority=10**30),
    "no attempts": NewJob("a", max_attempts=0),
    "a huge number of attempts": NewJob("a", max_attempts=10**30),
    "a delay beyond all time": NewJob("a", delay_seconds=1e300),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_a_bad_job_is_refused_and_takes_the_others_with_it(rig: Rig, what: str) -> None:
    with pytest.raises(InputRefused):
        await rig.engine.jobs.enqueue([NewJob("good"), REFUSED[what], NewJob("good")])
    assert (await rig.engine.queue.counts()).enqueued_total == 0
    assert len(await rig.engine.jobs.enqueue([NewJob("good")])) == 1


async def test_ten_thousand_jobs_at_once_keep_their_order(rig: Rig) -> None:
    made = await rig.engine.jobs.enqueue([NewJob("a", f"[{number}]") for number in range(10_000)])
    assert len(set(made)) == 10_000
    assert made == sorted(made)
    taken = await take(rig.engine, workers=500)
    assert ids(taken) == made[:500]
    assert (await rig.engine.queue.counts()).by_state[JobState.QUEUED] == 9_500
