"""Hours beside the model as stores keep them: written once, read by time, deleted when old."""

from datetime import UTC, datetime, timedelta

from musterd.store.compared_hours import ComparedHour, HourFigures
from tests.contract.rigs import Rig, closing_engine

HOUR = timedelta(hours=1)
WHOLE = HourFigures(0.001, 0.25, 12.5)
MODEL = HourFigures(0.0, 0.5, 13.0, 7_200.0)


async def last_hour(rig: Rig) -> datetime:
    now = datetime.fromtimestamp(await rig.engine.health.now(), UTC)
    return now.replace(minute=0, second=0, microsecond=0) - HOUR


async def test_an_hour_comes_back_as_it_was_written(rig: Rig) -> None:
    at = await last_hour(rig)
    compared = ComparedHour(at, 3_600.0, 1_234, WHOLE, MODEL, HourFigures(0.0, 2.0, 3.0, 60.5))
    skipped = ComparedHour(at - HOUR, skipped='it took "longer" than 150 s')
    await rig.engine.journal.write_hour(compared)
    await rig.engine.journal.write_hour(skipped)
    assert await rig.engine.journal.hours(None, None, 10) == [skipped, compared]


async def test_the_first_who_compares_an_hour_has_the_word(shared: Rig) -> None:
    at = await last_hour(shared)
    first = ComparedHour(at, 3_600.0, 100, WHOLE, MODEL)
    await shared.engine.journal.write_hour(first)
    async with closing_engine(shared.another()) as other:
        await other.open()
        await other.journal.write_hour(ComparedHour(at, skipped="so"))
        assert await other.journal.hours(None, None, 10) == [first]


async def test_hours_that_touch_a_stretch_of_time_are_read(rig: Rig) -> None:
    at, journal = await last_hour(rig), rig.engine.journal
    hours = [ComparedHour(at - n * HOUR, skipped="so") for n in (3, 2, 1, 0)]
    for one in reversed(hours):
        await journal.write_hour(one)
    second = timedelta(seconds=1)
    assert await journal.hours(None, None, 2) == hours[2:]
    assert await journal.hours(at, None, 10) == hours[3:]
    assert await journal.hours(at - second, None, 10) == hours[2:]
    assert await journal.hours(None, at - second, 10) == hours[:3]
    assert await journal.hours(at - HOUR, at - second, 10) == [hours[2]]
    first, last = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
    assert await journal.hours(first, last, 10**9) == hours


async def test_old_hours_are_forgotten_in_batches(rig: Rig) -> None:
    at, journal = await last_hour(rig), rig.engine.journal
    hours = [ComparedHour(at - n * HOUR, skipped="so") for n in range(7)]
    for one in hours:
        await journal.write_hour(one)
    two_hours = 2 * HOUR.total_seconds()  # the first two, and perhaps the third, are younger
    assert [await journal.forget(two_hours, 2) for _ in range(2)] == [2, 2]
    while await journal.forget(two_hours, 2):
        pass
    left = await journal.hours(None, None, 10)
    assert len(left) in (2, 3)
    assert left == hours[len(left) - 1 :: -1]
    rig.pass_time(4 * two_hours)
    while await journal.forget(two_hours, 2):
        pass
    assert await journal.hours(None, None, 10) == []
