"""From the event log to its readers: a shared ring of the newest events, where a reader begins, and
pages for readers that the ring is too short for.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import attrs
import trio

from musterd.store.event_types import event_object
from musterd.store.events import ORDERED_AT_ONCE, Event, EventFilter, EventLog, fits
from musterd.store.queue import Counts

STUCK_SECONDS = 10.0  # a reader that takes nothing for so long is cut off

Ending = Literal["closed", "slow", "gone"]  # got all there was; cut off; left by itself
RETRY_MS = 1_000  # how long a reader that was cut off waits before it comes back


class Wire:
    """Writes to a socket without blocking. Keeps what the reader has no room for, and takes nothing
    more until that is sent. `fileno` returns -1 once the socket is closed.
    """

    def __init__(self, fileno: Callable[[], int], *, chunked: bool) -> None:
        self.chunked = chunked
        self.is_broken = False
        self.sent_bytes = 0
        self._fileno = fileno
        self._put = b""
        self._rest = memoryview(b"")
        self.moved_local = 0.0

    @property
    def is_clear(self) -> bool:
        return not self._rest

    @property
    def held(self) -> bytes:
        """What memory its rest keeps: the whole of what was put."""
        return self._put

    @property
    def is_stuck(self) -> bool:
        return not self.is_clear and trio.current_time() - self.moved_local >= STUCK_SECONDS

    def put(self, text: bytes) -> None:
        """Sends a text for this reader alone."""
        self.put_framed(chunk(text) if self.chunked else text)

    def put_framed(self, data: bytes) -> None:
        """Sends data that is already a chunk if the wire uses chunks. Only when it is clear."""
        assert self.is_clear, "what was sent before goes first"
        self._put, self._rest = data, memoryview(data)
        self.moved_local = trio.current_time()
        self.flush()

    def flush(self) -> bool:
        """Returns whether everything was sent."""
        while self._rest:
            try:
                count = os.write(self._fileno(), self._rest)
            except BlockingIOError:
                return False
            except OSError:
                self.is_broken, self._rest = True, memoryview(b"")
            else:
                self._rest = self._rest[count:]
                self.sent_bytes += count
                self.moved_local = trio.current_time()
        self._put = b""
        return not self.is_broken


@attrs.define(eq=False)
class Reader:
    """`position`: everything up to it that matches is on the wire."""

    which: EventFilter
    position: int
    wire: Wire
    is_live: bool = False  # what it is to get is in the ring
    pinged_local: float = attrs.field(factory=trio.current_time)
    ended: trio.Event = attrs.field(factory=trio.Event)
    behind: trio.Event = attrs.field(factory=trio.Event)
    ending: Ending | None = None

    def can_take(self) -> bool:
        """Sends what is left; True = there is room for more. Ends a gone or stuck reader."""
        if self.wire.flush():
            return self.ending is None
        if self.wire.is_broken:
            self.end("gone")
        elif self.wire.is_stuck:
            self.end("slow")
        return False

    async def live_until_behind(self) -> None:
        """Returns when the ring no longer holds the reader's next event."""
        self.is_live, self.behind = True, trio.Event()
        await self.behind.wait()

    def fall_behind(self) -> None:
        self.is_live = False
        self.behind.set()

    def end(self, how: Ending) -> None:
        if self.ending is None:
            self.ending = how
            self.ended.set()


class Frame(NamedTuple):
    """One event, encoded once for all readers."""

    event: Event
    text: bytes


def frame_of(event: Event, tenant: str) -> Frame:
    return Frame(event, _written(event.type, event.id, event_object(event, tenant)))


def opening() -> bytes:
    return f"retry: {RETRY_MS}\n\n".encode()


def snapshot_frame(position: int, status: Mapping[str, object], *, gap: bool) -> bytes:
    """The state at a position of the log. `gap`: the reader has missed events."""
    snapshot = {**status, "position": position}
    return _written("snapshot", position, {**snapshot, "gap": True} if gap else snapshot)


def ping_frame(position: int) -> bytes:
    """A sign of life: everything up to this position has been sent."""
    return _written("ping", position, {"position": position})


