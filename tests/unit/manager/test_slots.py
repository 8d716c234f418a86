"""Which slots are fired, and which are let go."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from musterd.config.cron import Every, Rhythm, read_cron
from musterd.manager.duties.schedules import (
    MISSED_MAX,
    ON_TIME,
    in_turns,
    let_all_go,
    seeing,
    upcoming,
)

NOW = datetime(2026, 11, 18, 12, 0, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)
HOURLY = read_cron("@hourly", ZoneInfo("UTC"))
NOON = NOW.replace(second=0)


def test_a_slot_that_has_come_is_fired() -> None:
    assert seeing(HOURLY, NOON - HOUR, NOW, "skip").fire == (NOON,)
    assert seeing(HOURLY, NOON, NOW, "all").fire == ()


def test_of_missed_slots_none_the_latest_or_all_are_fired() -> None:
    later = NOON + timedelta(minutes=30)
    since = NOON - 5 * HOUR
    skip, once, every = (seeing(HOURLY, since, later, how) for how in ("skip", "once", "all"))
    assert (skip.fire, skip.let_go_to, skip.let_go) == ((), NOON, 5)
    assert (once.fire, once.let_go_to, once.let_go) == ((NOON,), NOON - HOUR, 4)
    assert every.fire == tuple(NOON - place * HOUR for place in (4, 3, 2, 1, 0))
    assert every.let_go_to is None


def test_a_slot_on_time_is_fired_beside_what_was_missed() -> None:
    once = seeing(HOURLY, NOON - 3 * HOUR, NOW, "once")
    assert once.fire == (NOON - HOUR, NOON)
    assert seeing(HOURLY, NOON - 3 * HOUR, NOW, "skip").fire == (NOON,)


def test_however_long_nobody_was_there_only_so_many_are_fired() -> None:
    found = seeing(Every(1), NOW - timedelta(days=400), NOW, "all")
    assert MISSED_MAX <= len(found.fire) <= MISSED_MAX + 1
    assert found.fire[-1] == NOW
    assert found.let_go_to is None or found.let_go_to < found.fire[0]


class Counted:
    """A rhythm that counts how often it is asked."""

    def __init__(self, rhythm: Rhythm) -> None:
        self.rhythm, self.asked = rhythm, 0

    def next_after(self, moment: datetime) -> datetime | None:
        self.asked += 1
        return self.rhythm.next_after(moment)


def test_however_unevenly_slots_lie_only_so_many_are_computed() -> None:
    """Each second of January, and none after it: nine months of nothing, then millions."""
    dense = Counted(read_cron("* * * * 1 *", ZoneInfo("UTC")))
    found = seeing(dense, NOW - timedelta(days=320), NOW, "all")  # type: ignore[arg-type]  # as a Rhythm
    end = datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC)
    assert found.fire == tuple(end - timedelta(seconds=place) for place in range(999, -1, -1))
    assert dense.asked < 20 * MISSED_MAX


def test_schedules_take_turns() -> None:
    first, second, third = (NOON + place * HOUR for place in range(3))
    wanted = {"a": (first, second, third), "b": (), "c": (second,)}
    turns = [("a", first), ("c", second), ("a", second), ("a", third)]
    assert in_turns(wanted, 10) == turns
    assert in_turns(wanted, 2) == turns[:2]
    assert in_turns({}, 10) == []


def test_a_clock_that_was_put_back_fires_nothing_twice() -> None:
    assert seeing(HOURLY, NOW + 2 * HOUR, NOW, "all").fire == ()
    assert let_all_go(HOURLY, NOW + 2 * HOUR, NOW).let_go_to is None


def test_a_schedule_that_is_switched_off_lets_all_go() -> None:
    assert let_all_go(HOURLY, NOON - 3 * HOUR, NOW).let_go_to == NOON
    assert let_all_go(HOURLY, NOON, NOW).let_go_to is None


def test_the_next_slots() -> None:
    assert upcoming(HOURLY, NOW, 3) == [NOON + HOUR, NOON + 2 * HOUR, NOON + 3 * HOUR]


@given(
    seconds=st.sampled_from([1.0, 7.0, 60.0, 3600.0]),
    gap=st.integers(0, 200_000),
    missed=st.sampled_from(["skip", "once", "all"]),
)
def test_slots_go_forward_and_are_seen_to_once(seconds: float, gap: int, missed: str) -> None:
    since = NOW - timedelta(seconds=gap)
    found = seeing(Every(seconds), since, NOW, missed)  # type: ignore[arg-type]  # one of the three
    assert list(found.fire) == sorted(set(found.fire))
    assert all(since < slot <= NOW for slot in found.fire)
    if found.let_go_to is not None and found.fire:
        assert found.let_go_to < found.fire[0]
    late = [slot for slot in found.fire if NOW - slot > ON_TIME]
    assert len(late) <= {"skip": 0, "once": 1, "all": MISSED_MAX}[missed]
    # Seen to, nothing is left for a second look.
    last = max([since, *found.fire, *([found.let_go_to] if found.let_go_to else [])])
    assert seeing(Every(seconds), last, NOW, missed).fire == ()  # type: ignore[arg-type]  # as above
