"""The feed of a tenancy: while it has readers, it reads the event log and sends it to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable

import trio

from musterd.manager.events.source import (
    Entrance,
    Forgotten,
    Portions,
    Reader,
    SetBack,
    Source,
    Start,
    ping_frame,
)
from musterd.store.errors import StoreError
from musterd.store.events import EventLog
from musterd.store.queue import Counts
from musterd.store.waiting import Backoff, Bell
from musterd.workers.outcome import Contained, log_contained

PING_SECONDS = 15.0
POLL_SECONDS = 0.2  # between two looks at the log
AWAY_SECONDS_MAX = 5.0  # between two looks at a store that is away
SPACING_SECONDS = 0.05  # between two rounds, and a little for each reader:
SPACING_A_READER = 0.0003
REST_SECONDS = 0.02  # until what a reader had no room for is tried again, while it catches up
BYTES_AT_ONCE = 262_144  # to all readers together, then all others on the loop have their turn
READER_BYTES = 8_192  # what it takes to look at one reader, in bytes
PATIENCE_SECONDS = 0.2  # for a reader that is sent a page of the log
SLOW_SECONDS = 1.0  # one that takes nothing for so long may be cut off for the others' sake
WAITING_BYTES_MAX = 16 * 1024 * 1024  # kept for all readers that do not take it, beside the ring
CLOSE_SECONDS = 2.0


class FeedClosed(Exception):
    """The node is leaving and takes no more readers."""


class Feed:
    """Owned by a tenancy, which runs it. If the store is away, readers stay and continue later.
    What breaks for one reader ends that one.
    """

    def __init__(
        self,
        tenant: str,
        log: EventLog,
        counts: Callable[[], Awaitable[Counts]],
        contained: Callable[[Contained], None] = log_contained,
    ) -> None:
        self.readers: dict[Reader, None] = {}
        self._source = Source(tenant, log)
        self._ring = self._source.ring
        self._entrance = Entrance(self._source, counts)
        self._contained = contained
        self._is_closing = False
        self._came = Bell()  # there is a reader
        self._news = Bell()  # something has happened, as far as this node knows
        self._grew = Bell()  # there is something to tell a reader

    def news(self) -> None:
        """This node has done something: the log may have grown."""
        self._news.ring()

    async def begin(self, last_id: int | None) -> Start:
        """Where a reader with all up to `last_id` begins. Raises `StoreError` or `FeedClosed`."""
        if self._is_closing:
            raise FeedClosed
        return await self._entrance.start_of(last_id)

    async def serve(self, reader: Reader) -> None:
        """Sends everything until the reader has ended."""
        if self._is_closing:
            reader.end("closed")
            return
        self.readers[reader] = None
        self._came.ring()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._catch_up, reader)
                await reader.ended.wait()
                nursery.cancel_scope.cancel()
        finally:
            del self.readers[reader]
            if not self.readers:
                self._came.clear()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read)
            nursery.start_soon(self._write)
            task_status.started()

    async def close(self) -> None:
        """Sends what has happened so far, within a time limit; then ends all streams."""
        self._is_closing = True
        with trio.move_on_after(CLOSE_SECONDS):
            while self.readers and not await self._look():  # noqa: ASYNC110 - the store is away
                await trio.sleep(POLL_SECONDS)
            while any(not one.is_live or self._has_rest(one) for one in self.readers):
                await self._serve_all()
                await trio.sleep(REST_SECONDS)
        self._end_all()
        with trio.move_on_after(CLOSE_SECONDS):
            while self.readers:  # noqa: ASYNC110 - they leave one by one, in their own tasks
                await trio.sleep(REST_SECONDS)

    def _end_all(self) -> None:
        for reader in list(self.readers):
            reader.end("closed" if reader.wire.is_clear else "slow")

    # -- from the log into the ring

    async def _read(self) -> None:
        backoff = Backoff(2 * POLL_SECONDS, AWAY_SECONDS_MAX)
        while True:
            if not self.readers:
                self._source.forget()
                await self._came.wait()
            self._news.clear()
            if not await self._look():
                await backoff.sleep()
                continue
            backoff.succeeded()
            await self._news.wait(POLL_SECONDS)
            await trio.sleep(self._spacing_seconds)

    async def _look(self) -> bool:
        """Returns False if the store is away; the engine has logged that."""
        before = self._source.has_begun, self._ring.end
        try:
            await self._source.look([reader.position for reader in self.readers])
        except StoreError:
            return False
        except SetBack:  # readers have got events that are gone: let them begin anew
            self._end_all()
        except Exception as error:  # noqa: BLE001 - whatever broke: the store is asked again
            self._contained(Contained("feed", None, None, error))
            return False
        finally:
            if before != (self._source.has_begun, self._ring.end):
                self._grew.ring()
        return True

    # -- from the ring to the readers

    async def _write(self) -> None:
        while True:
            await self._came.wait()
            with trio.move_on_at(self._next_round_local()):
                await self._grew.wait()
            self._grew.clear()
            await self._serve_all()
            await trio.sleep(self._spacing_seconds)

    def _next_round_local(self) -> float:
        if any(map(self._has_rest, self.readers)):
            return trio.current_time()
        return min((one.pinged_local for one in self.readers), default=0.0) + PING_SECONDS

    def _has_rest(self, reader: Reader) -> bool:
        is_behind = reader.is_live and reader.position < self._ring.end
        return is_behind or not reader.wire.is_clear

    @property
    def _spacing_seconds(self) -> float:
        return SPACING_SECONDS + SPACING_A_READER * len(self.readers)

    async def _serve_all(self) -> None:
        portions, load = Portions(self._ring), 0
        for reader in list(self.readers):
            before = reader.wire.sent_bytes
            try:
                self._serve_one(reader, portions)
            except Exception as error:  # noqa: BLE001 - whatever broke: the others go on
                self._cut_off(reader, error)
            load += READER_BYTES + reader.wire.sent_bytes - before
            if load >= BYTES_AT_ONCE:
                load = 0
                await trio.lowlevel.checkpoint()
        for reader in too_slow(self.readers, WAITING_BYTES_MAX):
            reader.end("slow")

    def _serve_one(self, reader: Reader, portions: Portions) -> None:
        is_behind = reader.is_live and not self._source.holds(reader.position)
        if not reader.can_take():
            if is_behind:
                reader.end("slow")
            return
        if is_behind:  # it reads; more has happened at once than the ring has room for
            reader.fall_behind()
        elif reader.is_live:
            self._send_to(reader, portions)
        now = trio.current_time()
        if now - reader.pinged_local >= PING_SECONDS and reader.wire.is_clear:
            reader.pinged_local = now
            reader.wire.put(ping_frame(reader.position))
        if reader.wire.is_broken:
            reader.end("gone")

    def _send_to(self, reader: Reader, portions: Portions) -> None:
        chunked = reader.wire.chunked
        data, reader.position = portions.take(reader.position, reader.which, chunked=chunked)
        if data:
            reader.wire.put_framed(data)

    # -- from the log to a reader who has missed more than the ring holds

    async def _catch_up(self, reader: Reader) -> None:
        try:
            await self._read_whenever_behind(reader)
        except Exception as error:  # noqa: BLE001 - whatever broke: the others go on
            self._cut_off(reader, error)

    async def _read_whenever_behind(self, reader: Reader) -> None:
        """Whenever the reader falls behind, until it has ended."""
        while reader.ending is None:
            if not self._source.has_begun:
                await self._grew.wait()
            elif self._source.holds(reader.position):
                self._grew.ring()
                await reader.live_until_behind()
            elif not reader.can_take():  # nothing is read for it meanwhile, or kept
                await trio.sleep(REST_SECONDS)
            elif not await self._read_for(reader):
                await trio.sleep(POLL_SECONDS)

    def _cut_off(self, reader: Reader, error: Exception) -> None:
        self._contained(Contained("feed", None, None, error))
        reader.end("slow")

    async def _read_for(self, reader: Reader) -> bool:
        """Sends one page of the log, or what the reader takes of it without delay: the rest is read
        again when it has room, because others wait to be read for. Returns False if the store is
        away.
        """
        async with self._source.pages:  # held until the page is dropped: so many there are at most
            try:
                page = await self._source.page_for(reader.position, reader.which)
            except StoreError:
                return False
            except Forgotten:
                reader.end("slow")
                return True
            until_local = trio.current_time() + PATIENCE_SECONDS
            for portion in page.portions:
                if not await _has_room(reader, until_local):
                    return True
                reader.wire.put(b"".join(frame.text for frame in portion))
                reader.position = portion[-1].event.id
            reader.position = max(reader.position, page.position)
            return True


async def _has_room(reader: Reader, until_local: float) -> bool:
    """Looks at least once."""
    with trio.move_on_at(until_local):
        while not reader.can_take():
            if reader.ending is not None:
                return False
            await trio.sleep(REST_SECONDS)
        return True
    return False


def too_slow(readers: Iterable[Reader], bytes_max: int) -> list[Reader]:
    """Which readers to cut off so that all together have no more than that left to take: first
    those that have taken nothing for longest. What several have before them counts once.
    """
    waiting = sorted((one for one in readers if not one.wire.is_clear), key=_moved_local)
    holders = Counter(id(one.wire.held) for one in waiting)
    total = sum({id(one.wire.held): len(one.wire.held) for one in waiting}.values())
    cut: list[Reader] = []
    for reader in waiting:
        if total <= bytes_max or trio.current_time() - _moved_local(reader) < SLOW_SECONDS:
            break
        cut.append(reader)
        held = reader.wire.held
        holders[id(held)] -= 1
        if not holders[id(held)]:
            total -= len(held)
    return cut


def _moved_local(reader: Reader) -> float:
    return reader.wire.moved_local