def chunk(data: bytes) -> bytes:
    """A chunk of a chunked body (RFC 9112, 7.1)."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def _written(name: str, position: int, value: object) -> bytes:
    # JSON with everything but ASCII escaped has no line end in it.
    return f"event: {name}\nid: {position}\ndata: {json.dumps(value)}\n\n".encode()


FRAMES_AT_ONCE = 100  # then all others on the loop have their turn
PAGES_AT_ONCE = 4  # read for single readers at the same time
SNAPSHOT_SECONDS = 1.0  # for so long a snapshot serves all who come
ASKING_MAX = 4  # readers that ask the store where they may go on, at the same time
FRAMES_MAX = 20_000
BYTES_MAX = 8 * 1024 * 1024
PORTION_BYTES = 128 * 1024  # of one reader, at once


class Ring:
    """Holds the log after `start` up to `end`; drops the oldest events when it is full."""

    def __init__(self, frames_max: int = FRAMES_MAX, bytes_max: int = BYTES_MAX) -> None:
        self.start = self.end = 0
        self._frames: list[Frame] = []
        self._bytes = 0
        self._frames_max, self._bytes_max = frames_max, bytes_max

    def begin(self, position: int) -> None:
        """Forgets everything; the next event follows `position`."""
        self.start = self.end = position
        self._frames, self._bytes = [], 0

    def add(self, frames: Sequence[Frame], end: int) -> None:
        """The log after `self.end` up to `end`, in order."""
        self._frames += frames
        self._bytes += sum(len(frame.text) for frame in frames)
        self.end = end
        self._drop_oldest()

    def between(self, position: int, end: int) -> Sequence[Frame]:
        """The frames after a position, which must not be before `start`, up to `end`."""
        first = bisect_right(self._frames, position, key=_position_of)
        return self._frames[first : bisect_right(self._frames, end, lo=first, key=_position_of)]

    def _drop_oldest(self) -> None:
        count = 0
        while len(self._frames) - count > self._frames_max or self._bytes > self._bytes_max:
            self._bytes -= len(self._frames[count].text)
            count += 1
        if count:
            self.start = self._frames[count - 1].event.id
            del self._frames[:count]


class Portions:
    """What readers get in one round. Those at one position with one filter share a text."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._end = ring.end
        self._frames: dict[int, Sequence[Frame]] = {}
        self._of_job: dict[int, dict[int | None, list[Frame]]] = {}
        self._made: dict[Hashable, tuple[bytes, int]] = {}

    def take(self, position: int, which: EventFilter, *, chunked: bool) -> tuple[bytes, int]:
        """What to send, if anything, and the reader's next position. It may be only a portion."""
        if position >= self._end:
            return b"", position
        key = (position, which, chunked)
        if key not in self._made:
            texts, position = self._portion(position, which)
            data = b"".join(texts)
            self._made[key] = (chunk(data) if chunked and data else data, position)
        return self._made[key]

    def _portion(self, position: int, which: EventFilter) -> tuple[list[bytes], int]:
        texts: list[bytes] = []
        size = 0
        for frame in self._candidates(position, which):
            if fits(frame.event, which):
                texts.append(frame.text)
                size += len(frame.text)
                if size >= PORTION_BYTES:
                    return texts, frame.event.id
        return texts, self._end

    def _candidates(self, position: int, which: EventFilter) -> Sequence[Frame]:
        """Readers that each follow one job do not look at other jobs' events."""
        if position not in self._frames:
            self._frames[position] = self._ring.between(position, self._end)
        frames = self._frames[position]
        if which.job_id is None:
            return frames
        if position not in self._of_job:
            sorted_out: dict[int | None, list[Frame]] = {}
            for frame in frames:
                sorted_out.setdefault(frame.event.job_id, []).append(frame)
            self._of_job[position] = sorted_out
        return self._of_job[position].get(which.job_id, ())


def _position_of(frame: Frame) -> int:
    return frame.event.id


class Forgotten(Exception):
    """The log no longer has the wanted events."""


class SetBack(Exception):
    """The log is shorter than what has been read of it: a failover has lost its end."""


@attrs.frozen
class Page:
    """A page of the log for one reader, in portions that are sent one at a time."""

    portions: Sequence[Sequence[Frame]]
    position: int  # all up to it has been looked at


