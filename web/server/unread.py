"""What a peer still sends when its answer is ready."""

from __future__ import annotations

import math

import trio
from starlette.datastructures import MutableHeaders
from starlette.types import Message, Receive

PASSED_OVER_BYTES = 4_194_304  # peers that send before they read hear why, if they send no more
PASSED_OVER_SECONDS = 1.0


class Unread:
    """Stands between a request and its reader, and knows how much of the body is left.

    The server holds what has not been read, a little of it, and its end of the request waits behind
    that: whoever leaves a body unread would keep the connection for good.
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
        """Reads on for a while, then lets the answer close the connection."""
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
