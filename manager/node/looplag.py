"""Measures how late the event loop is."""

from __future__ import annotations

from collections.abc import Callable

import trio

from musterd.manager.node.beat import next_beat

LOOK_SECONDS = 0.5


async def measure_loop_lag(tell: Callable[[float], None]) -> None:
    """Tells, for ever, how much later than asked for a sleep ended."""
    while True:
        wanted = next_beat(LOOK_SECONDS)
        await trio.sleep_until(wanted)
        tell(trio.current_time() - wanted)
