"""The places of the HTTP server: what each connection does, and which one makes room.

Requests have fewer places than connections, so that probes are answered while all other requests
wait. A connection that has asked for nothing makes room for the next that comes.
"""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from enum import Enum, auto

import trio
from attrs import define, field

REQUESTS_MAX = 100  # neither probes nor readers of events
CONNECTIONS_MAX = 120  # readers of events not counted
WHILE_SHORT_MAX = 4  # the same, while few file descriptors are left
CONNECTION = "musterd.connection"  # where a request's state has it
CREDENTIALS = struct.Struct("3i")  # process, user, group
UNSENT_BYTES_MAX = 262_144  # that the system buffers for one reader


class Doing(Enum):
    """What a connection does. Waiting: for its next request, or for the end of a refused one."""

    WAITING = auto()
    PROBE = auto()
    REQUEST = auto()
    EVENTS = auto()


@define(eq=False)
class Places:
    """All open connections, by what they do, each in the order of their beginning it."""

    readers_max: int
    _held: dict[Doing, dict[Connection, None]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._held = {doing: {} for doing in Doing}

    def count(self, doing: Doing) -> int:
        return len(self._held[doing])

    @property
    def open(self) -> int:
        """Connections that are no readers of events."""
        return sum(map(len, self._held.values())) - self.count(Doing.EVENTS)

    def has_room(self, doing: Doing) -> bool:
        match doing:
            case Doing.REQUEST:
                return self.count(doing) < REQUESTS_MAX
            case Doing.EVENTS:
                return self.count(doing) < self.readers_max
            case _:
                return True

    def enter(self, connection: Connection, *, is_short: bool) -> bool:
        """Gives a new connection a place, if need be that of those that have waited longest;
        returns False if too few wait. `is_short`: of file descriptors.
        """
        most = WHILE_SHORT_MAX if is_short else CONNECTIONS_MAX
        while self.open >= most:
            longest = next(iter(self._held[Doing.WAITING]), None)
            if longest is None:
                return False
            self.leave(longest)
            longest.hang_up()
        self.put(connection, Doing.WAITING)
        return True

    def put(self, connection: Connection, doing: Doing) -> None:
        self.leave(connection)
        self._held[doing][connection] = None

    def leave(self, connection: Connection) -> None:
        for held in self._held.values():
            held.pop(connection, None)


@define(eq=False)
class Connection:
    """One of the connections that `places` knows while it is open."""

    places: Places
    stream: trio.SocketStream
    scope: trio.CancelScope
    peer: str = field(init=False)  # an address, or a user of this machine

    def __attrs_post_init__(self) -> None:
        self.peer = _peer_of(self.stream.socket)

    def begin(self, doing: Doing) -> bool:
        """Takes a place of that sort; returns False if there is none."""
        if not self.places.has_room(doing):
            return False
        self.places.put(self, doing)
        return True

    def wait(self) -> None:
        """Has nothing in hand. One that was told to hang up stays away."""
        if not self.scope.cancel_called:
            self.places.put(self, Doing.WAITING)

    def bound_unsent(self) -> None:
        """Limits what a stuck reader costs the system."""
        with suppress(OSError):  # not every kind of socket has all of it
            self.stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNSENT_BYTES_MAX)
        lowat = getattr(socket, "TCP_NOTSENT_LOWAT", None)
        if lowat is not None and self.stream.socket.family != socket.AF_UNIX:
            with suppress(OSError):
                self.stream.setsockopt(socket.IPPROTO_TCP, lowat, UNSENT_BYTES_MAX)

    def fileno(self) -> int:
        return self.stream.socket.fileno()

    def hang_up(self) -> None:
        self.scope.cancel()


def _peer_of(end: trio.socket.SocketType) -> str:
    if end.family != socket.AF_UNIX:
        return str(end.getpeername()[0])
    if not hasattr(socket, "SO_PEERCRED"):
        return "unix"
    raw = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    return f"uid {CREDENTIALS.unpack(raw)[1]}"
