"""Schedules in the store: a slot is seen to once, whoever comes and however often."""

from datetime import datetime, timedelta

import attrs
import pytest
import trio

from musterd.store.jobs import JobFilter, NewJob
from musterd.store.report import job_object
from musterd.store.schedules import Firing, ScheduleRecord
from musterd.store.words import time_text
from tests.contract.job_tools import ending, settle, take, take_one
from tests.contract.phase_tools import look
from tests.contract.rigs import Rig, closing_engine

MINUTE = timedelta(minutes=1)


def firing(slot: datetime | None, skip_if_busy: bool = False) -> Firing:
    return Firing("nightly", slot, "report", '{"scope": "all"}', 3, "reports", skip_if_busy)


async def known(rig: Rig) -> ScheduleRecord:
    (found,) = await rig.engine.schedules.know(["nightly"])
    return found


async def test_a_new_schedule_begins_now(rig: Rig) -> None:
    record = await known(rig)
    assert abs(record.now - record.last_slot) < timedelta(seconds=5)
    rig.pass_time(60)
    later = await known(rig)
    assert timedelta(seconds=59) < later.now - later.last_slot < timedelta(seconds=65)
    assert (later.fired, later.skipped, later.missed, later.last_job_id) == (0, 0, 0, None)


async def test_a_slot_makes_one_job(rig: Rig) -> None:
    slot = (await known(rig)).now + MINUTE
    first = await rig.engine.schedules.fire(firing(slot))
    assert first.taken
    assert await rig.engine.schedules.fire(firing(slot)) == (False, None)
    assert await rig.engine.schedules.fire(firing(slot - MINUTE / 2)) == (False, None)
    (job,) = await rig.engine.jobs.find(JobFilter())
    assert (job.id, job.kind, job.priority, job.target) == (first.job_id, "report", 3, "reports")
    record = await known(rig)
    assert (record.last_slot, record.last_job_id, record.fired) == (slot, job.id, 1)
    assert record.last_job_state == "queued"


async def test_a_job_of_a_schedule_says_for_which_slot_it_is(rig: Rig) -> None:
    slot = (await known(rig)).now + MINUTE
    made = await rig.engine.schedules.fire(attrs.evolve(firing(slot), target=None))
    await rig.engine.schedules.fire(attrs.evolve(firing(None), target=None))
    await rig.engine.jobs.enqueue([NewJob("report")])
    by_hand, plain = ("nightly", None), (None, None)
    claims = await take(rig.engine, workers=3)
    said = [(claim.schedule, claim.scheduled_for) for claim in claims]
    assert said == [("nightly", slot), by_hand, plain]
    back = await rig.engine.leases.claims_under(claims[0].token)
    assert [(claim.schedule, claim.scheduled_for) for claim in back] == said
    record = await look(rig.engine, made.job_id or 0)
    shown = job_object(record, "default", None)
    assert (shown["schedule"], shown["scheduled_for"]) == ("nightly", time_text(slot))
    rows = rig.raw("select count(scheduled_for), count(schedule) from jobs")
    assert rows == [(1, 2)]


async def test_a_busy_slot_before_it_is_left_alone(rig: Rig) -> None:
    slot = (await known(rig)).now + MINUTE
    await rig.engine.schedules.fire(firing(slot))
    skipped = await rig.engine.schedules.fire(firing(slot + MINUTE, skip_if_busy=True))
    assert skipped == (True, None)
    assert (await known(rig)).skipped == 1
    await settle(rig.engine, ending(await take_one(rig.engine)))
    again = await rig.engine.schedules.fire(firing(slot + 2 * MINUTE, skip_if_busy=True))
    assert again.job_id is not None
    record = await known(rig)
    assert (record.last_slot, record.fired, record.skipped) == (slot + 2 * MINUTE, 2, 1)


async def test_slots_are_let_go(rig: Rig) -> None:
    now = (await known(rig)).now
    assert await rig.engine.schedules.let_go("nightly", now + MINUTE, 7)
    assert not await rig.engine.schedules.let_go("nightly", now + MINUTE, 7)
    assert not (await rig.engine.schedules.fire(firing(now + MINUTE))).taken
    assert (await known(rig)).missed == 7


