"""Jobs of one target run one at a time, in order, and what halts a target halts it for all."""

import pytest

from musterd.store.jobs import JobFilter, NewJob
from musterd.store.lifecycle import Action, AttemptOutcome, JobState
from tests.contract.job_tools import ending, ids, put, settle, state_of, take, visit
from tests.contract.rigs import Rig
from tests.contract.target_tools import check, one_of, put_target, rule, runs_next, take_all

RELEASED = AttemptOutcome.RELEASED
SNOOZED = AttemptOutcome.SNOOZED


async def test_they_run_one_at_a_time_in_order(rig: Rig) -> None:
    made = await put_target(rig.engine, 0, 0, 0, 0)
    seen: list[int] = []
    for _ in made:
        claim = await one_of(rig)
        assert await take_all(rig.engine) == []
        assert claim.target == "t"
        seen.append(claim.id)
        await settle(rig.engine, ending(claim))
    assert seen == made
    assert rig.raw("select * from target_holders") == []


async def test_the_visit_that_ends_one_brings_the_next(rig: Rig) -> None:
    first, second, third = await put_target(rig.engine, 0, 0, 0)
    claim = await one_of(rig)
    assert claim.id == first
    exchange = await visit(rig.engine, 1, [ending(claim)])
    assert ids(exchange.claims) == [second]
    assert await runs_next(rig, *exchange.claims) == [third]


async def test_higher_priority_goes_first_within_a_target(rig: Rig) -> None:
    low, lower, high = await put_target(rig.engine, 0, -1, 5)
    claim = await one_of(rig)
    assert claim.id == high
    (urgent,) = await put_target(rig.engine, 9)
    assert await take_all(rig.engine) == []
    for following in (urgent, low, lower):
        exchange = await take_all(rig.engine, 1, [ending(claim)])
        (claim,) = exchange
        assert claim.id == following


async def test_an_urgent_one_goes_before_one_that_is_next_and_not_yet_claimed(rig: Rig) -> None:
    first, second = await put_target(rig.engine, 0, 0)
    claim = await one_of(rig)
    assert await take_all(rig.engine) == []
    await settle(rig.engine, ending(claim))
    (urgent,) = await put_target(rig.engine, 5)
    held = await one_of(rig)
    assert (claim.id, held.id) == (first, urgent)
    assert await runs_next(rig, held) == [second]


async def test_targets_and_jobs_without_one_do_not_wait_for_each_other(rig: Rig) -> None:
    made = await put_target(rig.engine, 0, 0, 0)
    others = await put_target(rig.engine, 0, 0, target="u")
    (plain,) = await put(rig.engine, 0)
    assert sorted(ids(await take_all(rig.engine))) == sorted([made[0], others[0], plain])
    check(rig)


async def test_only_so_many_are_taken_as_were_asked_for(rig: Rig) -> None:
    await rig.engine.jobs.enqueue([NewJob("report", target=f"t{n % 7}") for n in range(70)])
    assert len(await take_all(rig.engine, 3)) == 3
    assert len(await take_all(rig.engine, 3)) == 3
    check(rig)
    assert len(await take_all(rig.engine, 9)) == 1


async def test_what_is_claimed_ahead_has_its_target(rig: Rig) -> None:
    first, _ = await put_target(rig.engine, 0, 0)
    assert ids(await take(rig.engine, workers=0, ahead=5)) == [first]
    assert await take_all(rig.engine) == []
    assert await state_of(rig.engine, first) is JobState.ASSIGNED


async def test_a_job_not_due_for_the_first_time_blocks_nobody(rig: Rig) -> None:
    (late,) = await put_target(rig.engine, 9, delay_seconds=60.0)
    (now,) = await put_target(rig.engine, 0)
    claim = await one_of(rig)
    assert claim.id == now
    assert await runs_next(rig, claim) == []
    rig.pass_time(90)
    assert (await one_of(rig)).id == late


@pytest.mark.parametrize("outcome", [AttemptOutcome.RETRYING, SNOOZED, RELEASED])
async def test_one_that_has_started_keeps_its_place(rig: Rig, outcome: AttemptOutcome) -> None:
    first, second = await put_target(rig.engine, 0, 0)
    claim = await one_of(rig)
    delay = None if outcome is RELEASED else 60.0
    await settle(rig.engine, ending(claim, JobState.QUEUED, outcome, delay_seconds=delay))
    await put_target(rig.engine, 9)
    if delay:
        assert await take_all(rig.engine) == []
        check(rig)
        rig.pass_time(90)
    again = await one_of(rig)
    assert (again.id, again.attempt) == (first, 2)
    await settle(rig.engine, ending(again, JobState.CANCELED))
    assert second not in ids(await take_all(rig.engine))  # the urgent one goes first


