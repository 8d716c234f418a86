"""A log of events in memory that does what a test tells it, and readers of a feed without a web
side.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import trio

from musterd.manager.events.feed import Feed
from musterd.manager.events.source import Reader, Wire
from musterd.store.errors import StoreUnavailable
from musterd.store.events import (
    ALL_EVENTS,
    READ_AT_ONCE,
    Event,
    EventBounds,
    EventFilter,
    EventPage,
    NewEvent,
    fits,
)
from musterd.store.queue import Counts
from musterd.workers.outcome import Contained, log_contained
from tests.support.sse_client import fields_of

START = datetime(2030, 1, 1, tzinfo=UTC)
COUNTS = Counts({}, 0, 0, 0.0, None, None)


@attrs.define(eq=False)
class MemoryLog:
    """`drafts` are written and not yet in order. While it is `away` every call fails."""

    events: list[Event] = attrs.Factory(list[Event])
    drafts: list[tuple[str, int | None, str | None, str | None]] = attrs.Factory(
        list[tuple[str, "int | None", "str | None", "str | None"]]
    )
    trimmed: int = 0  # positions that are gone
    newest: int = 0
    away: bool = False
    breaks: Exception | None = None  # so does every call
    calls: int = 0
    calls_max: int | None = None  # then it is away for good

    def add(
        self,
        type_: str = "job.started",
        job_id: int | None = 1,
        *,
        kind: str | None = "report",
        target: str | None = None,
    ) -> None:
        self.drafts.append((type_, job_id, kind, target))

    def forget(self, up_to: int) -> None:
        self.events = [one for one in self.events if one.id > up_to]
        self.trimmed = up_to

    def lose(self, after: int) -> None:
        """A standby has taken over that has not heard of the rest."""
        self.events = [one for one in self.events if one.id <= after]
        self.newest = after

    async def record(self, events: Sequence[NewEvent]) -> None:
        await self._called()
        for one in events:
            self.add(one.type, None, kind=None)

    async def order(self) -> int:
        await self._called()
        for type_, job_id, kind, target in self.drafts:
            self.newest += 1
            at = START + timedelta(seconds=self.newest)
            data = {"number": self.newest}
            self.events.append(Event(self.newest, at, type_, job_id, kind, target, data))
        self.drafts.clear()
        return self.newest

    async def read(
        self, after: int, which: EventFilter = ALL_EVENTS, *, rows_max: int = READ_AT_ONCE
    ) -> EventPage:
        await self._called()
        found = [one for one in self.events if one.id > after]
        page = found[:rows_max]
        more = len(found) > len(page)
        position = page[-1].id if more else max(after, self.newest)
        return EventPage([one for one in page if fits(one, which)], position, more)

    async def bounds(self) -> EventBounds:
        await self._called()
        oldest = self.events[0].id if self.events else self.newest + bool(self.newest)
        return EventBounds(oldest, self.newest)

    async def trim(self, keep_seconds: float, rows_max: int) -> int:
        await self._called()
        return 0

    async def counts(self) -> Counts:
        await self._called()
        return COUNTS

    async def _called(self) -> None:
        self.calls += 1
        await trio.lowlevel.checkpoint()
        if self.away or (self.calls_max is not None and self.calls > self.calls_max):
            raise StoreUnavailable("connection refused", "unreachable")
        if self.breaks is not None:
            raise self.breaks


class Listener:
    """The far end of a reader's socket. Reads only when it is asked to."""

    def __init__(self, reader: Reader, ear: socket.socket) -> None:
        self.reader = reader
        self._ear = ear
        self._heard = b""

    def hear(self) -> list[dict[str, Any]]:
        """All frames that have come so far, the pings too."""
        self.take_in()
        return self.heard()

    def heard(self) -> list[dict[str, Any]]:
        """The frames that were read."""
        return list(frames_of(self._heard))

    def ids(self) -> list[int]:
        return [one["id"] for one in self.hear() if one["event"] != "ping"]

    def take_in(self) -> None:
        """Reads what has come, so that there is room for more."""
        while True:
            try:
                data = self._ear.recv(1 << 20)
            except (BlockingIOError, ConnectionResetError):
                return
            if not data:
                return
            self._heard += data

    def leave(self) -> None:
        self._ear.close()


@contextmanager
def listening(
    position: int = 0, which: EventFilter = ALL_EVENTS, *, chunked: bool = False
) -> Generator[Listener]:
    mouth, ear = socket.socketpair()
    with mouth, ear:
        mouth.setblocking(False)
        ear.setblocking(False)
        yield Listener(Reader(which, position, Wire(mouth.fileno, chunked=chunked)), ear)


@contextmanager
def mute_pipe() -> Generator[int]:
    """The writing end of a pipe that nobody reads."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    try:
        yield write_end
    finally:
        os.close(read_end)
        os.close(write_end)


def feed_of(log: MemoryLog, contained: Callable[[Contained], None] = log_contained) -> Feed:
    return Feed("default", log, log.counts, contained)


def frames_of(text: bytes) -> Iterator[dict[str, Any]]:
    """Reads server-sent events; what is not whole is left out."""
    *blocks, _ = text.decode().split("\n\n")
    for block in blocks:
        fields = fields_of(block)
        if "event" in fields:
            data = json.loads(fields["data"])
            yield {"event": fields["event"], "id": int(fields["id"]), "data": data}
