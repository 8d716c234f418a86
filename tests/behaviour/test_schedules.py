"""Two keepers of schedules on one store: one job a slot, whatever becomes of either."""

import random
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
import trio

from musterd.manager.duties.schedules import HELD_BACK_SECONDS, LOOK_SECONDS, MISSED_MAX, ON_TIME
from musterd.store.lifecycle import Action
from musterd.store.schedules import Firing
from tests.support.faulty_engine import Fault
from tests.support.schedule_scene import QUIET, SECOND, Scene, scene_of, schedules_of

SATURDAY = datetime(2026, 10, 24, 6, 0, 7, tzinfo=UTC)  # on Sunday at 3:00 Berlin goes back to 2:00
HOUR = 3600.0


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    QUIET.disabled = True
    yield
    QUIET.disabled = False


def every(start: datetime, end: datetime, seconds: int) -> list[datetime]:
    """The slots of `every_seconds`, counted by hand."""
    first = int(start.timestamp()) // seconds + 1
    last = int(end.timestamp()) // seconds
    return [datetime.fromtimestamp(count * seconds, UTC) for count in range(first, last + 1)]


@pytest.mark.parametrize("seed", range(4))
async def test_three_days_of_kills_and_an_hour_that_comes_twice_make_one_job_a_slot(
    seed: int,
) -> None:
    """What nobody was there for is made up for: `missed = "all"`."""
    catch_up = "timezone = 'Europe/Berlin'; missed = 'all'"
    schedules = schedules_of(
        nightly=f"cron = '30 2 * * *'; {catch_up}",
        hourly=f"cron = '15 * * * *'; {catch_up}",
        seconds=f"cron = '30 */20 * * * *'; {catch_up}",
        pulse="every_seconds = 900; missed = 'all'",
    )
    rng, end = random.Random(seed), SATURDAY + timedelta(days=3)
    # Three days of looks for what nobody here does would take long.
    async with scene_of(SATURDAY, schedules, look_seconds=900.0) as scene:
        keepers = [scene.keeper(number) for number in (1, 2)]
        for keeper in keepers:
            keeper.start()
        while (await scene.record("pulse")).now < end - timedelta(hours=8):
            await trio.sleep(rng.uniform(0, 6 * HOUR))
            keeper = rng.choice(keepers)
            keeper.kill()
            await trio.sleep(rng.choice((0, 1, 200, 4_000)))
            keeper.start()
        await scene.until(end)
        jobs = await scene.jobs()
        found = {name: scene.slots(name) for name in schedules}
        records = {name: await scene.record(name) for name in schedules}
    berlin = [datetime(2026, 10, day, 2, 30, tzinfo=UTC) for day in (25, 26, 27)]
    # The first of the two times that it is half past two on Sunday; then one hour from Greenwich.
    assert found["nightly"] == [
        berlin[0] - timedelta(hours=2), *(slot - timedelta(hours=1) for slot in berlin[1:])
    ]  # fmt: skip
    quarter = timedelta(minutes=15)
    assert found["hourly"] == [
        slot + quarter for slot in every(SATURDAY - quarter, end - quarter, 3600)
    ]
    half = timedelta(seconds=30)
    assert found["seconds"] == [slot + half for slot in every(SATURDAY - half, end - half, 1200)]
    assert found["pulse"] == every(SATURDAY, end, 900)
    assert len(jobs) == sum(map(len, found.values())) == sum(one.fired for one in records.values())
    assert all(one.missed == one.skipped == 0 for one in records.values())


async def test_slots_are_fired_as_their_time_comes() -> None:
    async with scene_of(SATURDAY, schedules_of(pulse="every_seconds = 60")) as scene:
        for number in (1, 2):
            scene.keeper(number).start()
        await trio.sleep(HOUR)
        late = await scene.lateness()
    assert len(late) == 60
    assert max(late) <= timedelta(seconds=0.1)


@pytest.mark.parametrize(("missed", "made"), [("skip", 0), ("once", 1), ("all", 60)])
async def test_what_an_hour_without_a_keeper_missed(missed: str, made: int) -> None:
    async with scene_of(
        SATURDAY, schedules_of(pulse=f"every_seconds = 60; missed = '{missed}'")
    ) as scene:
        keepers = [scene.keeper(number) for number in (1, 2)]
        await trio.sleep(HOUR - 20)  # the last slot is 33 s old then: too late to be on time
        for keeper in keepers:
            keeper.start()
        await trio.sleep(1)
        record = await scene.record("pulse")
        assert len(await scene.jobs()) == record.fired == max(0, made - (made == 60))
        assert record.missed == 59 - record.fired
        await trio.sleep(HOUR)
        assert (await scene.record("pulse")).fired == record.fired + 60
    latest = SATURDAY.replace(second=0) + timedelta(minutes=59)
    assert made == 0 or latest in scene.slots("pulse")


