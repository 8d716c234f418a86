"""Waits that end when something else happens, and waits for shared moments: an idle process wakes
once for all that falls on one.
"""

from __future__ import annotations

import math

import trio


async def cancel_when(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


async def came_in_time(event: trio.Event, seconds: float, *, unless: trio.Event) -> bool:
    """Waits for an event so long at most, and no longer than `unless` takes to come."""
    with trio.move_on_after(seconds):
        async with trio.open_nursery() as waiting:
            waiting.start_soon(cancel_when, unless, waiting.cancel_scope)
            await event.wait()
            waiting.cancel_scope.cancel()
    return event.is_set()


def next_beat(interval_seconds: float) -> float:
    """The next moment on the local clock that is a whole multiple of the interval."""
    now = trio.current_time()
    beat = (math.floor(now / interval_seconds) + 1) * interval_seconds
    return beat if beat > now else beat + interval_seconds  # where digits were lost


async def sleep_to_beat(interval_seconds: float, seconds_max: float) -> None:
    """Until then, but no longer than `seconds_max`."""
    await trio.sleep_until(min(next_beat(interval_seconds), trio.current_time() + seconds_max))
