"""Values of jobs as they are shown: times, spans of time, JSON. Pure."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from musterd.store.payload import PayloadInvalid, decode_payload
from musterd.store.words import duration_text

OPENERS_MAX = 300  # a text with fewer brackets than this cannot nest too deep to be written again


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


def decoded(text: str | None) -> object:
    if text is None:
        return None
    try:
        value = decode_payload(text)
        if text.count("[") + text.count("{") > OPENERS_MAX:
            json.dumps([[[[value]]]])  # what was read may still be too deep to be written
    except (PayloadInvalid, RecursionError):
        return text
    return value
