"""Reading the log of events from the store: the newest, those since, those to come."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from musterd.store.events import Event, EventFilter, EventLog, EventPage

WINDOW = 2_000  # positions looked through at first, on the way back
WINDOW_GROWTH = 4
LOOK_SECONDS = 0.2
AWAY_SECONDS = 1.0


async def ordered(log: EventLog) -> int:
    """Puts everything in order that has been written; gives the newest position."""
    from musterd.store.events import ORDERED_AT_ONCE

    newest = await log.order()
    grown = ORDERED_AT_ONCE
    while grown >= ORDERED_AT_ONCE:
        before, newest = newest, await log.order()
        grown = newest - before
    return newest


async def newest_events(
    log: EventLog, which: EventFilter, limit: int, newest: int
) -> Sequence[Event]:
    """Gives the last events up to `newest` that fit, the oldest first."""
    oldest = (await log.bounds()).oldest
    found: deque[Event] = deque(maxlen=limit)
    end, window = newest, WINDOW
    while limit and end >= oldest and len(found) < limit:
        start = max(oldest - 1, end - window, 0)
        earlier: deque[Event] = deque(maxlen=limit - len(found))
        async for events in pages_between(log, which, start, end):
            earlier.extend(events)
        found.extendleft(reversed(earlier))
        end, window = start, window * WINDOW_GROWTH
        if start == 0:
            break
    return list(found)


async def pages_between(
    log: EventLog, which: EventFilter, start: int, end: int
) -> AsyncGenerator[Sequence[Event]]:
    """Gives what lies behind `start`, up to `end`."""
    while start < end:
        page = await log.read(start, which)
        yield [one for one in page.events if one.id <= end]
        if not page.more:
            return
        start = page.position


async def position_at(log: EventLog, moment: datetime, newest: int) -> int:
    """Gives a position behind which everything lies that has happened since then."""
    low, high = max((await log.bounds()).oldest - 1, 0), newest
    while low < high:
        middle = (low + high) // 2
        page = await log.read(middle)
        if page.events and page.events[0].at < moment:
            low = page.events[0].id
        else:
            high = middle
    return low


async def events_to_come(
    log: EventLog, which: EventFilter, position: int, on_away: Callable[[str], None]
) -> AsyncGenerator[EventPage]:
    """Gives what lies behind a position, and then what happens, for ever; nothing now and then. A
    store that is away is waited for.
    """
    import trio

    from musterd.store.errors import StoreUnavailable

    while True:
        pause = LOOK_SECONDS
        try:
            await log.order()
            page = await log.read(position, which)
        except StoreUnavailable as error:
            on_away(str(error))
            pause = AWAY_SECONDS
        else:
            position = max(position, page.position)
            yield page
            if page.more:
                continue
        await trio.sleep(pause)