async def test_a_short_absence_is_no_absence() -> None:
    """A hand-over takes seconds: what came due meanwhile is on time."""
    schedules = schedules_of(pulse="every_seconds = 5; missed = 'skip'")
    async with scene_of(SATURDAY, schedules) as scene:
        first, second = scene.keeper(1), scene.keeper(2)
        first.start()
        await trio.sleep(60)
        first.kill()
        await trio.sleep(ON_TIME / SECOND - 3)
        second.start()
        await trio.sleep(60)
        assert (await scene.record("pulse")).missed == 0
    assert scene.slots("pulse") == every(SATURDAY, scene.slots("pulse")[-1], 5)


@asynccontextmanager
async def kept_by_two(how: str) -> AsyncGenerator[Scene]:
    """A schedule of every minute, and two keepers."""
    async with scene_of(SATURDAY, schedules_of(pulse=f"every_seconds = 60; {how}")) as scene:
        for number in (1, 2):
            scene.keeper(number).start()
        yield scene


async def test_a_slot_is_skipped_while_the_job_before_it_runs() -> None:
    async with kept_by_two("overlap = 'skip'") as scene:
        await trio.sleep(10 * 60)
        assert len(await scene.jobs()) == 1
        assert (await scene.record("pulse")).skipped == 9
        await scene.engine.control.apply(Action.CANCEL, (await scene.jobs())[0].id)
        await trio.sleep(60)
        record = await scene.record("pulse")
        assert (record.fired, record.skipped) == (2, 9)
    assert scene.slots("pulse") == every(SATURDAY, SATURDAY + timedelta(minutes=11), 60)


async def test_paused_resumed_and_run_by_hand_beside_two_keepers() -> None:
    async with kept_by_two("missed = 'all'") as scene:
        store = scene.engine.schedules
        await trio.sleep(5 * 60)
        await store.steer("pause", "pulse")
        await trio.sleep(10 * 60)
        assert (await scene.record("pulse")).fired == 5
        by_hand = await store.fire(Firing("pulse", None, "noop", "{}", 0, None))
        await store.steer("resume", "pulse")
        await trio.sleep(5 * 60)
        record = await scene.record("pulse")
        assert (record.fired, record.missed) == (11, 0)
        assert by_hand.job_id in {job.id for job in await scene.jobs()}
    minutes = every(SATURDAY, SATURDAY + timedelta(minutes=20), 60)
    assert scene.slots("pulse") == minutes[:5] + minutes[15:]


async def test_one_that_is_refused_keeps_no_other_waiting() -> None:
    schedules = schedules_of(bad="every_seconds = 60", good="every_seconds = 60")
    async with scene_of(SATURDAY, schedules) as scene:
        scene.refused.add("bad")
        keeper = scene.keeper(1)
        keeper.start()
        await trio.sleep(30 * 60)
        assert len(scene.slots("good")) == 30
        assert keeper.tally.last_error == "schedule bad: fire: bad: not such a job"
        assert 20 <= keeper.tally.errors <= 31
        late = await scene.lateness()
        assert max(late) <= timedelta(seconds=3)
        scene.refused.clear()
        keeper.keeper.wake()
        await trio.sleep(1)
        assert len(scene.slots("bad")) >= 1
        assert keeper.tally.last_error is not None
        before = keeper.tally.errors
        await trio.sleep(30 * 60)
        assert keeper.tally.errors == before
        assert len(scene.slots("bad")) >= 30


async def test_behind_a_slot_that_was_refused_none_is_fired_and_so_none_is_lost() -> None:
    """Slots go forward only: a later one would have taken its place."""
    schedules = schedules_of(pulse="every_seconds = 10; missed = 'all'")
    async with scene_of(SATURDAY, schedules) as scene:
        await trio.sleep(60)
        scene.refused_once.add("pulse")
        keeper = scene.keeper(1)
        keeper.start()
        await trio.sleep(1)
        assert scene.slots("pulse") == []
        await trio.sleep(2 * HELD_BACK_SECONDS)
        assert keeper.tally.errors == 1
        assert scene.slots("pulse")[:6] == every(SATURDAY, SATURDAY + 60 * SECOND, 10)


