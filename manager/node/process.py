"""A daemon's process: clocks and waits, garbage collection, loop lag, and its end."""

from __future__ import annotations

import ctypes
import gc
import logging
import math
import os
import sys
import time
from collections.abc import Callable

import trio


class StartError(Exception):
    """The daemon cannot start with this configuration; the message names the key and what helps."""


async def cancel_when(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


async def came_in_time(event: trio.Event, seconds: float, *, unless: trio.Event) -> bool:
    """Waits for an event for this long at most, and no longer than until `unless` comes."""
    with trio.move_on_after(seconds):
        async with trio.open_nursery() as waiting:
            waiting.start_soon(cancel_when, unless, waiting.cancel_scope)
            await event.wait()
            waiting.cancel_scope.cancel()
    return event.is_set()


def next_beat(interval_seconds: float) -> float:
    """The next whole multiple of the interval on the local clock."""
    now = trio.current_time()
    beat = (math.floor(now / interval_seconds) + 1) * interval_seconds
    return beat if beat > now else beat + interval_seconds  # where digits were lost


async def sleep_to_beat(interval_seconds: float, seconds_max: float) -> None:
    """No longer than `seconds_max`."""
    await trio.sleep_until(min(next_beat(interval_seconds), trio.current_time() + seconds_max))


LOOK_SECONDS = 0.5
# Objects made and not yet gone, until the next look: those of about two batches of jobs.
YOUNG_MAX = 20_000
YOUNG_LOOKS = 20  # before a look at what outlived them


def collect_seldom() -> None:
    """Makes Python collect garbage cycles rarely. Call it once everything exists that stays until
    the end: the objects of a job form no cycles, and examining them took a seventh of a busy
    daemon's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, YOUNG_LOOKS, YOUNG_LOOKS)


async def measure_loop_lag(record: Callable[[float], None]) -> None:
    """Records, forever, how late a sleep ended."""
    while True:
        wanted = next_beat(LOOK_SECONDS)
        await trio.sleep_until(wanted)
        record(trio.current_time() - wanted)


def boottime() -> float:
    """Seconds, including the time that the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def machine_load() -> float | None:
    """The machine's load over the last minute, per core; None = unknown."""
    try:
        return os.getloadavg()[0] / (os.cpu_count() or 1)
    except OSError:
        return None


PR_SET_DUMPABLE = 4
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4


def keep_memory_private() -> None:
    """From now on only root may look into this process: handlers run as the same user, and its
    memory and environment hold secrets. It leaves no core either. (Linux only.)
    """
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def keep_capabilities() -> None:
    """What this process may do beyond its user, no child of it inherits. (Linux only.)"""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)


def end_process(status: int) -> None:
    """At once; anything that still runs ends too."""
    logging.shutdown()
    os._exit(status)
