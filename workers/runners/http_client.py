"""The node's HTTP/1.1 client: httpcore's pool over connections that are stricter than its own.

Made for jobs, so it lacks what would surprise one: it follows no redirect, keeps no cookie, obeys
no proxy variable, unpacks nothing. Time limits are the caller's: a cancelled call closes its
connection.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import cast

import attrs
import httpcore
import trio

from musterd.store.threads import in_thread
from musterd.workers.joblog import Head
from musterd.workers.runners.http_messages import Answer, HttpRequest, HttpTrouble, NotSendable

CONNECT_SECONDS_MAX = 10.0
IDLE_SECONDS_MAX = 15.0  # many servers close an idle connection after 20 s or more
IDLE_MAX = 64
# A server whose machine has died is noticed after a minute and a half, however patient the job.
KEEPALIVE_PROBES = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))


@attrs.define(eq=False)
class HttpClient:
    """Owned by the node, shared by all workers; `close` ends what it keeps.

    TLS is always verified: by `make_tls`, which is called when it is first needed.
    """

    make_tls: Callable[[], ssl.SSLContext] = ssl.create_default_context
    idle_seconds_max: float = IDLE_SECONDS_MAX
    _pool: _Pool = attrs.field(init=False)
    _making_tls: trio.Lock = attrs.field(factory=trio.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self._pool = _Pool(self.idle_seconds_max)

    async def send(
        self,
        request: HttpRequest,
        answer_bytes_max: int,
        addresses: Sequence[str] | None = None,
    ) -> Answer:
        """Sends a request and reads its answer. Raises `HttpTrouble` if there is none, or half of
        one, and `NotSendable`.

        `addresses`: connects to the first of them that answers, and to nothing else, over a
        connection of its own. Without them the host's name is looked up, and connections are kept.
        """
        if request.origin.scheme == "https":
            await self._load_tls()
        if addresses is None:
            return await _exchange(self._pool, request, answer_bytes_max)
        connection = self._pool.connection_to(_url_of(request).origin, addresses)
        try:
            return await _exchange(connection, request, answer_bytes_max)
        finally:
            connection.close()

    def close(self) -> None:
        self._pool.close()

    async def _load_tls(self) -> None:
        async with self._making_tls:
            if self._pool.tls is None:  # reads hundreds of certificates: not on the loop
                limiter = trio.CapacityLimiter(1)
                self._pool.tls = await in_thread(self.make_tls, limiter=limiter)


async def _exchange(
    via: httpcore.AsyncConnectionPool | _Connection, request: HttpRequest, answer_bytes_max: int
) -> Answer:
    body = Head(answer_bytes_max)
    usual = {"host": request.origin.host_header, "content-length": str(len(request.body))}
    try:
        async with via.stream(
            request.method,
            _url_of(request),
            headers=[
                (name.encode("ascii"), value.encode("ascii"))
                for name, value in {**usual, **request.headers}.items()
            ],
            content=request.body,
        ) as response:
            await _read(response, body)
    except (httpcore.LocalProtocolError, UnicodeEncodeError):
        raise NotSendable from None
    except (httpcore.RemoteProtocolError, httpcore.ReadError) as error:
        raise HttpTrouble(f"no whole answer: {error}") from None
    headers = {
        name.decode("ascii").lower(): value.decode("latin-1") for name, value in response.headers
    }
    return Answer(response.status, headers, bytes(body.kept), body.overflowed)


async def _read(response: httpcore.Response, body: Head) -> None:
    extensions = cast("dict[str, object]", response.extensions)  # pyright: ignore[reportUnknownMemberType]
    wire = cast("httpcore.AsyncNetworkStream", extensions["network_stream"])
    # Nothing breaks out of this loop: an unfinished generator would be left to the garbage
    # collector. A body that is too long ends when its connection is closed under it.
    with suppress(trio.ClosedResourceError):
        async for part in response.aiter_stream():
            body.add(part)
            if body.overflowed:
                await wire.aclose()


def _url_of(request: HttpRequest) -> httpcore.URL:
    scheme, host, port = request.origin
    return httpcore.URL(scheme=scheme, host=host, port=port, target=request.target)


class _Pool(httpcore.AsyncConnectionPool):
    tls: ssl.SSLContext | None = None

    def __init__(self, idle_seconds_max: float) -> None:
        super().__init__(max_connections=None, max_keepalive_connections=IDLE_MAX)
        self._idle_seconds_max = idle_seconds_max

    def create_connection(self, origin: httpcore.Origin) -> _Connection:
        return self.connection_to(origin, [origin.host.decode()])

    def connection_to(self, origin: httpcore.Origin, addresses: Sequence[str]) -> _Connection:
        tls = self.tls if origin.scheme == b"https" else None
        return _Connection(origin, _Wire(origin, addresses, tls), self._idle_seconds_max)

    def close(self) -> None:
        for connection in self.connections:
            assert isinstance(connection, _Connection)
            if connection.is_idle():
                connection.close()


class _Connection(httpcore.AsyncHTTP11Connection):
    """Opens when it is first used, and adds two rules to httpcore's.

    A connection on which a server has sent more than it announced is not used again: httpcore
    would take the rest as the answer to the next job. And a kept one that breaks before a byte has
    come back was closed while it lay idle: the request goes over another.
    """

    MAX_INCOMPLETE_EVENT_SIZE = 16_384  # the head of an answer

    def __init__(self, origin: httpcore.Origin, wire: _Wire, idle_seconds_max: float) -> None:
        super().__init__(origin, wire, idle_seconds_max)
        self._wire = wire

    async def handle_async_request(self, request: httpcore.Request) -> httpcore.Response:
        is_kept = self._wire.is_open
        if not is_kept:
            try:
                await self._wire.open()
            except BaseException:
                await self.aclose()
                raise
        try:
            return await super().handle_async_request(request)
        except (httpcore.RemoteProtocolError, httpcore.ReadError):
            if is_kept and not self._wire.heard:
                raise httpcore.ConnectionNotAvailable from None
            raise

    def has_expired(self) -> bool:
        excess, _ = self._h11_state.trailing_data
        return super().has_expired() or (self.is_idle() and bool(excess))

    def close(self) -> None:
        self._wire.close()


class _Wire(httpcore.AsyncNetworkStream):
    """A socket to the first of `addresses` that answers, with TLS if there is a context.

    `heard`: something has come back since the last write.
    """

    heard = False

    def __init__(
        self, origin: httpcore.Origin, addresses: Sequence[str], tls: ssl.SSLContext | None
    ) -> None:
        self._host, self._port = origin.host.decode(), origin.port
        self._addresses, self._tls = addresses, tls
        self._stream: trio.abc.Stream | None = None
        self._socket: trio.socket.SocketType | None = None

    @property
    def is_open(self) -> bool:
        return self._stream is not None

    async def open(self) -> None:
        """Raises `HttpTrouble`."""
        trouble = HttpTrouble(f"{self._host} has no address")
        for address in self._addresses:
            try:
                with trio.fail_after(CONNECT_SECONDS_MAX):
                    return await self._connect(address)
            except trio.TooSlowError:
                reason = f" within {CONNECT_SECONDS_MAX:g} s"
            except (OSError, trio.BrokenResourceError) as error:
                reason = f": {_reason(error)}"
            trouble = HttpTrouble(f"no connection to {self._host}:{self._port}{reason}")
        raise trouble

    async def _connect(self, address: str) -> None:
        transport = await trio.open_tcp_stream(address, self._port)
        self._socket = transport.socket
        try:
            transport.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in KEEPALIVE_PROBES:
                if hasattr(socket, name):
                    transport.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
            self._stream = transport
            if self._tls is not None:
                secured = trio.SSLStream(
                    transport, self._tls, server_hostname=self._host, https_compatible=True
                )
                self._stream = secured
                await secured.do_handshake()
        except BaseException:
            self.close()
            raise

    # httpcore's interface has time limits; ours are the callers' cancel scopes.
    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        try:
            received = await self._opened.receive_some(max_bytes)
        except trio.BrokenResourceError as error:
            raise httpcore.ReadError(_reason(error)) from None
        self.heard = self.heard or bool(received)
        return bytes(received)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        self.heard = False
        try:
            await self._opened.send_all(buffer)
        except trio.BrokenResourceError as error:
            # httpcore reads on: a server may refuse in the middle of a body, and say why.
            raise httpcore.WriteError from error

    async def aclose(self) -> None:
        self.close()

    def close(self) -> None:
        """At once: nobody waits for a last word of the other side."""
        self._stream = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def get_extra_info(self, info: str) -> object:
        """Says `is_readable` of an idle connection: what has come is its end, or no answer."""
        return info == "is_readable" and (self._socket is None or self._socket.is_readable())

    @property
    def _opened(self) -> trio.abc.Stream:
        if self._stream is None:
            raise trio.ClosedResourceError
        return self._stream


def _reason(error: BaseException) -> str:
    """The innermost cause in plain words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not to be trusted: {error.verify_message}"
    inner = error.__cause__
    if isinstance(inner, BaseExceptionGroup):  # one for each address of the host
        return _reason(cast("BaseExceptionGroup[BaseException]", inner).exceptions[0])
    if inner is not None:
        return _reason(inner)
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
