"""Server-sent events: `GET /events`, and what every such stream does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import TypeAlias, cast

import trio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from musterd.manager.events.feed import FeedClosed
from musterd.manager.events.source import Reader, Start, Wire, opening, snapshot_frame
from musterd.manager.node.status import status_object
from musterd.store.errors import StoreError
from musterd.store.events import EventFilter
from musterd.web.api.operation import TIME_LIMIT, Call
from musterd.web.server.answers import unavailable
from musterd.web.server.listening import CONNECTION, Connection
from musterd.web.server.requests import read_event_id, take_reader_seat

Write: TypeAlias = Callable[[bytes], Awaitable[None]]

MEDIA_TYPE = "text/event-stream"
LAST_ID = "last-event-id"
HEADERS: Mapping[str, str] = {
    "content-type": MEDIA_TYPE,
    "connection": "close",  # nothing follows the stream on it
    "x-accel-buffering": "no",  # tells a proxy not to buffer
}


class EventStream(Response):
    """An endless answer: it lasts until `follow` returns, which gets a function to write with."""

    def __init__(self, follow: Callable[[Connection, Write], Awaitable[None]]) -> None:
        self.status_code, self.background = HTTPStatus.OK, None
        self.init_headers(HEADERS)
        self._follow = follow

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def write(text: bytes) -> None:
            await send({"type": "http.response.body", "body": text, "more_body": True})

        connection: Connection = scope["state"][CONNECTION]
        time_limit: trio.CancelScope = scope[TIME_LIMIT]
        time_limit.deadline = float("inf")
        connection.bound_unsent()
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await self._follow(connection, write)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def follow(call: Call) -> Response:
    if call.request.method == "HEAD":
        await trio.lowlevel.checkpoint()
        return Response(headers=HEADERS)
    feed, which = call.tenant.feed, _filter(call)
    seat = take_reader_seat(call.request)
    try:
        start = await feed.begin(_last_id(call))
    except FeedClosed:
        seat.stop_reading()
        raise unavailable("the node is leaving") from None
    except (StoreError, trio.Cancelled):
        seat.stop_reading()
        raise

    async def serve(connection: Connection, write: Write) -> None:
        await write(_first(call, start))
        # From here on the feed writes to the socket itself, in whole chunks of the body: through
        # the server each event of each reader would cost many times as much.
        is_chunked = call.request.scope["http_version"] != "1.0"
        reader = Reader(which, start.position, Wire(connection.fileno, chunked=is_chunked))
        await feed.serve(reader)
        if reader.ending != "closed":
            connection.hang_up()

    return EventStream(serve)


def _filter(call: Call) -> EventFilter:
    types = cast("tuple[str, ...]", call.query.get("type", ()))
    return EventFilter(call.number("job"), frozenset(types), call.text("kind"), call.text("target"))


def _last_id(call: Call) -> int | None:
    """A browser that reconnects sends the header; the parameter in its URL is then outdated."""
    text = call.request.headers.get(LAST_ID) or call.text("last_event_id")
    return read_event_id(text) if text else None


def _first(call: Call, start: Start) -> bytes:
    if start.counts is None:
        return opening()
    status = status_object(call.site.deps.node.status(), start.counts)
    return opening() + snapshot_frame(start.position, status, gap=start.gap)