@pytest.mark.parametrize(
    ("on_lost", "next_place"), [("requeue", 0), ("fail", None), ("pause", None)]
)
async def test_a_lost_lease_goes_by_its_rule(
    rig: Rig, on_lost: str, next_place: int | None
) -> None:
    made = await put_target(rig.engine, 0, 0)
    await put(rig.engine, 0)
    await take_all(rig.engine)
    rig.pass_time(60)
    assert len(await rig.engine.leases.reap(rule(on_lost))) == 2
    check(rig)
    claims = [one for one in await take_all(rig.engine) if one.target is not None]
    assert ids(claims) == ([] if next_place is None else [made[next_place]])
    for job_id in (made[0], made[1]):
        await rig.engine.control.apply(Action.RESUME, job_id)
    check(rig)


async def test_a_lost_lease_of_one_to_be_canceled_makes_way(rig: Rig) -> None:
    first, second = await put_target(rig.engine, 0, 0)
    await take_all(rig.engine)
    await rig.engine.control.apply(Action.CANCEL, first)
    rig.pass_time(60)
    (reaped,) = await rig.engine.leases.reap(rule())
    assert (reaped.id, reaped.state) == (first, JobState.CANCELED)
    assert (await one_of(rig)).id == second


async def test_a_running_one_that_is_canceled_makes_way(rig: Rig) -> None:
    first, second = await put_target(rig.engine, 0, 0)
    claim = await one_of(rig)
    await rig.engine.control.apply(Action.CANCEL, first)
    assert await runs_next(rig, claim, state=JobState.QUEUED) == [second]
    assert await state_of(rig.engine, first) is JobState.CANCELED


async def test_a_settlement_that_comes_too_late_passes_nothing_on(rig: Rig) -> None:
    first, second = await put_target(rig.engine, 0, 0)
    late = await one_of(rig)
    rig.pass_time(60)
    await rig.engine.leases.reap(rule())
    again = await one_of(rig)
    assert (await settle(rig.engine, ending(late))).rejected == {first}
    check(rig)
    assert await take_all(rig.engine) == []
    assert await runs_next(rig, again) == [second]


async def test_a_lost_reply_is_read_back_with_its_target(rig: Rig) -> None:
    await put_target(rig.engine, 0)
    claim = await one_of(rig)
    assert [one.target for one in await rig.engine.leases.claims_under(claim.token)] == ["t"]


async def test_the_target_is_seen_everywhere(rig: Rig) -> None:
    made = await put_target(rig.engine, 0, 0, target="ü \\ \" '")
    await put(rig.engine, 0)
    listed = await rig.engine.jobs.find(JobFilter(target="ü \\ \" '"))
    assert [one.id for one in listed] == made[::-1]
    assert {one.target for one in listed} == {"ü \\ \" '"}
    assert rig.raw("select count(*) from jobs where target is not null") == [(2,)]


async def test_a_key_and_a_target_go_together(rig: Rig) -> None:
    wanted = NewJob("a", target="t", dedup_key="k")
    (first, again) = await rig.engine.jobs.enqueue_keyed([wanted, wanted])
    assert (first.is_new, again.is_new, again.id) == (True, False, first.id)
    record = await rig.engine.jobs.get(first.id)
    assert record is not None
    assert record.target == "t"


async def test_a_paused_queue_gives_nothing_and_loses_nothing(rig: Rig) -> None:
    _, second = await put_target(rig.engine, 0, 0)
    claim = await one_of(rig)
    await rig.engine.queue.pause("somebody")
    assert await runs_next(rig, claim) == []
    await rig.engine.queue.resume()
    assert (await one_of(rig)).id == second


async def test_what_stands_behind_is_queued_and_not_due(rig: Rig) -> None:
    await put_target(rig.engine, *[0] * 10)
    await take_all(rig.engine)
    assert (await rig.engine.queue.observe(100)).due == 0
    counts = await rig.engine.queue.counts()
    assert (counts.by_state[JobState.QUEUED], counts.due) == (9, 0)
    assert await rig.engine.queue.next_due_seconds() is None
    view = await rig.engine.queue.target("t")
    assert view is not None
    assert (view.behind, view.halted, view.reserved) == (9, False, False)
    assert await rig.engine.queue.target("u") is None


async def test_many_behind_one_are_soon_out_of_the_way(rig: Rig) -> None:
    for _ in range(6):
        await put_target(rig.engine, *[5] * 1000)
    plain = await put(rig.engine, 0, 0)
    claims = await take_all(rig.engine, 3)
    assert ids(claims)[1:] == plain
    (late,) = await put(rig.engine, 0)
    assert ids((await visit(rig.engine, 1)).claims) == [late]


async def test_a_claim_that_met_nothing_in_its_way_says_so(rig: Rig) -> None:
    await put_target(rig.engine, 0)
    exchange = await visit(rig.engine, 2)
    assert (len(exchange.claims), exchange.parked) == (1, 0)
