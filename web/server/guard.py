"""Checks every request before its route: token, host name, size and time."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from http import HTTPStatus

import trio
from attrs import field, frozen
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from musterd.config.credentials import BearerToken
from musterd.config.listen import TcpAddress, UnixAddress
from musterd.web.api.operation import TIME_LIMIT
from musterd.web.api.routes import OPEN_PATHS
from musterd.web.deps import Keys, NodeView
from musterd.web.server.answers import (
    AUDITED,
    RECHECK,
    SIGNED_IN,
    path_with_query,
    problem,
    sign_in_answer,
    takes_html,
    unavailable,
)
from musterd.web.server.places import CONNECTION, REQUESTS_MAX, Connection, Doing
from musterd.web.server.refusals import Refusals, audit, audit_log
from musterd.web.server.requests import HOLDER, too_large
from musterd.web.ui.sessions import Sessions, session_id_of

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
REQUEST_SECONDS = 30.0
OWN_SITES = frozenset({"same-origin", "none"})  # none: no page at all
NO_RIGHTS = BearerToken("", "", ())  # callers of what is open to all
# Answered also while all other requests have to wait.
PROBES = frozenset({"/livez", "/readyz", "/metrics"})
READING_METHODS = frozenset({"GET", "HEAD"})
REFUSALS = frozenset(
    {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.MISDIRECTED_REQUEST}
)
NO_ACTIONS = frozenset({"/jobs", "/ui/jobs/confirm"})  # a job's own events say when it was made
AUDITED_PATH_MAX = 200
SAFE_HEADERS: Mapping[str, str] = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


@frozen
class Guard:
    """Refuses what must not pass, and adds the headers that keep browsers careful."""

    app: ASGIApp
    address: TcpAddress | UnixAddress
    keys: Keys
    sessions: Sessions
    node: NodeView
    body_bytes_max: Callable[[], int]
    refusals: Refusals = field(factory=Refusals)
    log: logging.Logger = field(factory=audit_log)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        # Still percent-encoded: a target may contain a slash.
        path: str = scope["raw_path"].decode("ascii").removesuffix("/") or "/"
        place = path_with_query(path, scope["query_string"])
        refusal = self._refusal(scope["method"], place, headers)
        connection: Connection = scope["state"][CONNECTION]
        if refusal is None and not connection.begin(
            Doing.PROBE if path in PROBES else Doing.REQUEST
        ):
            refusal = unavailable(f"{REQUESTS_MAX} requests are being answered already").answer()
        holder = self._holder(headers)
        scope = {
            **scope, "path": path, "root_path": "", HOLDER: holder or NO_RIGHTS,
            SIGNED_IN: holder is not None and _by_cookie(headers, self.keys), AUDITED: {},
            RECHECK: lambda: self._holder(headers) == holder,
        }  # fmt: skip
        try:
            await self._answer(refusal or self.app, scope, receive, send)
        finally:
            self._write_down(scope)
            connection.wait()

    async def _answer(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        # The bound ends an answer whose reader has stopped reading.
        with trio.move_on_after(REQUEST_SECONDS) as scope[TIME_LIMIT]:
            async with trio.open_nursery() as nursery:
                has_body = headers.get("content-length", "0") != "0"
                has_body |= "transfer-encoding" in headers
                unread = UnreadBody(receive, nursery, has_body=has_body)

                async def send_safely(message: Message) -> None:
                    if message["type"] == "http.response.start":
                        scope[AUDITED]["status"] = message["status"]
                        if message["status"] == HTTPStatus.UNAUTHORIZED:
                            await self._slow_down(scope["state"][CONNECTION])
                        answer = MutableHeaders(scope=message)
                        for name, value in SAFE_HEADERS.items():
                            answer.setdefault(name, value)
                        if scope[HOLDER] is NO_RIGHTS:
                            answer["connection"] = "close"  # so the pace of new ones bounds them
                        await unread.pass_over(answer)
                    await send(message)

                await app(scope, unread.receive, send_safely)
                nursery.cancel_scope.cancel()

    async def _slow_down(self, connection: Connection) -> None:
        """Makes whoever has no valid token wait, in no place that another could have."""
        connection.wait()
        await trio.sleep(self.refusals.pause_seconds(connection.peer, trio.current_time()))

    def _write_down(self, scope: Scope) -> None:
        """A refusal, or what may have changed something, for the audit log."""
        seen: dict[str, object] = scope[AUDITED]
        status, path = seen.pop("status", None), scope["path"]
        is_action = scope["method"] not in READING_METHODS and path not in NO_ACTIONS
        may_be_done = not isinstance(status, int) or status // 100 in (2, 3, 5)
        if status in REFUSALS or (is_action and may_be_done):
            known = {
                "who": scope[HOLDER].name, "peer": scope["state"][CONNECTION].peer,
                "method": scope["method"], "path": path[:AUDITED_PATH_MAX], "status": status,
            }  # fmt: skip
            audit(self.log, is_done=status not in REFUSALS, **{**known, **seen})

    def _refusal(self, method: str, place: str, headers: Headers) -> Response | None:
        if not self._knows_host(headers.get("host")):
            return problem(
                HTTPStatus.MISDIRECTED_REQUEST, "ask for localhost, or the host of http.listen"
            )
        if "webhook-id" in headers:
            return problem(HTTPStatus.FORBIDDEN, "this is a webhook, and no receiver is here")
        if place.partition("?")[0] not in OPEN_PATHS and self._holder(headers) is None:
            return self._unknown(method, place, headers)
        if method not in READING_METHODS and not _is_own_page(headers, self.keys):
            return problem(HTTPStatus.FORBIDDEN, "a page of another site may not change anything")
        if int(headers.get("content-length", 0)) > (most := self.body_bytes_max()):
            return too_large(most).answer()
        return None

    def _holder(self, headers: Headers) -> BearerToken | None:
        """The token of the request or its session; None = unknown."""
        if not _by_cookie(headers, self.keys):
            return self.keys.holder(headers.get("authorization", ""))
        session_id = session_id_of(headers)
        return None if session_id is None else self.sessions.holder(session_id, self.keys)

    def _unknown(self, method: str, place: str, headers: Headers) -> Response:
        challenge = {"www-authenticate": 'Bearer realm="musterd"'}
        if not takes_html(headers):
            said = "send Authorization: Bearer TOKEN"
            return problem(HTTPStatus.UNAUTHORIZED, said, challenge)
        after = place if method in READING_METHODS else "/"
        answer = sign_in_answer(self.node.status(), after)
        answer.headers.update(challenge)
        return answer

    def _knows_host(self, host: str | None) -> bool:
        """Loopback accepts only this machine's names, which keeps out pages loaded elsewhere."""
        if host is None or not isinstance(self.address, TcpAddress) or not self.address.is_loopback:
            return True
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        own = f"[{self.address.host}]" if ":" in self.address.host else self.address.host
        return name.lower() in LOOPBACK_NAMES or name.lower() == own.lower()


