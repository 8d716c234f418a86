"""Long computing beside the loop, in a thread that holds the interpreter only now and then."""

from __future__ import annotations

from collections.abc import Generator
from threading import Event
from time import perf_counter
from typing import Protocol, TypeVar

import trio

from musterd.store.threads import in_thread

T = TypeVar("T")

STRETCH_SECONDS = 0.001  # for so long the loop may have to wait for the interpreter
RESTS = 4.0  # times as long as it worked, it leaves the interpreter to others
_turn = trio.CapacityLimiter(1)  # the tenants of a process compute one after the other


class InSmallSteps(Protocol):
    """Takes a generator to its end, and returns what it returns."""

    async def __call__(self, steps: Generator[None, None, T], /) -> T: ...


async def in_small_steps(steps: Generator[None, None, T], /) -> T:
    """Each step has to be short. Where it is cancelled, no further step is begun."""
    is_cancelled = Event()
    try:
        return await in_thread(
            lambda: _work_through(steps, is_cancelled), limiter=_turn, abandon_on_cancel=True
        )
    finally:
        is_cancelled.set()


def _work_through(steps: Generator[None, None, T], is_cancelled: Event) -> T:
    worked_seconds = 0.0
    while not is_cancelled.wait(RESTS * worked_seconds):
        began = perf_counter()
        while (worked_seconds := perf_counter() - began) < STRETCH_SECONDS:
            try:
                next(steps)
            except StopIteration as end:
                found: T = end.value
                return found
    raise trio.TooSlowError  # nobody hears it
