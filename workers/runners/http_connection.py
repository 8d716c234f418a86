"""One connection to an HTTP server: made, used for one exchange after another, closed."""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple, cast
from urllib.parse import quote, urlsplit

import attrs
import h11
import trio

from musterd.workers.runners.capture import Head

CONNECT_SECONDS_MAX = 10.0
RECEIVE_BYTES = 65_536
# A server whose machine has died is noticed after a minute and a half, however patient the job.
PROBES = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
DEFAULT_PORTS = {"http": 80, "https": 443}
NOT_ESCAPED = "/?:@!$&'()*+,;=-._~%#[]"


class HttpTrouble(Exception):
    """There is no answer: no connection, a broken one, or what came is no HTTP."""


class NotSendable(Exception):
    """The request cannot be put as HTTP. Does not say what of it: it may be a secret."""


class Origin(NamedTuple):
    """Where a connection leads."""

    scheme: str
    host: str
    port: int


@attrs.frozen
class HttpRequest:
    """What is sent. `headers`, their names in lower case, lack only host and content-length."""

    method: str
    origin: Origin
    target: str
    headers: Mapping[str, str] = attrs.field(repr=False)
    body: bytes = attrs.field(repr=False)


@attrs.frozen
class Answer:
    """What came back. `headers` by lower-case name, the last of several; `overflowed` = there was
    more body than was asked for.
    """

    status: int
    headers: dict[str, str]
    body: bytes
    overflowed: bool


def address_of(url: str) -> tuple[Origin, str]:
    """Gives where to connect and what to ask for there. Raises `NotSendable` for what is no URL."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode()
        port = parts.port or DEFAULT_PORTS[parts.scheme]
    except (ValueError, KeyError):
        raise NotSendable from None
    query = f"?{parts.query}" if parts.query else ""
    return Origin(parts.scheme, host, port), quote(f"{parts.path or '/'}{query}", safe=NOT_ESCAPED)


async def connect(
    origin: Origin, tls: ssl.SSLContext | None, address: str | None = None
) -> Connection:
    """Opens a connection, with TLS if there is a context; to `address` where that is given, else to
    the one that the host is found to have. Raises `HttpTrouble`.
    """
    where = f"{origin.host}:{origin.port}"
    try:
        with trio.fail_after(CONNECT_SECONDS_MAX):
            return await _connected(origin, tls, address)
    except trio.TooSlowError:
        seconds = f"{CONNECT_SECONDS_MAX:g} s"
        raise HttpTrouble(f"no connection to {where} within {seconds}") from None
    except (OSError, trio.BrokenResourceError) as error:
        raise HttpTrouble(f"no connection to {where}: {_reason(error)}") from None


async def _connected(origin: Origin, tls: ssl.SSLContext | None, address: str | None) -> Connection:
    transport = await trio.open_tcp_stream(address or origin.host, origin.port)
    try:
        transport.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in PROBES:
            if hasattr(socket, name):
                transport.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        stream: trio.abc.Stream = transport
        if tls is not None:
            secured = trio.SSLStream(
                transport, tls, server_hostname=origin.host, https_compatible=True
            )
            await secured.do_handshake()
            stream = secured
    except BaseException:
        transport.socket.close()
        raise
    return Connection(origin, stream, transport.socket)


@attrs.define(eq=False)
class Connection:
    """`heard`: of the present exchange something has come back."""

    origin: Origin
    stream: trio.abc.Stream
    socket: trio.socket.SocketType
    heard: bool = False
    _http: h11.Connection = attrs.field(factory=lambda: h11.Connection(h11.CLIENT), init=False)

    async def exchange(self, request: HttpRequest, answer_bytes_max: int) -> Answer:
        """Sends the request, reads the answer. Raises `HttpTrouble` or `NotSendable`."""
        self.heard = False
        sent = self._as_sent(request)
        # A server may refuse in the middle of a body, and say why before it closes.
        with suppress(trio.BrokenResourceError):
            await self.stream.send_all(sent)
        try:
            return await self._answer(answer_bytes_max)
        except (h11.RemoteProtocolError, trio.BrokenResourceError) as error:
            raise HttpTrouble(f"no whole answer: {_reason(error)}") from None

    def _as_sent(self, request: HttpRequest) -> bytes:
        usual = {"host": _host_header(request.origin), "content-length": str(len(request.body))}
        headers = list({**usual, **request.headers}.items())
        try:
            head = self._http.send(
                h11.Request(method=request.method, target=request.target, headers=headers)
            )
        except (h11.LocalProtocolError, UnicodeEncodeError):
            raise NotSendable from None
        body = self._http.send(h11.Data(data=request.body))
        return (head or b"") + (body or b"") + (self._http.send(h11.EndOfMessage()) or b"")

    async def _answer(self, bytes_max: int) -> Answer:
        response: h11.Response | None = None
        body = Head(bytes_max)
        while not body.overflowed:
            event = await self._next_event()
            if isinstance(event, h11.Response):
                response = event
            elif isinstance(event, h11.Data):
                body.add(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                break
            elif isinstance(event, h11.ConnectionClosed):
                raise HttpTrouble("the server closed the connection without an answer")
        assert response is not None
        headers = {
            name.decode("ascii"): value.decode("latin-1") for name, value in response.headers
        }
        return Answer(response.status_code, headers, bytes(body.kept), body.overflowed)

    async def _next_event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            received = await self.stream.receive_some(RECEIVE_BYTES)
            self.heard = self.heard or bool(received)
            self._http.receive_data(bytes(received))
        return event

    def begin_anew(self) -> bool:
        """Makes it ready for another exchange; says whether it can be."""
        done = self._http.our_state is h11.DONE and self._http.their_state is h11.DONE
        excess, closed = self._http.trailing_data
        if not done or excess or closed:
            return False
        self._http.start_next_cycle()
        return True

    def is_quiet(self) -> bool:
        """Whether nothing has come while it lay idle; what comes then is its end, or no answer."""
        poll = select.poll()
        poll.register(self.socket.fileno(), select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        self.socket.close()


def _host_header(origin: Origin) -> str:
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    return host if origin.port == DEFAULT_PORTS[origin.scheme] else f"{host}:{origin.port}"


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
