"""From the log into the ring; and page by page for those who have missed more than the ring has."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import attrs
import trio

from musterd.manager.events.feed.frames import Frame, frame_of
from musterd.manager.events.feed.ring import FRAMES_MAX, PORTION_BYTES, Ring
from musterd.store.events import ORDERED_AT_ONCE, Event, EventFilter, EventLog

FRAMES_AT_ONCE = 100  # then all others on the loop have their turn
PAGES_AT_ONCE = 4  # read for single readers at the same time


class Forgotten(Exception):
    """What was to be read is no longer in the log."""


class SetBack(Exception):
    """The log ends before what has been read of it: a failover has lost the end of it."""


@attrs.frozen
class Page:
    """What the log has for one reader: in portions, each of which may go at once."""

    portions: Sequence[Sequence[Frame]]
    position: int  # all up to it has been looked at


@attrs.define(eq=False)
class Source:
    """`ring` holds what the log has behind the place where it began. The calls raise `StoreError`,
    and can then be made again.
    """

    tenant: str
    log: EventLog
    ring: Ring = attrs.field(factory=Ring, init=False)
    has_begun: bool = attrs.field(default=False, init=False)
    _lost: range = attrs.field(default=range(0), init=False)
    _turn: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    _pages: trio.CapacityLimiter = attrs.field(
        factory=lambda: trio.CapacityLimiter(PAGES_AT_ONCE), init=False
    )

    def holds(self, position: int) -> bool:
        """Whether all that is behind this position is in the ring, or will be."""
        return self.has_begun and position >= self.ring.start

    def was_lost(self, position: int) -> bool:
        """Whether something else stood, or may have stood, at this position before a failover."""
        return position in self._lost

    def forget(self) -> None:
        """Nobody reads any more."""
        self.has_begun = False
        self.ring.begin(0)

    async def look(self, positions: Collection[int]) -> None:
        """Brings the ring to the end of the log; `positions` are those where readers stand. Raises
        `SetBack` once if the log has lost its end, and then begins anew.
        """
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
        """Gives what follows a position. Raises `Forgotten` if there may have been more."""
        async with self._pages:
            page = await self.log.read(position, which)
            if (await self.log.bounds()).oldest > position + 1:
                raise Forgotten
        frames = await self._frames(page.events)
        return Page(list(_portions_of(frames)), page.position)

    def _begin(self, newest: int, positions: Collection[int]) -> None:
        """So far back that those who come again after a while find all they missed."""
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
