"""Plain words and columns: how times, counts and texts of unknown origin are shown to people, and
how written times are read. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

MINUTE_SECONDS = 60
HOUR_SECONDS = 3600
DAY_SECONDS = 86400
GUTTER = "  "
ERROR_LENGTH_MAX = 500  # of an error that is told beside something else

# Each unit ends where rounding would write the next one: "60.0 s" is a minute.
TENTHS_END = 0.00995
MILLISECONDS_END = 0.9995
SECONDS_END = 59.95


def duration_text(seconds: float) -> str:
    """Gives a duration in the two largest units that say something: `12 ms`, `3.2 s`, `5 m 10 s`,
    `2 d 3 h`.
    """
    if seconds < MILLISECONDS_END:
        places = 1 if seconds < TENTHS_END else 0
        return f"{seconds * 1000:.{places}f} ms"
    if seconds < SECONDS_END:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < HOUR_SECONDS:
        return _pair(whole, MINUTE_SECONDS, "m", 1, "s")
    if whole < DAY_SECONDS:
        return _pair(whole, HOUR_SECONDS, "h", MINUTE_SECONDS, "m")
    return _pair(whole, DAY_SECONDS, "d", HOUR_SECONDS, "h")


def count_text(count: int, *, exact: bool = True) -> str:
    """Gives a count with its thousands apart, `10,000`; with a plus where counting stopped."""
    return f"{count:,}" if exact else f"{count:,}+"


def plural(count: int, one: str, many: str = "") -> str:
    """Gives `1 job`, `2 jobs`."""
    return f"{count_text(count)} {one if count == 1 else many or one + 's'}"


def one_line(text: str) -> str:
    """Makes a text of unknown origin harmless: one line, nothing that a terminal would obey."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def cut(text: str, width: int) -> str:
    """Shortens a text to `width` characters, the last one being an ellipsis where something is
    missing.
    """
    return text if len(text) <= width else f"{text[: width - 1]}…"


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], right: frozenset[int] = frozenset()
) -> list[str]:
    """Gives aligned lines, the heads first; the columns in `right` are set to the right."""
    lines = [tuple(heads), *(tuple(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    return [
        GUTTER.join(
            cell.rjust(widths[column]) if column in right else cell.ljust(widths[column])
            for column, cell in enumerate(line)
        ).rstrip()
        for line in lines
    ]


def _pair(whole: int, unit: int, name: str, small: int, small_name: str) -> str:
    rest = whole % unit // small
    return f"{whole // unit} {name} {rest} {small_name}" if rest else f"{whole // unit} {name}"


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def time_text(moment: datetime | None, to_the: str = "microseconds") -> str | None:
    """RFC 3339, UTC, always with as many digits, so that texts sort as times do."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec=to_the).replace("+00:00", "Z")


def span(start: datetime | None, end: datetime | None) -> str:
    if start is None or end is None:
        return ""
    return duration_text(max(0.0, (end - start).total_seconds()))


def clock(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%H:%M:%S.%f")[:-3] + "Z"


EXAMPLE = "2030-01-01T09:00:00Z"


def moment_of(text: str) -> datetime:
    """Reads an RFC 3339 time, which always says its zone, as UTC. Raises ValueError, which says
    what is wrong with it.
    """
    moment = _moment(text.strip())
    if moment is None:
        raise ValueError(f"{text!r} is no RFC 3339 time, as {EXAMPLE} is")
    if moment.utcoffset() is None:
        raise ValueError(f"{text!r} has no zone: end it with Z, or with +02:00")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{text!r} is beyond the years 1 to 9999") from None


def _moment(text: str) -> datetime | None:
    if "T" not in text.upper() and " " not in text:
        return None  # a date alone names no moment
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
