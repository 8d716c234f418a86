"""When a schedule fires: its slots, each computed from the previous one. Pure.

Two rules keep clock changes from surprising anyone. A schedule that names its hours fires once per
wall-clock time: a skipped time fires at the end of the gap, a repeated one fires the first time. A
schedule whose hours are `*` follows elapsed time: it fires whenever the clock shows a matching
time, and skips what the clock skips.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TypeAlias
from zoneinfo import ZoneInfo, available_timezones

from attrs import field, frozen
from cronsim import CronSim, CronSimError

from musterd.config.faults import Unfit, did_you_mean

NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_SECOND = timedelta(seconds=1)
# No clock has ever been put forward or back by more than a day.
_LONGEST_SHIFT = timedelta(hours=26)
_HOUR = timedelta(hours=1)
_EXAMPLE = 'five or six fields, as in "*/5 8-18 * * MON-FRI", or @daily'
_HOURS_FIELD = -4
_STEPPED = re.compile(r"(?<![^\s,])(\w+)-(\w+)(/0*[1-9][0-9]*)(?![^\s,])", re.ASCII)
_NAMED = {
    name: str(number)
    for names, first in (
        ("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC", 1),
        ("SUN MON TUE WED THU FRI SAT", 0),
    )
    for number, name in enumerate(names.split(), start=first)
}


@frozen
class Cron:
    """Fires when the clock of a zone shows a matching time."""

    text: str
    zone: ZoneInfo
    _fields: str = field(repr=False)

    @property
    def names_hours(self) -> bool:
        return not self._fields.split()[_HOURS_FIELD].startswith("*")

    def next_after(self, moment: datetime) -> datetime | None:
        """The first slot after a moment, both in UTC; None = none within fifty years."""
        found = self._on_the_wall(moment) if self.names_hours else self._elapsed(moment)
        return next(found, None)

    def _on_the_wall(self, moment: datetime) -> Iterator[datetime]:
        for shown in _times(self._fields, _shown(moment, self.zone)):
            slot = next(_moments(shown, self.zone), None) or _end_of_gap(shown, self.zone)
            if slot > moment:
                yield slot

    def _elapsed(self, moment: datetime) -> Iterator[datetime]:
        start = moment
        for shift in _shifts(moment, self.zone):
            offset = _offset(start, self.zone)
            before = _shown(start, self.zone) - (_SECOND if start > moment else timedelta(0))
            shown = next(_times(self._fields, before), None)
            if shown is not None and (slot := (shown - offset).replace(tzinfo=UTC)) < shift:
                yield slot
            start = shift
        before = _shown(start, self.zone) - (_SECOND if start > moment else timedelta(0))
        for shown in _times(self._fields, before):
            yield from (slot for slot in _moments(shown, self.zone) if slot > moment)


@frozen
class Every:
    """Fires at a fixed interval, counted from the epoch: the same slots on every node."""

    seconds: float

    def next_after(self, moment: datetime) -> datetime:
        count = int(moment.timestamp() // self.seconds) + 1
        slot = datetime.fromtimestamp(count * self.seconds, UTC)
        # What was divided and multiplied again may have come out at the moment itself.
        return slot if slot > moment else datetime.fromtimestamp((count + 1) * self.seconds, UTC)


Rhythm: TypeAlias = Cron | Every


def read_zone(name: str) -> ZoneInfo:
    """Raises Unfit if no time zone has that name."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        hint = did_you_mean(name, available_timezones())
        raise Unfit('the name of a time zone, as "Europe/Berlin"', hint) from None


def read_cron(text: str, zone: ZoneInfo) -> Cron:
    """Raises Unfit for an invalid expression, and for one that never fires."""
    fields = NICKNAMES.get(text.strip().lower()) or _STEPPED.sub(_step_of_one, text)
    if fields.startswith("@"):
        raise Unfit(_EXAMPLE, did_you_mean(fields, NICKNAMES))
    try:
        first = next(_times(fields, datetime(2000, 1, 1)), None)  # noqa: DTZ001 - no zone is meant
    except CronSimError as error:
        raise Unfit(_EXAMPLE, str(error)) from None
    except ValueError:  # a number of thousands of digits
        raise Unfit(_EXAMPLE) from None
    if first is None:
        raise Unfit("a time that can come", "no date matches all of its fields")
    return Cron(text, zone, fields)


def _step_of_one(found: re.Match[str]) -> str:
    """A range of one number is that number, whatever its step; CronSim goes on to the end."""
    first, last = (_NAMED.get(one.upper(), one).lstrip("0") for one in found.group(1, 2))
    return found[1] if first == last else found[0]


def _times(fields: str, after: datetime) -> Iterator[datetime]:
    """The matching times of a clock that never changes."""
    return CronSim(fields, after)


def _shown(moment: datetime, zone: ZoneInfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def _offset(moment: datetime, zone: ZoneInfo) -> timedelta:
    found = moment.astimezone(zone).utcoffset()
    assert found is not None  # a zone knows its offset at any time
    return found


def _moments(shown: datetime, zone: ZoneInfo) -> Iterator[datetime]:
    """When the clock shows this time: once, twice, or never."""
    first, second = (shown.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if _shown(first, zone) == shown:
        yield first
        if second != first:
            yield second


def _end_of_gap(shown: datetime, zone: ZoneInfo) -> datetime:
    """The end of the gap for a time that the clock skips."""
    late = shown.replace(tzinfo=zone, fold=0).astimezone(UTC)  # by the offset before the gap
    early = shown.replace(tzinfo=zone, fold=1).astimezone(UTC)  # by the one after it
    return _first_shift(early, late, zone)


def _shifts(moment: datetime, zone: ZoneInfo) -> Iterator[datetime]:
    """When the clock changes soon after a moment."""
    start, end = moment, moment + _LONGEST_SHIFT
    while start < end:
        step = start + _HOUR
        if _offset(step, zone) != _offset(start, zone):
            yield _first_shift(start, step, zone)
        start = step


def _first_shift(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """The first whole second whose offset differs from that of `before`."""
    offset = _offset(before, zone)
    low, high = int(before.timestamp()), int(after.timestamp())
    while high - low > 1:
        middle = (low + high) // 2
        is_same = _offset(datetime.fromtimestamp(middle, UTC), zone) == offset
        low, high = (middle, high) if is_same else (low, middle)
    return datetime.fromtimestamp(high, UTC)
