"""`GET /events`: what happens, as it happens, as server-sent events."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import cast

import trio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from musterd.manager.events.feed.entrance import Start
from musterd.manager.events.feed.feed import Feed, FeedClosed
from musterd.manager.events.feed.frames import opening, snapshot_frame
from musterd.manager.events.feed.reader import Reader, Wire
from musterd.manager.node.objects import status_object
from musterd.store.errors import StoreError
from musterd.store.events import EventFilter
from musterd.web.api.operation import PATIENCE, Call
from musterd.web.server import asked
from musterd.web.server.connections import LINE, Line
from musterd.web.server.problem import RETRY, Refused

MEDIA_TYPE = "text/event-stream"
LAST_ID = "last-event-id"
HEADERS: Mapping[str, str] = {
    "content-type": MEDIA_TYPE,
    "connection": "close",  # nothing follows a stream
    "x-accel-buffering": "no",  # of a proxy
}


async def follow(call: Call) -> Response:
    if call.request.method == "HEAD":
        await trio.lowlevel.checkpoint()
        return Response(headers=HEADERS)
    which = _filter(call)
    line: Line = call.request.scope["state"][LINE]
    if not line.become_reader():
        most = line.rooms.readers_max
        said = f"{most} readers follow the events already ([http] max_event_readers)"
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, said, RETRY)
    try:
        start = await call.door.feed.begin(_last_id(call))
    except FeedClosed:
        line.be_ordinary()
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "the node is leaving", RETRY) from None
    except (StoreError, trio.Cancelled):
        line.be_ordinary()
        raise
    return _Stream(call.door.feed, line, which, start.position, _first(call, start))


class _Stream(Response):
    """An answer that ends when the feed does, or the reader leaves."""

    def __init__(
        self, feed: Feed, line: Line, which: EventFilter, position: int, first: bytes
    ) -> None:
        self.status_code, self.background = HTTPStatus.OK, None
        self.init_headers(HEADERS)
        self._feed, self._line, self._first = feed, line, first
        self._which, self._position = which, position

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        patience: trio.CancelScope = scope[PATIENCE]
        patience.deadline = float("inf")
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        await send({"type": "http.response.body", "body": self._first, "more_body": True})
        # From here on the feed writes to the socket itself: through the server each event of each
        # reader would cost many times as much. What it writes are whole chunks of the body.
        self._line.bound_unsent()
        wire = Wire(self._line.fileno, chunked=scope["http_version"] != "1.0")
        reader = Reader(self._which, self._position, wire)
        await self._feed.serve(reader)
        if reader.ending != "closed":
            self._line.hang_up()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _filter(call: Call) -> EventFilter:
    types = cast("tuple[str, ...]", call.query.get("type", ()))
    return EventFilter(call.number("job"), frozenset(types), call.text("kind"), call.text("target"))


def _last_id(call: Call) -> int | None:
    """The browser's own header goes before the address, which stays as it was at the start. What
    is no number is like an id that the log does not have.
    """
    given = call.request.headers.get(LAST_ID) or call.text("last_event_id")
    return asked.event_id(given) if given else None


def _first(call: Call, start: Start) -> bytes:
    if start.counts is None:
        return opening()
    status = status_object(call.site.plan.node.status(), start.counts)
    return opening() + snapshot_frame(start.position, status, gap=start.gap)
