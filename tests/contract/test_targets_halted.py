"""What halts a target, and what lets it go on."""

import pytest

from musterd.store.jobs import JobFilter, NewJob
from musterd.store.lifecycle import Action, JobState
from tests.contract.job_tools import ending, ids, settle, state_of, take, take_one
from tests.contract.rigs import Rig
from tests.contract.target_tools import check, one_of, put_target, runs_next, take_all


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.PAUSED])
async def test_one_that_failed_or_is_paused_halts_its_target(rig: Rig, state: JobState) -> None:
    first, second = await put_target(rig.engine, 0, 0)
    claim = await one_of(rig)
    assert await runs_next(rig, claim, state=state) == []
    view = await rig.engine.queue.target("t")
    assert view is not None
    assert (view.halted, view.holder.id, view.first_behind) == (True, first, (second,))
    await rig.engine.control.apply(Action.RESUME, first)
    check(rig)
    again = await one_of(rig)
    assert again.id == first
    assert await runs_next(rig, again) == [second]


@pytest.mark.parametrize("action", [Action.CLEAR, Action.CANCEL])
async def test_a_paused_one_that_is_canceled_or_cleared_makes_way(rig: Rig, action: Action) -> None:
    _, second = await put_target(rig.engine, 0, 0)
    claim = await one_of(rig)
    assert await runs_next(rig, claim, state=JobState.PAUSED) == []
    await rig.engine.control.apply(action, claim.id)
    assert (await one_of(rig)).id == second


async def test_a_failed_one_that_is_cleared_makes_way(rig: Rig) -> None:
    first, second = await put_target(rig.engine, 0, 0)
    claim = await one_of(rig)
    assert await runs_next(rig, claim, state=JobState.FAILED) == []
    await rig.engine.control.apply(Action.CLEAR, first)
    assert (await one_of(rig)).id == second
    assert await state_of(rig.engine, first) is JobState.FAILED
    await rig.engine.control.apply(Action.RESUME, first)  # waits its turn now
    assert await take_all(rig.engine) == []
    check(rig)


async def test_a_waiting_one_that_is_paused_halts_its_target(rig: Rig) -> None:
    first, second, third = await put_target(rig.engine, 0, 0, 0)
    claim = await one_of(rig)
    await rig.engine.control.apply(Action.PAUSE, third)
    assert await runs_next(rig, claim) == []
    await rig.engine.control.apply(Action.RESUME, third)
    assert ids(await take_all(rig.engine)) == [second]
    check(rig)
    assert claim.id == first


async def test_a_free_target_is_halted_by_a_waiting_one_too(rig: Rig) -> None:
    first, second = await put_target(rig.engine, 0, 0)
    await rig.engine.control.apply(Action.PAUSE, second)
    view = await rig.engine.queue.target("t")
    assert view is not None
    assert (view.halted, view.holder.id) == (True, second)
    assert await take_all(rig.engine) == []
    check(rig)
    await rig.engine.control.apply(Action.CANCEL, second)
    assert (await one_of(rig)).id == first


async def test_the_next_one_can_be_paused_before_it_is_claimed(rig: Rig) -> None:
    _, second, third = await put_target(rig.engine, 0, 0, 0)
    await settle(rig.engine, ending((await take_all(rig.engine))[0]))
    await rig.engine.control.apply(Action.PAUSE, third)
    assert await take_all(rig.engine) == []
    check(rig)
    await rig.engine.control.apply(Action.PAUSE, second)
    await rig.engine.control.apply(Action.CANCEL, third)
    assert await take_all(rig.engine) == []
    await rig.engine.control.apply(Action.RESUME, second)
    assert (await one_of(rig)).id == second


async def test_each_of_two_that_halt_has_to_be_seen_to(rig: Rig) -> None:
    first, second, third = await put_target(rig.engine, 0, 0, 0)
    await rig.engine.control.apply(Action.PAUSE, first)
    await rig.engine.control.apply(Action.PAUSE, second)
    assert await take_all(rig.engine) == []
    rig.pass_time(1)
    await rig.engine.control.apply(Action.RESUME, first)
    assert await take_all(rig.engine) == []
    await rig.engine.control.apply(Action.CANCEL, second)
    claim = await one_of(rig)
    assert claim.id == third  # the first is due since it was resumed
    assert await runs_next(rig, claim) == [first]


@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.PENDING])
async def test_a_waiting_one_can_be_canceled(rig: Rig, state: JobState) -> None:
    (first,) = await put_target(rig.engine, 0)
    (waiting,) = await put_target(rig.engine, 0, hold=state is JobState.PENDING)
    (last,) = await put_target(rig.engine, 0)
    claim = await one_of(rig)
    await rig.engine.control.apply(Action.CANCEL, waiting)
    check(rig)
    assert await runs_next(rig, claim) == [last]
    assert claim.id == first


async def test_a_released_one_takes_its_place(rig: Rig) -> None:
    (held,) = await put_target(rig.engine, 3, hold=True)
    (first,) = await put_target(rig.engine, 0)
    claim = await one_of(rig)
    assert claim.id == first
    await rig.engine.control.apply(Action.RELEASE, held)
    assert await take_all(rig.engine) == []
    assert await runs_next(rig, claim) == [held]


async def test_halted_targets_are_counted(rig: Rig) -> None:
    assert (await rig.engine.queue.counts()).targets_halted == 0
    ends = {"a": JobState.FAILED, "b": JobState.PAUSED, "c": JobState.SUCCEEDED}
    for target, state in ends.items():
        await rig.engine.jobs.enqueue([NewJob("noop", target=target)] * 2)
        claims = await take(rig.engine, workers=9)
        for claim in claims:
            if claim.target == target:
                await settle(rig.engine, ending(claim, state))
    await rig.engine.jobs.enqueue([NewJob("noop", priority=9)])
    await settle(rig.engine, ending(await take_one(rig.engine), JobState.FAILED))
    assert (await rig.engine.queue.counts()).targets_halted == 2, (
        "a job without a target halts none"
    )
    (failed,) = await rig.engine.jobs.find(JobFilter(states=(JobState.FAILED,), target="a"))
    await rig.engine.control.apply(Action.CLEAR, failed.id)
    assert (await rig.engine.queue.counts()).targets_halted == 1


async def test_halted_targets_are_counted_up_to_a_thousand(rig: Rig) -> None:
    await rig.engine.jobs.enqueue([NewJob("noop", target=f"t{n}") for n in range(1005)])
    rig.raw("update job_rows set state = 'paused'")
    assert (await rig.engine.queue.counts()).targets_halted == 1000
