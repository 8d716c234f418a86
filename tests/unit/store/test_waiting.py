"""Bells that wake, and pauses that grow."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random

import trio
from trio.testing import MockClock

from musterd.store.waiting import Backoff, Bell


@asynccontextmanager
async def somebody_waits() -> AsyncGenerator[Bell]:
    """Until it rings."""
    bell = Bell()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bell.wait)
        await trio.sleep(1)
        yield bell


async def test_a_ring_is_heard_by_the_one_that_waits_and_by_the_next(
    autojump_clock: MockClock,
) -> None:
    async with somebody_waits() as bell:
        bell.ring()
        bell.ring()
    assert bell.is_rung
    assert await bell.wait(0)
    bell.clear()
    assert not bell.is_rung
    before = trio.current_time()
    assert not await bell.wait(5)
    assert trio.current_time() - before == 5
    assert not await bell.wait(-1)


async def test_to_clear_a_silent_bell_leaves_those_who_wait(autojump_clock: MockClock) -> None:
    async with somebody_waits() as bell:
        bell.clear()
        bell.ring()


def test_pauses_double_up_to_the_longest_and_begin_anew() -> None:
    backoff = Backoff(0.1, 1.0)
    assert [backoff.failed() for _ in range(6)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert backoff.failed(0.5) == 0.5
    backoff.succeeded()
    assert backoff.failed() == 0.1


def test_pauses_are_cut_by_up_to_half_and_never_overflow() -> None:
    backoff = Backoff(1.0, 60.0, Random(1))
    pauses = [backoff.failed() for _ in range(5000)]
    assert 0.5 <= pauses[0] <= 1.0
    assert 30.0 <= min(pauses[10:]) <= max(pauses) <= 60.0


async def test_it_sleeps_through_its_pauses(autojump_clock: MockClock) -> None:
    backoff, began = Backoff(1.0, 60.0), trio.current_time()
    for _ in range(3):
        await backoff.sleep()
    assert trio.current_time() - began == 7.0
