"""A page that is open hears what is new in its view, as server-sent events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus

import trio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from musterd.web.api.events import HEADERS
from musterd.web.api.operation import PATIENCE
from musterd.web.server.connections import LINE, Line
from musterd.web.server.problem import RETRY, Refused
from musterd.web.ui.live import Key, Live, Parts, Shown, message

PING_SECONDS = 10.0  # so that a page that hears nothing for long knows that it is cut off


def take_place(line: Line) -> None:
    """A reader of a view takes a place among the readers of events. Raises `Refused`."""
    if not line.become_reader():
        most = line.rooms.readers_max
        said = f"{most} readers follow already ([http] max_event_readers)"
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, said, RETRY)


class LiveStream(Response):
    """An answer without an end: it ends when its reader leaves, may no longer look, or there is
    nothing to look at.
    """

    def __init__(
        self, live: Live, key: Key, make: Callable[[], Awaitable[Parts | None]],
        may_look: Callable[[], bool],
    ) -> None:  # fmt: skip
        self.status_code, self.background = HTTPStatus.OK, None
        self.init_headers(HEADERS)
        self._live, self._key, self._make, self._may_look = live, key, make, may_look

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        line: Line = scope["state"][LINE]
        patience: trio.CancelScope = scope[PATIENCE]
        patience.deadline = float("inf")
        line.bound_unsent()
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        shown = self._live.enter(self._key, self._make)
        try:
            await self._tell(shown, send)
        finally:
            self._live.leave(self._key)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell(self, shown: Shown, send: Send) -> None:
        state, told_local = 0, trio.current_time()
        while self._may_look():
            await shown.look()
            if shown.state != state:
                text, state = shown.news(state), shown.state
            elif trio.current_time() - told_local >= PING_SECONDS:
                text = message("ping", "")
            else:
                text = b""
            if text:
                told_local = trio.current_time()
                await send({"type": "http.response.body", "body": text, "more_body": True})
            if shown.is_gone:
                return
            await trio.sleep_until(shown.next_local)
