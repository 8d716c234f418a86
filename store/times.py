"""How people write times: `03:12`, `-2h`, RFC 3339. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta

from musterd.store.words import EXAMPLE, moment_of

UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DELAY_SECONDS_MAX = 100 * 365 * 86400.0
_DELAY = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)
_CLOCK = re.compile(r"\d\d:\d\d(:\d\d(\.\d+)?)?(Z|z|[+-]\d\d:\d\d)?", re.ASCII)
AGO = re.compile(r"-?[0-9.]+[a-z]+", re.ASCII)
_DATE = re.compile(r"\d+-", re.ASCII)
A_DAY = timedelta(days=1)


def delay_of(text: str) -> float:
    """Reads `500ms`, `5s`, `5m`, `2h` or `1d` as seconds; raises ValueError."""
    found = _DELAY.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a delay: write 500ms, 5s, 5m, 2h or 1d")
    seconds = float(found[1]) * UNIT_SECONDS[found[2]]
    if seconds > DELAY_SECONDS_MAX:
        raise ValueError(f"{text!r} is more than a hundred years")
    return seconds


def past_of(text: str, now: datetime) -> datetime:
    """Reads `-2h` (or `2h`), `03:12` as the latest one, or an RFC 3339 time; raises ValueError."""
    text = text.strip()
    if AGO.fullmatch(text):
        return now - timedelta(seconds=delay_of(text.removeprefix("-")))
    return _moment(text, "03:12, -2h") if _has_date(text) else _next(text, now) - A_DAY


def future_of(text: str, now: datetime) -> datetime:
    """Reads `03:12` as the next one, or an RFC 3339 time; raises ValueError."""
    text = text.strip()
    return _moment(text, "03:12") if _has_date(text) else _next(text, now)


def _has_date(text: str) -> bool:
    return _CLOCK.fullmatch(text) is None


def _next(text: str, now: datetime) -> datetime:
    """The first such moment after now."""
    try:
        clock = time.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no time of a day: write 03:12 or 23:59:59") from None
    if clock.tzinfo is None:
        clock = clock.replace(tzinfo=UTC)
    found = datetime.combine(now.astimezone(clock.tzinfo).date(), clock)
    return (found if found > now else found + A_DAY).astimezone(UTC)


def _moment(text: str, others: str) -> datetime:
    if not _DATE.match(text):
        raise ValueError(f"{text!r} is no time: write {others} or {EXAMPLE}")
    return moment_of(text)
