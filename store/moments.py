"""Reading moments that people and programs write. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

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
