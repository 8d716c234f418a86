"""Claims: which jobs, in which order, what a claim writes."""

from random import Random
from uuid import uuid4

import pytest

from musterd.store.jobs import NewJob
from musterd.store.leases import ClaimRequest, Ends
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.postgres.claiming import Claimed, Claimer
from musterd.store.postgres.connection import TrioConnection
from tests.contract.job_tools import (
    ending,
    ids,
    put,
    reap_by,
    settle,
    state_of,
    take,
    take_one,
)
from tests.contract.rigs import PostgresRig, Rig


async def test_higher_priority_comes_first_then_due_time_then_id(rig: Rig) -> None:
    late, first, high, second = await rig.engine.jobs.enqueue(
        [
            NewJob("a", delay_seconds=10),
            NewJob("a"),
            NewJob("a", priority=5, delay_seconds=20),
            NewJob("a"),
        ]
    )
    rig.pass_time(60)
    assert ids(await take(rig.engine, workers=4)) == [high, first, second, late]


@pytest.mark.parametrize("ahead", [0, 1, 3])
async def test_a_claim_that_meets_a_target_takes_as_many_as_were_asked_for(
    rig: Rig, ahead: int
) -> None:
    """It may have taken some before, and goes on from there."""
    jobs = [NewJob("a"), NewJob("a"), NewJob("a", target="t"), *[NewJob("a")] * 6]
    made = await rig.engine.jobs.enqueue(jobs)
    claims = await take(rig.engine, ahead=ahead)
    assert ids(claims) == made[: 1 + ahead]
    assert [claim.worker for claim in claims] == [1, *[None] * ahead]


async def test_the_order_is_exact_however_many_are_taken_at_once(rig: Rig) -> None:
    rng = Random(7)
    jobs = [
        NewJob("a", priority=rng.randint(-3, 3), delay_seconds=rng.randint(0, 5))
        for _ in range(150)
    ]
    made = await rig.engine.jobs.enqueue(jobs)
    rig.pass_time(60)
    wanted = sorted(
        zip(made, jobs, strict=True),
        key=lambda one: (-(one[1].priority or 0), one[1].delay_seconds, one[0]),
    )
    taken: list[int] = []
    while claims := await take(rig.engine, workers=rng.randint(1, 9), ahead=rng.randint(0, 9)):
        taken += ids(claims)
    assert taken == [job_id for job_id, _ in wanted]


async def test_the_extremes_of_priority_are_in_order(rig: Rig) -> None:
    low, middle, high = await put(rig.engine, -32768, 0, 32767)
    assert ids(await take(rig.engine, workers=3)) == [high, middle, low]


async def test_a_job_is_not_claimed_before_its_due_time(rig: Rig) -> None:
    (job_id,) = await rig.engine.jobs.enqueue([NewJob("a", delay_seconds=30)])
    assert await take(rig.engine) == []
    rig.pass_time(29)
    assert await take(rig.engine) == []
    rig.pass_time(2)
    assert ids(await take(rig.engine)) == [job_id]


async def test_jobs_that_are_not_yet_due_stand_in_nobodys_way(rig: Rig) -> None:
    await rig.engine.jobs.enqueue([NewJob("a", priority=9, delay_seconds=999)] * 3)
    (low,) = await put(rig.engine, -9)
    assert ids(await take(rig.engine, workers=3)) == [low]


async def test_the_first_jobs_are_the_workers_and_run_the_rest_is_assigned(rig: Rig) -> None:
    await put(rig.engine, 0, 0, 0)
    claims = await take(rig.engine, workers=2, ahead=1)
    assert [claim.worker for claim in claims] == [1, 2, None]
    records = [await rig.engine.jobs.get(claim.id) for claim in claims]
    assert [r.state for r in records if r] == [
        JobState.RUNNING,
        JobState.RUNNING,
        JobState.ASSIGNED,
    ]
    assert [r.started_at is None for r in records if r] == [False, False, True]


async def test_a_claim_takes_no_more_than_was_asked_for(rig: Rig) -> None:
    await put(rig.engine, *[0] * 10)
    assert len(await take(rig.engine, workers=2, ahead=3)) == 5
    assert len(await take(rig.engine, workers=0, ahead=2)) == 2
    assert await take(rig.engine, workers=0, ahead=0) == []
    assert len(await take(rig.engine, workers=9, ahead=9)) == 3


async def test_of_many_that_are_alike_no_more_are_taken_either(rig: Rig) -> None:
    """Within a stretch of them, and beyond its end."""
    made = await rig.engine.jobs.enqueue([NewJob("report")] * 320)
    for first, count in ((0, 3), (3, 1), (4, 30), (34, 286)):
        assert ids(await take(rig.engine, workers=count)) == made[first : first + count]
    assert await take(rig.engine) == []


async def test_a_claim_says_all_that_its_worker_needs(rig: Rig) -> None:
    payload = '{"a": [1, "ü"]}'
    (job_id,) = await rig.engine.jobs.enqueue([NewJob("report", payload, max_attempts=4)])
    rig.pass_time(12)
    token = uuid4()
    (claim,) = await take(rig.engine, token=token)
    assert claim[:2] == (job_id, "report")
    assert claim.payload.replace(" ", "") == payload.replace(" ", "")
    assert claim[3:6] == (1, 4, 0)
    assert claim.waited_seconds == pytest.approx(12, abs=2)
    assert (claim.worker, claim.token) == (1, token)


