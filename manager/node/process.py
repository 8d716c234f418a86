"""The process of a daemon: its clocks and waits, its garbage, its lag, its end."""

from __future__ import annotations

import gc
import logging
import math
import os
import time
from collections.abc import Callable

import trio


class StartError(Exception):
    """The daemon cannot start as it is configured; the message names the key and what helps."""


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


LOOK_SECONDS = 0.5
# Objects made and not yet gone, until the next look: those of about two batches of jobs.
YOUNG_MAX = 20_000
YOUNG_LOOKS = 20  # before a look at what outlived them


def collect_seldom() -> None:
    """Makes Python look less often for garbage that holds itself in a circle. For a process that is
    a daemon, once all is made that stays until its end.

    The objects of a job come and go by the thousand and are in no circle: looking through them took
    a seventh of a busy daemon's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, YOUNG_LOOKS, YOUNG_LOOKS)


async def measure_loop_lag(record: Callable[[float], None]) -> None:
    """Records, forever, how much later than asked for a sleep ended."""
    while True:
        wanted = next_beat(LOOK_SECONDS)
        await trio.sleep_until(wanted)
        record(trio.current_time() - wanted)


def boottime() -> float:
    """Seconds on the clock that runs on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def machine_load() -> float | None:
    """The load of this machine in the last minute, for each core; None = it does not say."""
    try:
        return os.getloadavg()[0] / (os.cpu_count() or 1)
    except OSError:
        return None


def end_process() -> None:
    """At once, as a drained daemon ends: whatever still runs in it ends too."""
    logging.shutdown()
    os._exit(0)
