"""Cron expressions: read or refused, and each slot as counting minutes gives it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from zoneinfo import ZoneInfo

import attrs

from musterd.config.cron import Cron, read_cron, read_zone
from musterd.config.faults import Unfit
from tests.fuzz.mutating import changed, crossed
from tests.fuzz.target import Wrong

MINUTE = timedelta(minutes=1)
LOOK_MINUTES = 240  # so far ahead the oracle counts
BEFORE_MINUTES = 26 * 60  # a time on the wall may have been shown so long ago
SLOTS = 3
ZONES = ("UTC", "UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Africa/Cairo",
         "Pacific/Apia", "Asia/Kathmandu", "America/New_York")  # fmt: skip
MOMENTS = (
    *("2026-03-29T00:30", "2026-10-25T00:30", "2026-03-08T06:30", "2026-11-01T05:30"),
    *("2026-04-04T14:00", "2026-10-03T15:00", "2006-10-29T02:00", "2007-03-11T03:00"),
    *("2026-04-23T21:30", "2026-10-29T20:30", "2011-12-30T09:00", "2026-02-28T23:00"),
    *("2024-02-28T23:30", "2099-12-31T23:00", "2026-05-01T10:00", "2026-12-31T22:00"),
)
RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
PIECES = (
    *(b"*", b"*/", b"/", b"-", b",", b" ", b"0", b"60", b"99", b"L", b"W", b"#", b"?", b"LW", b"@"),
    *(b"MON", b"JAN-DEC", b"7", b"1-5/2", b"*/0", b"1,2,3", b"\n", b"\t", b"\0", b"9" * 5000),
    *("\u0661".encode(), "\u00b2".encode(), b"1-1", b"5-1", b"SUN#5", b"6L", b"-1", b"+1", b"1_0"),
    *(b"* * * * *", b"@daily", b"@reboot", b"0-59/59", b",".join(b"%d" % n for n in range(60))),
)


@attrs.frozen
class Crons:
    """An input is an expression, a zone and a moment, a line each."""

    name: str = "cron"
    share: int = 10

    def make(self, rng: Random, corpus: Sequence[bytes]) -> bytes:
        fields = " ".join(field(rng, place) for place in range(5)).encode()
        if rng.random() < 0.1:
            fields = b"%d " % rng.randrange(60) + fields
        if rng.random() < 0.1 and corpus:
            fields = crossed(rng, fields, rng.choice(corpus).split(b"|")[0])
        if rng.random() < 0.4:
            fields = changed(rng, fields, PIECES, 3)
        minutes = rng.randrange(-120, 120)
        moment = datetime.fromisoformat(rng.choice(MOMENTS)) + minutes * MINUTE
        return b"|".join((fields, rng.choice(ZONES).encode(), moment.isoformat().encode()))

    def check(self, whole: bytes) -> None:
        text, zone, moment = parts_of(whole)
        try:
            cron = read_cron(text, zone)
        except Unfit as unfit:
            str(unfit).encode("utf-8", "surrogatepass")
            if (fits := meaning_of(text)) is not None and fits.comes:
                raise Wrong(f"refused without reason: {unfit}") from None
            return
        found = slots(cron, moment)
        fits = meaning_of(text)
        if fits is not None:
            self._compare(found, fits, zone, moment)

    def _compare(
        self, found: Sequence[datetime], fits: Fits, zone: ZoneInfo, moment: datetime
    ) -> None:
        wanted = list(counted(fits, zone, moment))[:SLOTS]
        end = moment + LOOK_MINUTES * MINUTE
        within = [one for one in found if one <= end]
        if within != wanted[: len(within)] or (len(within) < SLOTS and wanted != within):
            raise Wrong(
                f"found {[str(one) for one in within]}, wanted {[str(one) for one in wanted]}"
            )


CRON = Crons()


def parts_of(whole: bytes) -> tuple[str, ZoneInfo, datetime]:
    text, _, rest = whole.decode("utf-8", "replace").rpartition("|")
    text, _, zone = text.rpartition("|")
    try:
        found, moment = read_zone(zone), datetime.fromisoformat(rest).replace(tzinfo=UTC)
    except (Unfit, ValueError):
        return whole.decode("utf-8", "replace"), ZoneInfo("UTC"), datetime(2026, 1, 1, tzinfo=UTC)
    return text, found, moment


def slots(cron: Cron, moment: datetime) -> list[datetime]:
    found: list[datetime] = []
    for _ in range(SLOTS):
        slot = cron.next_after(found[-1] if found else moment)
        if slot is None:
            break
        if found and slot <= found[-1]:
            raise Wrong(f"{slot} follows {found[-1]}")
        found.append(slot)
    return found


@attrs.frozen
class Fits:
    """What five fields mean, read by hand. `either`: a day fits by its date or its weekday."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool
    elapses: bool  # its hours are not named

    @property
    def comes(self) -> bool:
        """Whether there surely is such a day: some weekday, or one of the first 28 of a month."""
        return self.either or min(self.days) <= 28

    def time(self, shown: datetime) -> bool:
        if shown.minute not in self.minutes or shown.hour not in self.hours:
            return False
        return shown.month in self.months and self.day(shown)

    def day(self, shown: datetime) -> bool:
        by_date, by_weekday = shown.day in self.days, shown.isoweekday() % 7 in self.weekdays
        return by_date or by_weekday if self.either else by_date and by_weekday


