"""Opens and closes the listening socket, and counts connections."""

from __future__ import annotations

import errno
import socket
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import trio
from attrs import define

from musterd.config.listen import TcpAddress, UnixAddress
from musterd.manager.node.process import StartError

BACKLOG = 128
SOCKET_MODE = 0o660
KEY = "http.listen"


@contextmanager
def listener_at(address: TcpAddress | UnixAddress) -> Generator[trio.SocketListener, None, None]:
    """Listens within the block. Raises `StartError` if it cannot."""
    made = _unix_socket(address) if isinstance(address, UnixAddress) else _tcp_socket(address)
    with made as opened:
        opened.setblocking(False)
        yield trio.SocketListener(trio.socket.from_stdlib_socket(opened))


def address_text(listener: trio.SocketListener) -> str:
    """`http://127.0.0.1:9477` or `unix:/path`."""
    name = listener.socket.getsockname()
    if isinstance(name, str):
        return f"unix:{name}"
    host, port = name[0], name[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def _tcp_socket(address: TcpAddress) -> Generator[socket.socket, None, None]:
    family, place = _resolved(address)
    with socket.socket(family, socket.SOCK_STREAM) as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind(place)
            opened.listen(BACKLOG)
        except OSError as error:
            raise StartError(_refusal(f"{address.host}:{address.port}", error)) from error
        yield opened


def _resolved(address: TcpAddress) -> tuple[socket.AddressFamily, tuple[object, ...]]:
    # A bare localhost means IPv4: what people type next, and there wherever anything is.
    host = "127.0.0.1" if address.host.lower() == "localhost" else address.host
    try:
        found = socket.getaddrinfo(
            host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise StartError(_refusal(f"{address.host}:{address.port}", error)) from error
    family, _, _, _, place = found[0]
    return family, place


@contextmanager
def _unix_socket(address: UnixAddress) -> Generator[socket.socket, None, None]:
    path = Path(address.path)
    _remove_stale(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as opened:
        try:
            opened.bind(str(path))
            path.chmod(SOCKET_MODE)
            opened.listen(BACKLOG)
        except OSError as error:
            raise StartError(_refusal(f"unix:{path}", error)) from error
        ours = path.stat().st_ino
        try:
            yield opened
        finally:
            _remove_own(path, ours)


def _remove_stale(path: Path) -> None:
    """Removes a socket that nothing listens on, and nothing else."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return  # nothing there, or nothing that can be seen: binding will say
    if not stat.S_ISSOCK(mode):
        raise StartError(f"{KEY}: {path} is there and is no socket; choose another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        if probe.connect_ex(str(path)) != errno.ECONNREFUSED:
            raise StartError(f"{KEY}: somebody listens at unix:{path} already; choose another path")
    path.unlink(missing_ok=True)


def _remove_own(path: Path, inode: int) -> None:
    try:
        if path.stat().st_ino == inode:
            path.unlink()
    except OSError:
        return  # removed already, or its folder is


def _refusal(place: str, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        reason = "the port is taken (by another musterd?)"
    else:
        reason = error.strerror or str(error)
    return (
        f"{KEY}: cannot listen at {place}: {reason}; choose another place with"
        f' --set {KEY}=HOST:PORT, or none with --set {KEY}=""'
    )


CONNECTION = "musterd.connection"  # where a request's state has it
UNSENT_BYTES_MAX = 262_144  # that the system buffers for one reader


@define(eq=False)
class ConnectionCounts:
    """Open connections. Readers follow events for long, so they count separately."""

    readers_max: int
    others: int = 0
    readers: int = 0


@define(eq=False)
class Connection:
    """Counted from its creation until `leave`."""

    counts: ConnectionCounts
    stream: trio.SocketStream
    scope: trio.CancelScope
    _reads_events: bool = False

    def __attrs_post_init__(self) -> None:
        self.counts.others += 1

    def become_reader(self) -> bool:
        """Counts as a reader from now on; returns False if there are too many."""
        if self.counts.readers >= self.counts.readers_max:
            return False
        self.counts.others -= 1
        self.counts.readers += 1
        self._reads_events = True
        return True

    def stop_reading(self) -> None:
        """Counts as an ordinary connection again: the event stream did not begin."""
        self.counts.readers -= 1
        self.counts.others += 1
        self._reads_events = False

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

    def leave(self) -> None:
        if self._reads_events:
            self.counts.readers -= 1
        else:
            self.counts.others -= 1
