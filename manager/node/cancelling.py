"""Ending a wait when something else happens."""

from __future__ import annotations

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
