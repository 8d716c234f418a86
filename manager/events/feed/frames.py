"""Events as server-sent events: what stands on the wire. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from musterd.store.event_report import event_object
from musterd.store.events import Event

RETRY_MS = 1_000  # how long a reader that was cut off waits before it comes back


class Frame(NamedTuple):
    """One event, written once for all its readers."""

    event: Event
    text: bytes


def frame_of(event: Event, tenant: str) -> Frame:
    return Frame(event, _written(event.type, event.id, event_object(event, tenant)))


def opening() -> bytes:
    """What a stream begins with."""
    return f"retry: {RETRY_MS}\n\n".encode()


def snapshot_frame(position: int, status: Mapping[str, object], *, gap: bool) -> bytes:
    """How things stood, where what followed is in the log behind `position`. `gap`: the reader
    asked for events that the log does not have.
    """
    told = {**status, "position": position}
    return _written("snapshot", position, {**told, "gap": True} if gap else told)


def ping_frame(position: int) -> bytes:
    """A sign of life: all up to this position that the reader wants has been sent."""
    return _written("ping", position, {"position": position})


def chunk(data: bytes) -> bytes:
    """A piece of a body that is sent in chunks (RFC 9112, 7.1)."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def _written(name: str, position: int, value: object) -> bytes:
    # JSON with everything but ASCII escaped has no line end in it.
    return f"event: {name}\nid: {position}\ndata: {json.dumps(value)}\n\n".encode()
