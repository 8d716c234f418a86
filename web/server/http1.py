"""HTTP/1.1 and nothing else: the server under us would also speak HTTP/2 and WebSocket, where the
bounds of a request do not hold.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import cast

import h11
import trio
from hypercorn.events import Closed
from hypercorn.protocol import ProtocolWrapper
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.typing import ConnectionState
from hypercorn.utils import parse_socket_addr  # pyright: ignore[reportUnknownVariableType] - a bare tuple in it

HEADER_BYTES_MAX = 16_384  # with the line of the request
CLOSE_SECONDS = 1.0


class Http1Server(TCPServer):
    """One connection."""

    async def run(self) -> None:
        try:
            socket = self.stream.socket
            client = parse_socket_addr(socket.family, socket.getpeername())
            server = parse_socket_addr(socket.family, socket.getsockname())
            async with TaskGroup() as self._task_group:
                spoken = _Http1(
                    self.app, self.config, self.context, self._task_group,
                    ConnectionState(self.state), False, client, server, self.protocol_send,
                )  # fmt: skip
                # Declared for what chooses between protocols: here, there is one.
                self.protocol = cast(ProtocolWrapper, spoken)
                await self.idle_task.restart(  # pyright: ignore[reportUnknownMemberType] - as above
                    self._task_group, self._idle_timeout
                )
                await self._read_data()
        except OSError:
            return  # the peer is gone
        finally:
            with trio.move_on_after(CLOSE_SECONDS, shield=True):
                await self._close()


class _Http1(H11Protocol):
    async def _check_protocol(self, event: h11.Request) -> None:
        """An offer to change the protocol is not taken."""

    async def _create_stream(self, request: h11.Request) -> None:
        if status := _refusal(request):
            await self._send_error_response(status)
            await self.send(Closed())
            return
        kept = [pair for pair in request.headers if pair[0] != b"upgrade"]
        await super()._create_stream(
            h11.Request(
                method=request.method, headers=kept, target=request.target,
                http_version=request.http_version,
            )
        )  # fmt: skip


def _refusal(request: h11.Request) -> int | None:
    """The status for a head that is too long, or that a proxy may read in another way."""
    line = len(request.method) + len(request.target) + len(b"  HTTP/1.1\r\n")
    size = line + sum(len(name) + len(value) + 4 for name, value in request.headers) + 2
    if size > HEADER_BYTES_MAX:
        return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    names = {name for name, _ in request.headers}
    if request.http_version not in (b"1.0", b"1.1"):
        return HTTPStatus.BAD_REQUEST
    if b"transfer-encoding" in names:
        both = b"content-length" in names
        return HTTPStatus.BAD_REQUEST if both or request.http_version == b"1.0" else None
    return None
