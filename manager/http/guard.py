"""Who may ask, and how: token, host name, size and time, before any route sees the request."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from http import HTTPStatus

import trio
from attrs import frozen
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from musterd.config.listen import TcpAddress, UnixAddress
from musterd.manager.http.problem import problem

OPEN_PATHS = frozenset({"/livez", "/readyz"})  # for probes, which carry no token
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
BODY_BYTES_MAX = 65536
REQUEST_SECONDS = 30.0
SAFE_HEADERS: Mapping[str, str] = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


@frozen
class Guard:
    """Refuses what must not pass, and gives every answer the headers that keep browsers careful."""

    app: ASGIApp
    address: TcpAddress | UnixAddress
    token: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SAFE_HEADERS)
            await send(message)

        refusal = self._refusal(scope["path"], Headers(scope=scope))
        # The bound ends an answer whose reader has stopped reading.
        with trio.move_on_after(REQUEST_SECONDS):
            await (refusal or self.app)(scope, receive, send_safely)

    def _refusal(self, path: str, headers: Headers) -> Response | None:
        if not self._knows_host(headers.get("host")):
            return problem(
                HTTPStatus.MISDIRECTED_REQUEST, "ask for localhost, or for the host of http.listen"
            )
        if path not in OPEN_PATHS and not self._has_token(headers):
            challenge = {"www-authenticate": 'Bearer realm="musterd"'}
            return problem(HTTPStatus.UNAUTHORIZED, "send Authorization: Bearer TOKEN", challenge)
        if _is_large(headers.get("content-length")):
            detail = f"a body has at most {BODY_BYTES_MAX} bytes here"
            return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail, {"connection": "close"})
        return None

    def _knows_host(self, host: str | None) -> bool:
        """On loopback only this machine's names count: a page that a browser loaded elsewhere is
        kept out.
        """
        if host is None or not isinstance(self.address, TcpAddress) or not self.address.is_loopback:
            return True
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        own = f"[{self.address.host}]" if ":" in self.address.host else self.address.host
        return name.lower() in LOOPBACK_NAMES or name.lower() == own.lower()

    def _has_token(self, headers: Headers) -> bool:
        if not self.token:
            return True
        scheme, _, given = headers.get("authorization", "").partition(" ")
        same = hmac.compare_digest(given.strip().encode(), self.token.encode())
        return same and scheme.lower() == "bearer"


def _is_large(content_length: str | None) -> bool:
    return content_length is not None and int(content_length) > BODY_BYTES_MAX
