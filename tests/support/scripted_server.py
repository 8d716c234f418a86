"""An HTTP server that says exactly the bytes it is told to, right or wrong."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import attrs
import h11
import trio

Speech = Callable[[trio.abc.Stream], Awaitable[None]]
CHUNK_BYTES = 65_536


@attrs.frozen
class Seen:
    """A request as it arrived, and on which connection, counted from 1."""

    connection: int
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@attrs.define(eq=False)
class ScriptedServer:
    """Answers the first request with the first line of the script, and so on. Bytes are sent as
    they are; a function may do with the connection what it likes; None closes it unanswered.
    """

    script: list[bytes | Speech | None]
    port: int = 0
    seen: list[Seen] = attrs.field(factory=list[Seen], init=False)
    connections: int = attrs.field(default=0, init=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, stream: trio.abc.Stream) -> None:
        self.connections += 1
        number = self.connections
        try:
            async with stream:
                while await self._one(stream, number):
                    pass
        except trio.BrokenResourceError:
            return  # the client may go as it likes

    async def _one(self, stream: trio.abc.Stream, number: int) -> bool:
        seen = await _request(stream, number)
        if seen is None:
            return False
        self.seen.append(seen)
        line = self.script.pop(0)
        if line is None:
            return False
        if isinstance(line, bytes):
            await stream.send_all(line)
        else:
            await line(stream)
        return True


@asynccontextmanager
async def scripted(
    script: Sequence[bytes | Speech | None], tls: ssl.SSLContext | None = None
) -> AsyncGenerator[ScriptedServer]:
    server = ScriptedServer(list(script))
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        server.port = listener.socket.getsockname()[1]

        async def serve(stream: trio.SocketStream) -> None:
            secured = trio.SSLStream(stream, tls, server_side=True) if tls else stream
            await server.serve(secured)

        await nursery.start(trio.serve_listeners, serve, [listener])
        yield server
        nursery.cancel_scope.cancel()


async def _request(stream: trio.abc.Stream, number: int) -> Seen | None:
    http, head, body = h11.Connection(h11.SERVER), None, b""
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(bytes(await stream.receive_some(CHUNK_BYTES)))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        elif head is None:
            return None  # closed
        else:
            headers = {name.decode(): value.decode("latin-1") for name, value in head.headers}
            return Seen(number, head.method.decode(), head.target.decode(), headers, body)
