"""The connections of the web side, counted; and a connection as those see it who write to it
themselves.
"""

from __future__ import annotations

import socket
from contextlib import suppress

import trio
from attrs import define

LINE = "musterd.line"  # where a request's state has it
UNSENT_BYTES_MAX = 262_144  # of a reader; what the system keeps for it


@define(eq=False)
class Rooms:
    """How many are inside. Readers of events stay for long, and take nobody else's place."""

    readers_max: int
    others: int = 0
    readers: int = 0


@define(eq=False)
class Line:
    """One connection. Made where it is let in, left when it ends."""

    rooms: Rooms
    stream: trio.SocketStream
    conversation: trio.CancelScope
    _reads_events: bool = False

    def __attrs_post_init__(self) -> None:
        self.rooms.others += 1

    def become_reader(self) -> bool:
        """Takes a reader's place in exchange for its own; gives False if there is none."""
        if self.rooms.readers >= self.rooms.readers_max:
            return False
        self.rooms.others -= 1
        self.rooms.readers += 1
        self._reads_events = True
        return True

    def be_ordinary(self) -> None:
        """The stream of events did not come about."""
        self.rooms.readers -= 1
        self.rooms.others += 1
        self._reads_events = False

    def bound_unsent(self) -> None:
        """A reader that does not read costs the system no more than this."""
        with suppress(OSError):  # not every kind of socket has all of it
            self.stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNSENT_BYTES_MAX)
        lowat = getattr(socket, "TCP_NOTSENT_LOWAT", None)
        if lowat is not None and self.stream.socket.family != socket.AF_UNIX:
            with suppress(OSError):
                self.stream.setsockopt(socket.IPPROTO_TCP, lowat, UNSENT_BYTES_MAX)

    def fileno(self) -> int:
        return self.stream.socket.fileno()

    def hang_up(self) -> None:
        self.conversation.cancel()

    def leave(self) -> None:
        if self._reads_events:
            self.rooms.readers -= 1
        else:
            self.rooms.others -= 1
