"""How stretches of the log of events are found and read."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime

from musterd.store.events import ORDERED_AT_ONCE, READ_AT_ONCE, Event, EventFilter, EventLog


async def order_all(log: EventLog) -> int:
    """Orders all existing drafts; returns the newest position."""
    newest = await log.order()
    grown = ORDERED_AT_ONCE
    while grown >= ORDERED_AT_ONCE:
        before, newest = newest, await log.order()
        grown = newest - before
    return newest


async def pages_between(
    log: EventLog, which: EventFilter, start: int, end: int, *, rows_max: int = READ_AT_ONCE
) -> AsyncGenerator[Sequence[Event]]:
    """Pages of events after `start`, up to `end`."""
    while start < end:
        page = await log.read(start, which, rows_max=rows_max)
        yield [one for one in page.events if one.id <= end]
        if not page.more:
            return
        start = page.position


async def position_at(log: EventLog, moment: datetime, newest: int) -> int:
    """A position before everything that happened since `moment`."""
    low, high = max((await log.bounds()).oldest - 1, 0), newest
    while low < high:
        middle = (low + high) // 2
        page = await log.read(middle, rows_max=1)
        if page.events and page.events[0].at < moment:
            low = page.events[0].id
        else:
            high = middle
    return low
