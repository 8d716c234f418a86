"""One reader of the feed: where it stands, the socket it reads from, and what is written there."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import attrs
import trio

from musterd.store.event_types import event_object
from musterd.store.events import Event, EventFilter

STUCK_SECONDS = 10.0  # a reader that takes nothing for so long is cut off

Ending = Literal["closed", "slow", "gone"]  # got all there was; cut off; left by itself
RETRY_MS = 1_000  # how long a reader that was cut off waits before it comes back


class Wire:
    """Writes to a socket that never blocks. What the reader has not room for is kept, and nothing
    more is taken until that is gone. `fileno` gives -1 when the socket is closed.
    """

    def __init__(self, fileno: Callable[[], int], *, chunked: bool) -> None:
        self.chunked = chunked
        self.is_broken = False
        self.sent_bytes = 0
        self._fileno = fileno
        self._rest = memoryview(b"")
        self._moved_local = 0.0

    @property
    def is_clear(self) -> bool:
        return not self._rest

    @property
    def is_stuck(self) -> bool:
        return not self.is_clear and trio.current_time() - self._moved_local >= STUCK_SECONDS

    def put(self, text: bytes) -> None:
        """Sends a text that nobody else gets."""
        self.put_framed(chunk(text) if self.chunked else text)

    def put_framed(self, data: bytes) -> None:
        """Sends what is a chunk already, where the wire has chunks. Only when it is clear."""
        assert self.is_clear, "what was sent before goes first"
        self._rest = memoryview(data)
        self._moved_local = trio.current_time()
        self.flush()

    def flush(self) -> bool:
        """Sends on; gives whether nothing is left."""
        while self._rest:
            try:
                count = os.write(self._fileno(), self._rest)
            except BlockingIOError:
                return False
            except OSError:
                self.is_broken, self._rest = True, memoryview(b"")
            else:
                self._rest = self._rest[count:]
                self.sent_bytes += count
                self._moved_local = trio.current_time()
        return not self.is_broken


@attrs.define(eq=False)
class Reader:
    """`position`: all up to it that fits has been put on the wire."""

    which: EventFilter
    position: int
    wire: Wire
    is_live: bool = False  # what it is to get is in the ring
    pinged_local: float = attrs.field(factory=trio.current_time)
    ended: trio.Event = attrs.field(factory=trio.Event)
    behind: trio.Event = attrs.field(factory=trio.Event)
    ending: Ending | None = None

    def can_take(self) -> bool:
        """Sends on what is left, and gives whether there is room for more. Ends a reader that has
        gone, or does not read.
        """
        if self.wire.flush():
            return self.ending is None
        if self.wire.is_broken:
            self.end("gone")
        elif self.wire.is_stuck:
            self.end("slow")
        return False

    async def live_until_behind(self) -> None:
        """Returns when the ring no longer holds what the reader is to get."""
        self.is_live, self.behind = True, trio.Event()
        await self.behind.wait()

    def fall_behind(self) -> None:
        self.is_live = False
        self.behind.set()

    def end(self, how: Ending) -> None:
        if self.ending is None:
            self.ending = how
            self.ended.set()


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
    snapshot = {**status, "position": position}
    return _written("snapshot", position, {**snapshot, "gap": True} if gap else snapshot)


def ping_frame(position: int) -> bytes:
    """A sign of life: all up to this position that the reader wants has been sent."""
    return _written("ping", position, {"position": position})


def chunk(data: bytes) -> bytes:
    """A piece of a body that is sent in chunks (RFC 9112, 7.1)."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def _written(name: str, position: int, value: object) -> bytes:
    # JSON with everything but ASCII escaped has no line end in it.
    return f"event: {name}\nid: {position}\ndata: {json.dumps(value)}\n\n".encode()
