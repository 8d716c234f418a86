"""Serves one task per connection, bounded in number, time and output."""

from __future__ import annotations

import logging
from typing import cast

import trio
from attrs import define, frozen
from hypercorn.config import Config
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper, ASGIFramework, ConnectionState, LifespanState
from hypercorn.utils import wrap_app  # pyright: ignore[reportUnknownVariableType] - a bare Callable in it

from musterd.config.listen import TcpAddress, UnixAddress
from musterd.manager.log import event
from musterd.web.api.routes import application
from musterd.web.deps import HttpDeps
from musterd.web.samples import Samples
from musterd.web.server.guard import Guard
from musterd.web.server.http1 import HEADER_BYTES_MAX, Http1Server
from musterd.web.server.listening import PacedListener
from musterd.web.server.places import CONNECTION, Connection, Places
from musterd.web.ui.sessions import Sessions
from musterd.workers.shortage import is_short

IDLE_SECONDS = 5  # also the time that a request's headers may take
SEND_SECONDS = 10.0
LINGER_SECONDS = 0.1  # for what is still being answered when the peer has left


async def serve_at(
    deps: HttpDeps,
    address: TcpAddress | UnixAddress,
    listener: trio.SocketListener,
    samples: Samples,
) -> None:
    """Until cancelled. A failing connection affects only itself."""
    sessions = Sessions()
    app = application(deps, sessions, samples)
    guarded = Guard(app, address, deps.keys, sessions, deps.node, deps.body_bytes_max)
    config = _config(deps.log)
    wrapped = wrap_app(cast(ASGIFramework, guarded), deps.body_bytes_max(), "asgi")
    doorkeeper = _Doorkeeper(wrapped, config, deps.log, Places(deps.event_readers_max))
    await trio.serve_listeners(doorkeeper.receive, [PacedListener(listener)])


@define(eq=False)
class _Doorkeeper:
    """Admits connections while there is room, in number and in file descriptors."""

    app: AppWrapper
    config: Config
    log: logging.Logger
    places: Places

    async def receive(self, stream: trio.SocketStream) -> None:
        try:
            connection = Connection(self.places, stream, trio.CancelScope())
        except OSError:
            return  # the peer left before it was received
        if not self.places.enter(connection, is_short=is_short()):
            event(self.log, logging.WARNING, "connection refused", open=self.places.open)
            await stream.aclose()
            return
        try:
            await self._converse(connection)
        except Exception:
            # Nothing that a peer sends may bring down the daemon.
            self.log.exception("connection failed")
        finally:
            self.places.leave(connection)

    async def _converse(self, connection: Connection) -> None:
        state = ConnectionState(LifespanState({CONNECTION: connection}))
        context = WorkerContext(None)
        with connection.scope as scope:
            # Declared for TLS streams.
            bounded = cast("trio.SSLStream[trio.SocketStream]", _Bounded(connection.stream, scope))
            await Http1Server(self.app, self.config, context, state, bounded).run()


@frozen(eq=False)
class _Bounded:
    """A stream that ends when it is useless. The server shields its sends, so a peer that never
    reads would delay a shutdown; and it keeps idle connections after the peer or it has closed.
    """

    stream: trio.SocketStream
    conversation: trio.CancelScope

    @property
    def socket(self) -> trio.socket.SocketType:
        return self.stream.socket

    async def send_all(self, data: bytes) -> None:
        with trio.move_on_after(SEND_SECONDS) as scope:
            try:
                await self.stream.send_all(data)
            except trio.BusyResourceError:  # the server is sending its end at this moment
                raise trio.BrokenResourceError("the connection is being closed") from None
        if scope.cancelled_caught:
            await trio.aclose_forcefully(self.stream)
            raise trio.BrokenResourceError("the peer does not read")

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        try:
            data = await self.stream.receive_some(max_bytes)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._end_within(0.0)
            raise
        if not data:
            self._end_within(LINGER_SECONDS)
        return data

    async def send_eof(self) -> None:
        await self.stream.send_eof()

    async def aclose(self) -> None:
        self._end_within(0.0)
        await self.stream.aclose()

    def _end_within(self, seconds: float) -> None:
        end_local = trio.current_time() + seconds
        self.conversation.deadline = min(self.conversation.deadline, end_local)


def _config(log: logging.Logger) -> Config:
    config = Config()
    config.accesslog = None
    config.errorlog = log
    config.include_server_header = False
    config.keep_alive_timeout = IDLE_SECONDS
    config.h11_max_incomplete_size = HEADER_BYTES_MAX
    return config