async def test_a_firing_without_a_slot_moves_none(rig: Rig) -> None:
    before = await known(rig)
    made = await rig.engine.schedules.fire(firing(None))
    assert made.job_id is not None
    after = await known(rig)
    assert (after.last_slot, after.fired, after.last_job_id) == (before.last_slot, 1, made.job_id)


async def test_slots_of_a_pause_are_nobodys(rig: Rig) -> None:
    schedules = rig.engine.schedules
    assert await schedules.steer("pause", "nightly")
    assert not await schedules.steer("pause", "nightly")
    assert (await known(rig)).paused_at is not None
    rig.pass_time(3600)
    assert await schedules.steer("resume", "nightly")
    assert not await schedules.steer("resume", "nightly")
    record = await known(rig)
    assert record.paused_at is None
    assert record.now - record.last_slot < timedelta(seconds=5)
    assert not await schedules.steer("resume", "unheard-of")


async def test_a_slot_of_a_paused_schedule_is_not_taken_but_a_job_by_hand_is_made(rig: Rig) -> None:
    """Whoever looked just before the pause comes too late."""
    slot = (await known(rig)).now + MINUTE
    await rig.engine.schedules.steer("pause", "nightly")
    assert await rig.engine.schedules.fire(firing(slot)) == (False, None)
    assert (await known(rig)).last_slot < slot
    assert (await rig.engine.schedules.fire(firing(None))).job_id is not None


async def test_a_job_by_hand_keeps_the_next_slot_away_and_hides_no_other(rig: Rig) -> None:
    slot = (await known(rig)).now + MINUTE
    by_slot = await rig.engine.schedules.fire(firing(slot))
    by_hand = await rig.engine.schedules.fire(firing(None))
    assert by_slot.job_id != by_hand.job_id
    assert (await known(rig)).last_job_id == by_hand.job_id
    for number in (1, 2):  # the job of the slot ends, then the one by hand: targets run in order
        found = await rig.engine.schedules.fire(firing(slot + number * MINUTE, skip_if_busy=True))
        assert found == (True, None)
        await settle(rig.engine, ending(await take_one(rig.engine)))
    last = await rig.engine.schedules.fire(firing(slot + 3 * MINUTE, skip_if_busy=True))
    assert last.job_id is not None
    assert (await known(rig)).skipped == 2


async def test_an_ended_job_by_hand_does_not_hide_that_of_the_slot(rig: Rig) -> None:
    slot = (await known(rig)).now + MINUTE
    await rig.engine.schedules.fire(attrs.evolve(firing(slot), target=None, priority=0))
    await rig.engine.schedules.fire(attrs.evolve(firing(None), target=None, priority=9))
    await settle(rig.engine, ending(await take_one(rig.engine)))  # the one by hand goes first
    assert (await known(rig)).last_job_state == "succeeded"
    found = await rig.engine.schedules.fire(firing(slot + MINUTE, skip_if_busy=True))
    assert found == (True, None)


async def test_a_slot_far_ahead_of_the_clock_is_taken_back_once(rig: Rig) -> None:
    now = (await known(rig)).now
    await rig.engine.schedules.fire(firing(now + timedelta(days=400)))
    hours = timedelta(hours=3)
    assert await rig.engine.schedules.rewind("nightly", hours)
    assert not await rig.engine.schedules.rewind("nightly", hours)
    record = await known(rig)
    assert timedelta(0) <= record.now - record.last_slot < timedelta(seconds=5)
    assert (await rig.engine.schedules.fire(firing(now + hours))).taken
    assert not await rig.engine.schedules.rewind("nightly", hours)


@pytest.mark.parametrize("count", [40])
async def test_of_many_at_once_one_sees_to_each_slot(shared: Rig, count: int) -> None:
    start = (await known(shared)).now
    made: list[int] = []
    another = shared.another()
    async with closing_engine(another):
        await another.open()

        async def fire_all(number: int) -> None:
            engine = (shared.engine, another)[number % 2]
            for place in range(1, count + 1):
                fired = await engine.schedules.fire(firing(start + place * MINUTE))
                if fired.job_id is not None:
                    made.append(fired.job_id)

        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(fire_all, number)
    assert len(made) == len(set(made)) == (await known(shared)).fired <= count
    assert len(await shared.engine.jobs.find(JobFilter(limit=1000))) == len(made)
    assert (await known(shared)).last_slot == start + count * MINUTE
