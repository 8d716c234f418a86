"""Plain words and columns: how times, counts and texts of unknown origin are shown to people.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MINUTE_SECONDS = 60
HOUR_SECONDS = 3600
DAY_SECONDS = 86400
GUTTER = "  "

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


def count_text(count: int) -> str:
    """Gives a count with its thousands apart: `10,000`."""
    return f"{count:,}"


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
