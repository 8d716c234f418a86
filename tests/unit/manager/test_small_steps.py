"""Long computing in a thread: it comes back, stops when cancelled, and the loop goes on."""

from __future__ import annotations

from collections.abc import Generator
from time import perf_counter

import pytest
import trio

from musterd.manager.duties.small_steps import STRETCH_SECONDS, in_small_steps

LATE_SECONDS = 0.05  # a loop that shares the machine with other tests


def counting(steps: int, done: list[int], step_seconds: float = 0.0) -> Generator[None, None, str]:
    for number in range(steps):
        until = perf_counter() + step_seconds
        while perf_counter() < until:
            pass
        done.append(number)
        yield
    return "all"


async def test_what_it_returns_comes_back() -> None:
    done: list[int] = []
    assert await in_small_steps(counting(100, done)) == "all"
    assert done == [*range(100)]


async def test_what_it_raises_comes_out() -> None:
    def failing() -> Generator[None, None, None]:
        yield
        raise ValueError("no such job")

    with pytest.raises(ValueError, match="no such job"):
        await in_small_steps(failing())


async def test_the_loop_goes_on_meanwhile_and_gets_most_of_the_time() -> None:
    done: list[int] = []
    late: list[float] = []

    async def look() -> None:
        while True:
            before = trio.current_time()
            await trio.sleep(0.001)
            late.append(trio.current_time() - before)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look)
        began = trio.current_time()
        await in_small_steps(counting(100, done, STRETCH_SECONDS))
        took = trio.current_time() - began
        nursery.cancel_scope.cancel()
    assert took > 3 * 100 * STRETCH_SECONDS  # it rested for most of it
    assert len(late) > 50
    assert sorted(late)[len(late) // 2] < LATE_SECONDS


async def test_where_it_is_cancelled_no_further_step_is_begun_and_the_next_has_its_turn() -> None:
    done: list[int] = []
    with trio.move_on_after(0.05) as limit:
        await in_small_steps(counting(10**9, done, STRETCH_SECONDS))
    assert limit.cancelled_caught
    assert await in_small_steps(counting(3, [])) == "all"  # the first has let go of the thread
    count = len(done)
    await trio.sleep(0.05)
    assert len(done) == count > 0
