"""Reading the names of types of events, as people and programs give them. Pure."""

from __future__ import annotations

from musterd.config.faults import did_you_mean
from musterd.store.event_types import EVENTS

EVENT_TYPES = tuple(EVENTS)
GROUPS = tuple(dict.fromkeys(name.partition(".")[0] for name in EVENT_TYPES))


def event_type(text: str) -> str:
    """Reads a type, or a group of types. Raises ValueError, which says what is wanted."""
    if text in EVENT_TYPES or text in GROUPS:
        return text
    hint = did_you_mean(text, (*EVENT_TYPES, *GROUPS)) or f"or a group: {', '.join(GROUPS)}"
    raise ValueError(f"found {text!r}, wanted a type of event, as job.failed is; {hint}")