@attrs.define(eq=False)
class Source:
    """`ring` holds the newest part of the log. Calls may raise `StoreError`; repeat them then."""

    tenant: str
    log: EventLog
    ring: Ring = attrs.field(factory=Ring, init=False)
    has_begun: bool = attrs.field(default=False, init=False)
    _lost: range = attrs.field(default=range(0), init=False)
    _turn: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    pages: trio.CapacityLimiter = attrs.field(
        factory=lambda: trio.CapacityLimiter(PAGES_AT_ONCE), init=False
    )

    def holds(self, position: int) -> bool:
        """Whether everything after this position is in the ring, or will be."""
        return self.has_begun and position >= self.ring.start

    def was_lost(self, position: int) -> bool:
        """Whether a failover may have replaced the event at this position."""
        return position in self._lost

    def forget(self) -> None:
        self.has_begun = False
        self.ring.begin(0)

    async def look(self, positions: Collection[int]) -> None:
        """Reads to the end of the log, for all readers. Raises `SetBack` if that has moved back."""
        async with self._turn:
            grown = ORDERED_AT_ONCE
            while grown >= ORDERED_AT_ONCE:  # else all that there was has been put in order
                newest = await self.log.order()
                if newest < self.ring.end:
                    self._lost = range(newest + 1, max(self.ring.end + 1, self._lost.stop))
                    self.forget()
                    raise SetBack
                if not self.has_begun:
                    self._begin(newest, positions)
                before = self.ring.end
                await self._read_to(newest)
                grown = newest - before

    async def page_for(self, position: int, which: EventFilter) -> Page:
        """What follows a position. Raises `Forgotten` if some of it may have been deleted."""
        page = await self.log.read(position, which)
        if (await self.log.bounds()).oldest > position + 1:
            raise Forgotten
        frames = await self._frames(page.events)
        return Page(list(_portions_of(frames)), page.position)

    def _begin(self, newest: int, positions: Collection[int]) -> None:
        """Far enough back that readers who return after a while find all they missed."""
        near = [position for position in positions if 0 <= newest - position <= FRAMES_MAX]
        self.ring.begin(min([newest, *near]))
        self.has_begun = True

    async def _read_to(self, newest: int) -> None:
        while self.ring.end < newest:
            page = await self.log.read(self.ring.end)
            end = page.position if page.more else max(page.position, newest)
            self.ring.add(await self._frames(page.events), end)

    async def _frames(self, events: Sequence[Event]) -> list[Frame]:
        frames: list[Frame] = []
        for first in range(0, len(events), FRAMES_AT_ONCE):
            some = events[first : first + FRAMES_AT_ONCE]
            frames += [frame_of(one, self.tenant) for one in some]
            await trio.lowlevel.checkpoint()
        return frames


def _portions_of(frames: Sequence[Frame]) -> Iterator[Sequence[Frame]]:
    first, size = 0, 0
    for number, frame in enumerate(frames):
        size += len(frame.text)
        if size >= PORTION_BYTES:
            yield frames[first : number + 1]
            first, size = number + 1, 0
    if frames[first:]:
        yield frames[first:]


@attrs.frozen
class Start:
    """Where a reader begins. `counts`: of the queue at `position` or later; None = it continues
    where it was. `gap`: it asked for events that the log does not have.
    """

    position: int
    counts: Counts | None = None
    gap: bool = False


@attrs.define(eq=False)
class Entrance:
    source: Source
    counts: Callable[[], Awaitable[Counts]]
    _snapshot: tuple[float, Start] | None = attrs.field(default=None, init=False)
    _turn: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    _asking: trio.CapacityLimiter = attrs.field(
        factory=lambda: trio.CapacityLimiter(ASKING_MAX), init=False
    )

    async def start_of(self, last_id: int | None) -> Start:
        """Where a reader with everything up to `last_id` begins; None = it is new."""
        if last_id is None:
            return await self._snapshot_now()
        if self.source.was_lost(last_id):
            return attrs.evolve(await self._snapshot_now(), gap=True)
        if last_id <= self.source.ring.end and self.source.holds(last_id):
            return Start(last_id)
        async with self._asking:
            newest = await self.source.log.order()
            oldest = (await self.source.log.bounds()).oldest
        if max(oldest - 1, 0) <= last_id <= newest:
            return Start(last_id)
        return attrs.evolve(await self._snapshot_now(), gap=True)

    async def _snapshot_now(self) -> Start:
        """Takes the position first: what happens while the queue is counted is sent again."""
        async with self._turn:
            now = trio.current_time()
            if self._snapshot is None or now - self._snapshot[0] >= SNAPSHOT_SECONDS:
                position = await self.source.log.order()
                self._snapshot = now, Start(position, await self.counts())
            return self._snapshot[1]