def meaning_of(text: str) -> Fits | None:
    """None = it is none of the plain expressions that this oracle can read."""
    fields = text.split(" ")
    if len(fields) != 5:
        return None
    sets = [numbers_of(one, *bounds) for one, bounds in zip(fields, RANGES, strict=True)]
    minutes, hours, days, months, weekdays = sets
    if not (minutes and hours and days and months and weekdays):
        return None
    either = not fields[2].startswith("*") and not fields[4].startswith("*")
    weekdays = frozenset(day % 7 for day in weekdays)
    return Fits(minutes, hours, days, months, weekdays, either, fields[1].startswith("*"))


def numbers_of(text: str, low: int, high: int) -> frozenset[int] | None:
    found = set[int]()
    for part in text.split(","):
        span, slash, step = part.partition("/")
        first, dash, last = (str(low), "-", str(high)) if span == "*" else span.partition("-")
        if not all(one.isascii() and one.isdigit() for one in (first, last or "0", step or "1")):
            return None
        if (slash and not step) or (dash and not last) or len(span) > 5 or len(step) > 2:
            return None
        end = int(last) if dash else (high if slash else int(first))
        if not low <= int(first) <= end <= high or not int(step or 1):
            return None
        found.update(range(int(first), end + 1, int(step or 1)))
    return frozenset(found)


def counted(fits: Fits, zone: ZoneInfo, moment: datetime) -> Iterator[datetime]:
    """The slots of the next minutes, by looking at each."""
    if fits.elapses:
        yield from (one for one, shown in ahead(zone, moment) if fits.time(shown))
        return
    # A time on the wall comes once: when it is first shown, or when it has been passed over.
    seen = latest_shown(zone, moment)
    for one, shown in ahead(zone, moment):
        passed = (seen + count * MINUTE for count in range(1, (shown - seen) // MINUTE + 1))
        if any(fits.time(time) for time in passed):
            yield one
        seen = max(seen, shown)


@cache
def ahead(zone: ZoneInfo, moment: datetime) -> tuple[tuple[datetime, datetime], ...]:
    every = (moment + count * MINUTE for count in range(1, LOOK_MINUTES + 1))
    return tuple((one, one.astimezone(zone).replace(tzinfo=None)) for one in every)


@cache
def latest_shown(zone: ZoneInfo, moment: datetime) -> datetime:
    """The latest time that the clock has shown up to a moment."""
    every = (moment - count * MINUTE for count in range(BEFORE_MINUTES))
    return max(one.astimezone(zone).replace(tzinfo=None) for one in every)


def field(rng: Random, place: int) -> str:
    low, high = RANGES[place]
    choice = rng.random()
    if choice < 0.45:
        return "*" if rng.random() < 0.7 else f"*/{rng.randint(1, high)}"
    if choice < 0.5 and place > 2:
        return rng.choice(MONTHS if place == 3 else DAYS)
    if choice < 0.52 and place == 2:
        return rng.choice(("L", "LW", "15W", "?"))
    return ",".join(span(rng, low, high) for _ in range(rng.randint(1, 3)))


def span(rng: Random, low: int, high: int) -> str:
    first = rng.randint(low, high)
    if rng.random() < 0.5:
        return str(first)
    step = f"/{rng.randint(1, 12)}" if rng.random() < 0.5 else ""
    return f"{first}-{rng.randint(first, high)}{step}"
