"""Looks that come again and again, at moments that they share: an idle process wakes once for all
of those that fall on one.
"""

from __future__ import annotations

import math

import trio


def next_beat(interval_seconds: float) -> float:
    """The next moment on the local clock that is a whole multiple of the interval."""
    now = trio.current_time()
    beat = (math.floor(now / interval_seconds) + 1) * interval_seconds
    return beat if beat > now else beat + interval_seconds  # where digits were lost


async def sleep_to_beat(interval_seconds: float, seconds_max: float) -> None:
    """Until then, but no longer than `seconds_max`."""
    await trio.sleep_until(min(next_beat(interval_seconds), trio.current_time() + seconds_max))