async def test_a_claim_leases_its_job_to_the_node(rig: Rig) -> None:
    (job_id,) = await put(rig.engine, 0)
    await take(rig.engine, node="south")
    record = await rig.engine.jobs.get(job_id)
    assert record is not None
    assert record.lease_expires_at is not None
    assert record.heartbeat_at is not None
    lease = record.lease_expires_at - record.heartbeat_at
    assert (record.node, record.worker, lease.total_seconds()) == ("south", 1, 30)


async def test_each_claim_counts_an_attempt_and_forgets_the_last_one(rig: Rig) -> None:
    (job_id,) = await put(rig.engine, 0)
    for attempt in (1, 2, 3):
        claim = await take_one(rig.engine)
        assert (claim.id, claim.attempt) == (job_id, attempt)
        await settle(rig.engine, ending(claim, JobState.QUEUED, result="1"))
    claim = await take_one(rig.engine)
    record = await rig.engine.jobs.get(job_id)
    assert record is not None
    assert (record.result, record.finished_at, record.attempt) == (None, None, 4)


async def test_a_job_is_claimed_once(rig: Rig) -> None:
    await put(rig.engine, 0)
    assert len(await take(rig.engine)) == 1
    assert await take(rig.engine) == []


async def test_a_pending_job_is_not_claimed(rig: Rig) -> None:
    await put(rig.engine, 0)
    rig.raw(
        "insert into job_rows (kind, state, created_at, run_at)"
        " select kind, 'pending', created_at, run_at from job_rows"
    )
    assert len(await take(rig.engine, workers=5)) == 1


async def test_nothing_is_claimed_while_the_queue_is_paused(rig: Rig) -> None:
    (job_id,) = await put(rig.engine, 0)
    assert await rig.engine.queue.pause("anna") is True
    assert await rig.engine.queue.pause("bert") is False
    counts = await rig.engine.queue.counts()
    assert counts.paused_by == "anna"
    assert counts.paused_at is not None
    assert (await rig.engine.queue.observe(10)).paused is True
    assert await take(rig.engine) == []
    assert await rig.engine.queue.resume() is True
    assert await rig.engine.queue.resume() is False
    assert (await rig.engine.queue.observe(10)).paused is False
    assert ids(await take(rig.engine)) == [job_id]


async def test_a_paused_queue_still_settles(rig: Rig) -> None:
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    await rig.engine.queue.pause("anna")
    assert (await settle(rig.engine, ending(claim))).rejected == frozenset()
    assert await state_of(rig.engine, claim.id) is JobState.SUCCEEDED


async def test_a_claim_whose_reply_was_lost_is_read_back_in_order(rig: Rig) -> None:
    await put(rig.engine, 0, 5, -5)
    token = uuid4()
    claims = await take(rig.engine, workers=2, ahead=1, token=token)
    again = await rig.engine.leases.claims_under(token)
    assert [one._replace(waited_seconds=0) for one in again] == [
        one._replace(waited_seconds=0) for one in claims
    ]
    assert await rig.engine.leases.claims_under(uuid4()) == []


async def test_what_was_settled_or_lost_is_not_read_back_as_a_claim(rig: Rig) -> None:
    await put(rig.engine, 0, 0)
    token = uuid4()
    first, second = await take(rig.engine, workers=2, token=token)
    await settle(rig.engine, ending(first))
    assert ids(await rig.engine.leases.claims_under(token)) == [second.id]
    await settle(rig.engine, ending(second, JobState.QUEUED, AttemptOutcome.RELEASED))
    assert await rig.engine.leases.claims_under(token) == []


async def test_settling_and_claiming_happen_together(rig: Rig) -> None:
    await put(rig.engine, 0, 0)
    claim = await take_one(rig.engine)
    visit = await rig.engine.leases.exchange(Ends([ending(claim)]), _request())
    assert visit.rejected == frozenset()
    assert len(visit.claims) == 1
    assert await state_of(rig.engine, claim.id) is JobState.SUCCEEDED


async def test_a_job_that_is_lost_while_a_claim_goes_on_is_claimed_once(
    postgres_rig: PostgresRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim goes on behind the job with a target, in a statement of its own; before that its
    node stands still for longer than a lease.
    """
    engine, go_on = postgres_rig.engine, Claimer._go_on  # pyright: ignore[reportPrivateUsage]
    (lost,) = await put(engine, 0)
    await engine.jobs.enqueue([NewJob("report", target="t")])

    async def go_on_late(claimer: Claimer, conn: TrioConnection, rest: ClaimRequest) -> Claimed:
        postgres_rig.expire(lost)
        assert ids(await engine.leases.reap(reap_by("requeue"))) == [lost]
        return await go_on(claimer, conn, rest)

    monkeypatch.setattr(Claimer, "_go_on", go_on_late)
    claims = await take(engine, workers=4)
    assert sorted((one.id, one.attempt) for one in claims) == [(lost, 2), (lost + 1, 1)]
    assert (await settle(engine, *map(ending, claims))).rejected == frozenset()
    record = await engine.jobs.get(lost)
    assert record is not None
    assert [one.attempt for one in record.attempts] == [1, 2]


def _request() -> ClaimRequest:
    return ClaimRequest(uuid4(), "north", (1,), 0, 30.0)