async def test_a_thousand_missed_slots_keep_no_other_waiting() -> None:
    schedules = schedules_of(
        busy="every_seconds = 10; missed = 'all'", pulse="every_seconds = 60; missed = 'skip'"
    )
    async with scene_of(SATURDAY, schedules) as scene:
        await trio.sleep(24 * HOUR)
        keeper = scene.keeper(1)
        keeper.start()
        await trio.sleep(120)
        order = [name for name, _ in scene.taken]
        assert Counter(order[:1_000])["busy"] >= 990
        assert order.index("pulse") <= 2
        assert MISSED_MAX <= order.count("busy") <= MISSED_MAX + 20
        calls = keeper.engine.calls
        assert calls["schedules_know"] < 60
        assert calls["schedules_fire"] < MISSED_MAX + 100


@pytest.mark.parametrize("back_seconds", [40.0, HOUR, 300 * 24 * HOUR])
async def test_a_clock_that_is_put_back_fires_no_slot_twice_and_goes_on(
    back_seconds: float,
) -> None:
    """A little: the slots come when the clock shows them again. A lot: from now on."""
    async with scene_of(
        SATURDAY, schedules_of(pulse="every_seconds = 60; missed = 'all'")
    ) as scene:
        keeper = scene.keeper(1)
        keeper.start()
        await trio.sleep(10 * 60)
        scene.leap_seconds[0] -= back_seconds
        before = len(scene.taken)
        await trio.sleep(min(back_seconds, LOOK_SECONDS) - 1)
        assert len(scene.taken) == before or back_seconds > 3 * HOUR
        await trio.sleep(2 * HOUR)
        slots = scene.slots("pulse")
        assert len(slots) == len(set(slots))
        waits = back_seconds if back_seconds < 3 * HOUR else LOOK_SECONDS
        assert abs(len(slots) - before - (2 * HOUR - waits) / 60) <= 2


async def test_schedules_come_and_go_with_the_configuration() -> None:
    async with scene_of(SATURDAY, schedules_of(first="every_seconds = 60")) as scene:
        keeper = scene.keeper(1)
        keeper.start()
        await trio.sleep(10)
        scene.configure(schedules_of(second="every_seconds = 5"))
        keeper.keeper.wake()
        await trio.sleep(60)
        assert scene.slots("first") == []
        assert len(scene.slots("second")) == 12
        scene.configure({})
        keeper.keeper.wake()
        await trio.sleep(HOUR)
        calls = keeper.engine.calls["schedules_know"]
        await trio.sleep(HOUR)
        assert keeper.engine.calls["schedules_know"] == calls
        await trio.sleep(30)  # so that no slot is on time
        scene.configure(schedules_of(first="every_seconds = 60"))  # from the slot it was left at
        keeper.keeper.wake()
        await trio.sleep(1)
        record = await scene.record("first")
        assert (record.fired, len(scene.slots("first"))) == (1, 1)
        assert record.missed > 100


async def test_a_schedule_that_is_switched_off_has_missed_nothing() -> None:
    on = "every_seconds = 60; missed = 'all'"
    async with scene_of(SATURDAY, schedules_of(pulse=f"{on}; enabled = false")) as scene:
        keeper = scene.keeper(1)
        keeper.start()
        await trio.sleep(HOUR + 30)  # 37 s after a slot
        scene.configure(schedules_of(pulse=on))
        keeper.keeper.wake()
        await trio.sleep(60)
        record = await scene.record("pulse")
        assert (record.fired, record.missed) == (1, 0)


async def test_a_store_that_is_away_for_a_moment_costs_no_slot() -> None:
    schedules = schedules_of(
        a="every_seconds = 60; missed = 'skip'", b="every_seconds = 60; missed = 'skip'"
    )
    async with scene_of(SATURDAY, schedules, look_seconds=900.0) as scene:
        keeper = scene.keeper(1)
        keeper.start()
        await trio.sleep(40)
        for fault in ("schedules_fire", "schedules_know"):
            keeper.engine.broken.add(fault)
            await trio.sleep(15)
            keeper.engine.broken.clear()
            await trio.sleep(105)
        assert [(await scene.record(name)).missed for name in schedules] == [0, 0]
        assert max(await scene.lateness()) <= timedelta(seconds=8)
    assert scene.slots("a") == scene.slots("b") == every(SATURDAY, scene.slots("a")[-1], 60)
    assert len(scene.slots("a")) == 4


async def test_a_change_in_the_midst_of_a_round_applies_at_once() -> None:
    async with scene_of(SATURDAY, schedules_of(pulse="every_seconds = 3600")) as scene:
        keeper = scene.keeper(1)
        keeper.start()
        await trio.sleep(1)
        keeper.engine.faults["schedules_know"].append(Fault("slow_reply", 3.0))
        keeper.keeper.wake()
        await trio.sleep(1)
        scene.configure(schedules_of(pulse="every_seconds = 2"))
        keeper.keeper.wake()
        await trio.sleep(12)
        assert len(scene.slots("pulse")) in (6, 7)
