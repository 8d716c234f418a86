"""Opens and closes the listening socket."""

from __future__ import annotations

import errno
import socket
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import trio
from attrs import define, field

from musterd.config.listen import TcpAddress, UnixAddress
from musterd.manager.node.process import StartError

BACKLOG = 128
SOCKET_MODE = 0o660
KEY = "http.listen"
ACCEPTS_PER_SECOND = 500.0  # on average; what is beyond waits in the backlog
ACCEPTS_AT_ONCE = 100


@define(eq=False)
class PacedListener(trio.abc.Listener[trio.SocketStream]):
    """Takes connections no faster than they can be afforded: a flood of them shall leave most of a
    core to the jobs.
    """

    listener: trio.abc.Listener[trio.SocketStream]
    _due_local: float = field(default=float("-inf"), init=False)

    async def accept(self) -> trio.SocketStream:
        await trio.sleep_until(self._due_local)
        stream = await self.listener.accept()
        earliest = trio.current_time() - ACCEPTS_AT_ONCE / ACCEPTS_PER_SECOND
        self._due_local = max(self._due_local, earliest) + 1 / ACCEPTS_PER_SECOND
        return stream

    async def aclose(self) -> None:
        await self.listener.aclose()


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


def port_of(listener: trio.SocketListener) -> int | None:
    """None = it is a socket of the file system."""
    name = listener.socket.getsockname()
    return None if isinstance(name, str) else int(name[1])


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
