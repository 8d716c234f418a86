"""Keys against doubles: of jobs with the same key one is made."""

import pytest
import trio

from musterd.store.errors import InputRefused
from musterd.store.jobs import Enqueued, NewJob
from musterd.store.lifecycle import Action, JobState
from tests.contract.job_tools import ending, settle, take, take_one
from tests.contract.rigs import Rig, closing_engine

ONCE = NewJob("a", dedup_key="k")


async def test_while_a_job_holds_the_key_no_other_is_made(rig: Rig) -> None:
    (first,) = await rig.engine.jobs.enqueue_keyed([ONCE])
    assert first.is_new
    assert await rig.engine.jobs.enqueue_keyed([ONCE, ONCE]) == [Enqueued(first.id, False)] * 2
    assert await rig.engine.jobs.enqueue([ONCE]) == [first.id]
    assert (await rig.engine.queue.counts()).enqueued_total == 1
    record = await rig.engine.jobs.get(first.id)
    assert record is not None
    assert record.dedup_key == "k"
    other, plain = await rig.engine.jobs.enqueue_keyed([NewJob("a", dedup_key="K"), NewJob("a")])
    assert (other.is_new, plain.is_new) == (True, True)


async def test_within_one_call_the_first_has_the_key(rig: Rig) -> None:
    one, two, three = await rig.engine.jobs.enqueue_keyed([ONCE, NewJob("b"), ONCE])
    assert (one.is_new, two.is_new, three) == (True, True, Enqueued(one.id, False))
    assert one.id < two.id


@pytest.mark.parametrize("end", [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED])
async def test_a_job_that_has_ended_holds_no_key(rig: Rig, end: JobState) -> None:
    (first,) = await rig.engine.jobs.enqueue_keyed([ONCE])
    claim = await take_one(rig.engine)
    assert not (await rig.engine.jobs.enqueue_keyed([ONCE]))[0].is_new
    await settle(rig.engine, ending(claim, end))
    (second,) = await rig.engine.jobs.enqueue_keyed([ONCE])
    assert second.is_new
    assert second.id != first.id


async def test_a_held_or_paused_job_holds_its_key(rig: Rig) -> None:
    (job_id,) = await rig.engine.jobs.enqueue([NewJob("a", dedup_key="k", hold=True)])
    assert await rig.engine.jobs.enqueue([ONCE]) == [job_id]
    await rig.engine.control.apply(Action.RELEASE, job_id)
    await rig.engine.control.apply(Action.PAUSE, job_id)
    assert await rig.engine.jobs.enqueue([ONCE]) == [job_id]
    assert await take(rig.engine) == []


async def test_a_job_that_is_gone_holds_no_key(rig: Rig) -> None:
    (job_id,) = await rig.engine.jobs.enqueue([ONCE])
    rig.raw(f"delete from job_rows where id = {job_id}")
    assert (await rig.engine.jobs.enqueue_keyed([ONCE]))[0].is_new


async def test_a_key_may_be_held_for_ever(rig: Rig) -> None:
    (job_id,) = await rig.engine.jobs.enqueue([NewJob("a", dedup_key="k", dedup_scope="forever")])
    await settle(rig.engine, ending(await take_one(rig.engine)))
    rig.pass_time(10**9)
    assert await rig.engine.jobs.enqueue([ONCE]) == [job_id]


async def test_a_key_may_be_held_for_a_time(rig: Rig) -> None:
    (job_id,) = await rig.engine.jobs.enqueue([NewJob("a", dedup_key="k", dedup_scope=60.5)])
    await settle(rig.engine, ending(await take_one(rig.engine)))
    rig.pass_time(50)
    assert await rig.engine.jobs.enqueue([ONCE]) == [job_id]
    rig.pass_time(15)
    assert (await rig.engine.jobs.enqueue_keyed([ONCE]))[0].is_new


@pytest.mark.parametrize("key", ["", "x" * 201, "a\0b", "\ud800"], ids=ascii)
async def test_a_bad_key_is_refused(rig: Rig, key: str) -> None:
    with pytest.raises(InputRefused):
        await rig.engine.jobs.enqueue([NewJob("good"), NewJob("a", dedup_key=key)])
    assert (await rig.engine.queue.counts()).enqueued_total == 0


async def test_of_many_at_once_one_makes_the_job(shared: Rig) -> None:
    made: list[Enqueued] = []
    keys = [f"k{number}" for number in range(5)]

    async def enqueue(turn: int) -> None:
        order = keys[turn % 5 :] + keys[: turn % 5]  # each in an order of its own
        made.extend(
            await engines[turn % 2].jobs.enqueue_keyed([NewJob(k, dedup_key=k) for k in order])
        )

    async with closing_engine(shared.another()) as other:
        await other.open()
        engines = (shared.engine, other)
        async with trio.open_nursery() as nursery:
            for turn in range(12):
                nursery.start_soon(enqueue, turn)
    assert len(made) == 60
    assert len({one.id for one in made}) == sum(one.is_new for one in made) == 5
    assert (await shared.engine.queue.counts()).enqueued_total == 5
