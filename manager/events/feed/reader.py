"""One reader of the feed: where it stands, and the socket it reads from."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Literal

import attrs
import trio

from musterd.manager.events.feed.frames import chunk
from musterd.store.events import EventFilter

STUCK_SECONDS = 10.0  # a reader that takes nothing for so long is cut off

Ending = Literal["closed", "slow", "gone"]  # told all there was; cut off; has left by itself


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
