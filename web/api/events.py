"""`GET /events`: events as they happen, as server-sent events."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import cast

import trio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from musterd.manager.events.feed import Feed, FeedClosed
from musterd.manager.events.source import Reader, Start, Wire, opening, snapshot_frame
from musterd.manager.node.status import status_object
from musterd.store.errors import StoreError
from musterd.store.events import EventFilter
from musterd.web.api.operation import TIME_LIMIT, Call
from musterd.web.server.answers import unavailable
from musterd.web.server.listening import Connection
from musterd.web.server.requests import read_event_id, take_reader_seat

MEDIA_TYPE = "text/event-stream"
LAST_ID = "last-event-id"
HEADERS: Mapping[str, str] = {
    "content-type": MEDIA_TYPE,
    "connection": "close",  # nothing follows the stream on it
    "x-accel-buffering": "no",  # tells a proxy not to buffer
}


async def follow(call: Call) -> Response:
    if call.request.method == "HEAD":
        await trio.lowlevel.checkpoint()
        return Response(headers=HEADERS)
    which = _filter(call)
    connection = take_reader_seat(call.request)
    try:
        start = await call.tenant.feed.begin(_last_id(call))
    except FeedClosed:
        connection.stop_reading()
        raise unavailable("the node is leaving") from None
    except (StoreError, trio.Cancelled):
        connection.stop_reading()
        raise
    return _Stream(call.tenant.feed, connection, which, start.position, _first(call, start))


class _Stream(Response):
    """An answer that ends when the feed does, or the reader leaves."""

    def __init__(
        self, feed: Feed, connection: Connection, which: EventFilter, position: int, first: bytes
    ) -> None:
        self.status_code, self.background = HTTPStatus.OK, None
        self.init_headers(HEADERS)
        self._feed, self._connection, self._first = feed, connection, first
        self._which, self._position = which, position

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        time_limit: trio.CancelScope = scope[TIME_LIMIT]
        time_limit.deadline = float("inf")
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        await send({"type": "http.response.body", "body": self._first, "more_body": True})
        # From here on the feed writes to the socket itself, in whole chunks of the body: through
        # the server each event of each reader would cost many times as much.
        self._connection.bound_unsent()
        wire = Wire(self._connection.fileno, chunked=scope["http_version"] != "1.0")
        reader = Reader(self._which, self._position, wire)
        await self._feed.serve(reader)
        if reader.ending != "closed":
            self._connection.hang_up()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _filter(call: Call) -> EventFilter:
    types = cast("tuple[str, ...]", call.query.get("type", ()))
    return EventFilter(call.number("job"), frozenset(types), call.text("kind"), call.text("target"))


def _last_id(call: Call) -> int | None:
    """A browser that reconnects sends the header; the parameter in its URL is then out of date."""
    text = call.request.headers.get(LAST_ID) or call.text("last_event_id")
    return read_event_id(text) if text else None


def _first(call: Call, start: Start) -> bytes:
    if start.counts is None:
        return opening()
    status = status_object(call.site.deps.node.status(), start.counts)
    return opening() + snapshot_frame(start.position, status, gap=start.gap)
