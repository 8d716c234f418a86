"""Slots against an oracle of its own: every minute of the days around a change of the clock, and
what the clock shows at it.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musterd.config.cron import read_cron
from musterd.config.faults import Unfit

MINUTE = timedelta(minutes=1)
DAYS = 2
# Zone, and the day in UTC before which, or on which, its clock is put forward or back.
CHANGES = (
    ("Europe/Berlin", datetime(2026, 3, 29, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 10, 25, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 3, 8, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 11, 1, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, tzinfo=UTC)),  # by half an hour
    ("Australia/Lord_Howe", datetime(2026, 10, 3, tzinfo=UTC)),
    ("America/St_Johns", datetime(2006, 10, 29, tzinfo=UTC)),  # at one minute past midnight
    ("America/St_Johns", datetime(2007, 3, 11, tzinfo=UTC)),
    ("Africa/Cairo", datetime(2026, 4, 23, tzinfo=UTC)),  # at midnight: the day begins at one
    ("Asia/Kathmandu", datetime(2026, 5, 1, tzinfo=UTC)),  # 5 h 45 m from Greenwich, never changed
    ("Pacific/Apia", datetime(2011, 12, 30, tzinfo=UTC)),  # a day is left out
    ("UTC", datetime(2026, 2, 28, tzinfo=UTC)),
)
MINUTES, HOURS = range(60), range(24)
EXAMPLES = 12


@cache
def minutes(zone: str, day: datetime) -> tuple[tuple[datetime, datetime], ...]:
    """Each minute around a day, and what the clock shows then."""
    start, tz = day - timedelta(days=DAYS), ZoneInfo(zone)
    every = (start + count * MINUTE for count in range(2 * DAYS * 24 * 60))
    return tuple((one, one.astimezone(tz).replace(tzinfo=None)) for one in every)


def elapsed(zone: str, day: datetime, fits: "Fits") -> Iterator[datetime]:
    yield from (one for one, shown in minutes(zone, day) if fits.time(shown))


def on_the_wall(zone: str, day: datetime, fits: "Fits") -> Iterator[datetime]:
    """For each time between the first and the last that is shown: when it is shown first, or by
    when it has been passed over.
    """
    seen: datetime | None = None
    for one, shown in minutes(zone, day):
        if seen is None:
            seen = shown - MINUTE
        passed = [seen + count * MINUTE for count in range(1, (shown - seen) // MINUTE + 1)]
        if any(fits.time(time) for time in passed):
            yield one
        seen = max(seen, shown)


class Fits:
    """What two fields of cron allow, read by hand."""

    def __init__(self, minute: frozenset[int], hour: frozenset[int]) -> None:
        self.minute, self.hour = minute, hour

    def time(self, shown: datetime) -> bool:
        return shown.minute in self.minute and shown.hour in self.hour


def field(rng: Random, numbers: range, *, starred: bool) -> tuple[str, frozenset[int]]:
    """A field as it is written, and the numbers that it means."""
    step = rng.randint(1, 12)
    if starred:
        return ("*" if step == 1 else f"*/{step}"), frozenset(numbers[::step])
    parts, meant = list[str](), set[int]()
    for _ in range(rng.randint(1, 3)):
        low, step = rng.choice(numbers), rng.randint(1, 12)
        high = rng.randint(low, numbers[-1])
        is_range = high > low and rng.random() < 0.5
        parts.append(f"{low}-{high}/{step}" if is_range else str(low))
        meant.update(range(low, high + 1, step) if is_range else (low,))
    return ",".join(parts), frozenset(meant)


@pytest.mark.parametrize("starred", [False, True], ids=["hours named", "hours not named"])
@pytest.mark.parametrize(("zone", "day"), CHANGES, ids=lambda one: str(one)[:16])
def test_slots_are_those_that_counting_minutes_gives(
    zone: str, day: datetime, starred: bool
) -> None:
    rng = Random(f"{zone} {day} {starred}")
    for _ in range(EXAMPLES):
        minute, minutes_meant = field(rng, MINUTES, starred=rng.random() < 0.5)
        hour, hours_meant = field(rng, HOURS, starred=starred)
        fits = Fits(minutes_meant, hours_meant)
        wanted = list((elapsed if starred else on_the_wall)(zone, day, fits))
        text = f"{minute} {hour} * * *"
        assert slots(text, zone, day) == wanted, text


@pytest.mark.parametrize("hours", ["*", "1-3"])
@pytest.mark.parametrize(
    ("zone", "change"),
    [
        ("Europe/Berlin", datetime(2026, 3, 29, 1, tzinfo=UTC)),
        ("Europe/Berlin", datetime(2026, 10, 25, 1, tzinfo=UTC)),
        ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),
    ],
)
def test_six_fields_by_the_second(zone: str, change: datetime, hours: str) -> None:
    tz, start = ZoneInfo(zone), change - timedelta(hours=2)
    wanted: list[datetime] = []
    seen: set[datetime] = set()
    for count in range(4 * 3600):
        moment = start + timedelta(seconds=count + 1)
        shown = moment.astimezone(tz).replace(tzinfo=None)
        fits = shown.second in (5, 35) and shown.minute % 20 == 0
        if hours != "*":
            fits = fits and shown.hour in (1, 2, 3) and shown not in seen
            seen.add(shown)
        if fits:
            wanted.append(moment)
    if hours != "*" and change.month == 3:
        # What would have been between two and three comes once, as the clock is put forward.
        wanted = sorted({*wanted, change})
    cron, found, moment = read_cron(f"5,35 */20 {hours} * * *", tz), list[datetime](), start
    while (slot := cron.next_after(moment)) is not None and slot <= start + timedelta(hours=4):
        found.append(slot)
        moment = slot
    assert found == wanted


@settings(max_examples=300)
@given(text=st.text("0123456789*/,-#LW @dailymonTUE\n\0²", max_size=30) | st.text(max_size=30))
def test_whatever_is_written_is_read_or_refused(text: str) -> None:
    try:
        cron = read_cron(text, ZoneInfo("UTC"))
    except Unfit:
        return
    assert cron.next_after(datetime(2026, 1, 1, tzinfo=UTC)) is not None


def test_a_number_without_end_is_refused() -> None:
    with pytest.raises(Unfit):
        read_cron(f"{'1' * 5000} * * * *", ZoneInfo("UTC"))


def slots(text: str, zone: str, day: datetime) -> list[datetime]:
    """From the first minute of the days around to the last."""
    all_minutes = minutes(zone, day)
    cron, moment = read_cron(text, ZoneInfo(zone)), all_minutes[0][0] - MINUTE
    found: list[datetime] = []
    while (slot := cron.next_after(moment)) is not None and slot <= all_minutes[-1][0]:
        found.append(slot)
        moment = slot
    return found
