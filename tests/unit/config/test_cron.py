"""Slots of schedules: what cron means, also when clocks are put forward or back."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musterd.config.cron import Every, read_cron, read_zone
from musterd.config.faults import Unfit

NEW_YORK = ZoneInfo("America/New_York")
ZONES = sorted(available_timezones())
SPRING = datetime(2026, 3, 8, 5, tzinfo=UTC)  # midnight in New York; at 2:00 the clock goes to 3:00
AUTUMN = datetime(2026, 11, 1, 4, tzinfo=UTC)  # midnight; at 2:00 the clock goes back to 1:00


def slots(text: str, start: datetime, count: int, zone: ZoneInfo = NEW_YORK) -> list[str]:
    cron, moment = read_cron(text, zone), start
    found: list[str] = []
    for _ in range(count):
        slot = cron.next_after(moment)
        assert slot is not None
        assert slot > moment
        moment = slot
        found.append(slot.astimezone(zone).strftime("%d %H:%M %Z"))
    return found


def test_a_time_that_is_skipped_fires_once_at_the_end_of_the_gap() -> None:
    assert slots("30 2 * * *", SPRING, 2) == ["08 03:00 EDT", "09 02:30 EDT"]
    assert slots("*/20 2 * * *", SPRING, 2) == ["08 03:00 EDT", "09 02:00 EDT"]


def test_a_time_that_comes_twice_fires_the_first_time() -> None:
    assert slots("30 1 * * *", AUTUMN, 2) == ["01 01:30 EDT", "02 01:30 EST"]


def test_where_hours_are_not_named_time_elapses() -> None:
    shown = ["01:30 EST", "03:00 EDT", "03:30 EDT"]
    found = slots("*/30 * * * *", SPRING + timedelta(hours=1), 3)
    assert [one[3:] for one in found] == shown
    found = slots("30 * * * *", AUTUMN + timedelta(minutes=40), 3)
    assert [one[3:] for one in found] == ["01:30 EDT", "01:30 EST", "02:30 EST"]


def test_seconds_and_names_and_nicknames() -> None:
    start = datetime(2026, 11, 18, 12, tzinfo=UTC)
    utc = ZoneInfo("UTC")
    assert read_cron("*/15 * * * * *", utc).next_after(start) == start + timedelta(seconds=15)
    friday = read_cron("0 8 * NOV FRI", utc).next_after(start)
    assert friday == datetime(2026, 11, 20, 8, tzinfo=UTC)
    assert read_cron("@daily", utc).next_after(start) == datetime(2026, 11, 19, tzinfo=UTC)
    assert read_cron("@hourly", utc).next_after(start) == start + timedelta(hours=1)
    assert read_cron("0 0 29 2 *", utc).next_after(start) == datetime(2028, 2, 29, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("0 0 1 8-8/4 *", "0 0 1 8 *"),
        ("0 0 1 AUG-08/4 *", "0 0 1 8 *"),
        ("0 0 * * mon-MON/2", "0 0 * * MON"),
        ("00-0/7 12-12/1,3 * * *", "0 3,12 * * *"),
        ("0 0 1 2-8/4 *", "0 0 1 2,6 *"),
    ],
)
def test_a_range_of_one_number_is_that_number_whatever_its_step(text: str, plain: str) -> None:
    assert slots(text, SPRING, 5) == slots(plain, SPRING, 5)


@pytest.mark.parametrize("text", ["0 0 1 8-8/0 *", "0 0 1 8-8/x *", "0 0 1 99-99/2 *"])
def test_a_step_that_is_none_is_refused_there_too(text: str) -> None:
    with pytest.raises(Unfit):
        read_cron(text, NEW_YORK)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("61 * * * *", "minute"),
        ("* * * *", "fields"),
        ("@dayly", "@daily"),
        ("0 0 30 2 *", "day"),
        ("", "fields"),
    ],
)
def test_what_cron_would_not_take_is_refused(text: str, hint: str) -> None:
    with pytest.raises(Unfit) as caught:
        read_cron(text, NEW_YORK)
    assert hint in caught.value.hint


def test_an_unknown_zone_is_refused_with_a_guess() -> None:
    with pytest.raises(Unfit) as caught:
        read_zone("Europe/Berln")
    assert "Europe/Berlin" in caught.value.hint
    for name in ("", "../etc/passwd", "/etc/passwd", "a\0b"):
        with pytest.raises(Unfit):
            read_zone(name)


MOMENTS = st.integers(0, 4_102_444_800).map(lambda at: datetime.fromtimestamp(at, UTC))
HOURS = st.integers(0, 23)
MINUTES = st.integers(0, 59)


@settings(deadline=None, max_examples=400)
@given(zone=st.sampled_from(ZONES), start=MOMENTS, hour=HOURS, minute=MINUTES)
def test_a_time_of_day_fires_once_a_day_in_every_zone(
    zone: str, start: datetime, hour: int, minute: int
) -> None:
    """Each date that a zone has gets one slot, in their order; never two for one, never none."""
    tz = ZoneInfo(zone)
    cron, moment = read_cron(f"{minute} {hour} * * *", tz), start
    dates: list[date] = []
    for _ in range(10):
        slot = cron.next_after(moment)
        assert slot is not None
        assert moment < slot <= moment + timedelta(hours=50)
        shown = slot.astimezone(tz)
        assert (shown.hour, shown.minute) == (hour, minute) or is_end_of_gap(slot, tz)
        dates.append(shown.date())
        moment = slot
    assert dates == sorted(set(dates))


@settings(deadline=None, max_examples=300)
@given(zone=st.sampled_from(ZONES), start=MOMENTS, step=st.sampled_from([5, 10, 15, 20, 30]))
def test_where_hours_are_not_named_every_fitting_moment_fires(
    zone: str, start: datetime, step: int
) -> None:
    tz = ZoneInfo(zone)
    cron, moment = read_cron(f"*/{step} * * * *", tz), start
    for _ in range(8):
        slot = cron.next_after(moment)
        assert slot is not None
        assert slot == brute_force(moment, step, tz)
        moment = slot


@given(seconds=st.sampled_from([0.5, 1.0, 7.0, 60.0, 3600.0, 86_400.0, 0.1]), start=MOMENTS)
def test_every_so_many_seconds_from_the_epoch(seconds: float, start: datetime) -> None:
    slot = Every(seconds).next_after(start)
    assert start < slot <= start + timedelta(seconds=seconds + 1e-5)
    assert Every(seconds).next_after(slot) > slot


def is_end_of_gap(slot: datetime, zone: ZoneInfo) -> bool:
    before = (slot - timedelta(seconds=1)).astimezone(zone)
    after = slot.astimezone(zone)
    jump = after.replace(tzinfo=None) - before.replace(tzinfo=None)
    return jump > timedelta(seconds=1)


def brute_force(moment: datetime, step: int, zone: ZoneInfo) -> datetime:
    slot = moment.replace(microsecond=0)
    for _ in range(100_000):
        slot += timedelta(seconds=1)
        shown = slot.astimezone(zone)
        if shown.second == 0 and shown.minute % step == 0:
            return slot
    raise AssertionError("no slot within a day")