def _by_cookie(headers: Headers, keys: Keys) -> bool:
    """Whether only a cookie can identify the caller."""
    return bool(keys.tokens) and "authorization" not in headers


def _is_own_page(headers: Headers, keys: Keys) -> bool:
    """Browsers say which page a form comes from, programs do not. If a cookie identifies the
    caller, the origin must be given: browsers send cookies by themselves.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None and site not in OWN_SITES:
        return False
    if origin is not None:
        return origin.partition("://")[2].lower() == headers.get("host", "").lower()
    return site == "same-origin" or not _by_cookie(headers, keys)


PASSED_OVER_BYTES = 4_194_304  # peers that send before they read hear why, if they send no more
PASSED_OVER_SECONDS = 1.0


class UnreadBody:
    """Wraps `receive` and knows whether part of the body is unread. The server waits for the rest
    of a body before it ends the request: an unread one would hold the connection forever.
    """

    def __init__(self, receive: Receive, nursery: trio.Nursery, *, has_body: bool) -> None:
        self._receive = receive
        self._nursery = nursery
        self.is_left = has_body

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] != "http.request" or not message.get("more_body", False):
            self.is_left = False
        return message

    async def pass_over(self, answer: MutableHeaders) -> None:
        """Reads on for a while, then makes the answer close the connection."""
        if not self.is_left:
            return
        with trio.move_on_after(PASSED_OVER_SECONDS):
            await self._drop(PASSED_OVER_BYTES)
        if self.is_left:
            answer["connection"] = "close"
            self._nursery.start_soon(self._drop, math.inf)

    async def _drop(self, most_bytes: float) -> None:
        size = 0
        while self.is_left and size < most_bytes:
            size += len((await self.receive()).get("body", b""))
