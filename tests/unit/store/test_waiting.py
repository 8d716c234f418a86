"""Bells that wake, pauses that grow, and what waits for a store."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random

import trio
from trio.testing import MockClock

from musterd.store.waiting import Backoff, Bell, WriteLoop


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


class Store:
    """Writes two at once, and notes when it was asked and what had come by then."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.asked: list[tuple[float, str]] = []
        self.is_away = False
        self.loop = WriteLoop(self._write, lambda: bool(self.waiting), 1.0, 8.0)
        self._began = trio.current_time()

    def add(self, *words: str) -> None:
        self.waiting += words
        self.loop.bell.ring()

    async def _write(self) -> bool:
        await trio.lowlevel.checkpoint()
        self.asked.append((trio.current_time() - self._began, "".join(self.waiting)))
        if not self.is_away:
            del self.waiting[:2]
        return not self.is_away


async def test_what_comes_within_the_pause_goes_along_and_the_rest_follows(
    autojump_clock: MockClock,
) -> None:
    store = Store()
    with trio.move_on_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.loop.run)
            store.add("a")
            await trio.sleep(0.5)
            store.add("b", "c")
    assert store.asked == [(1.0, "abc"), (2.0, "c")]


async def test_pauses_grow_while_the_store_is_away(autojump_clock: MockClock) -> None:
    store = Store()
    store.is_away = True
    with trio.move_on_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.loop.run)
            store.add("a")
            await trio.sleep(7.5)
            store.is_away = False
            await trio.sleep(10)
            store.is_away = True
            store.add("b")
            await trio.sleep(4)
            store.is_away = False
    # Each comes a second after its pause of 1, 2 and 4; after a success they begin anew.
    assert store.asked == [(at, "a") for at in (1, 3, 6, 11)] + [
        (at, "b") for at in (18.5, 20.5, 23.5)
    ]


async def test_the_last_of_it_is_written_unless_the_store_is_away(
    autojump_clock: MockClock,
) -> None:
    store = Store()
    store.add("a", "b", "c")
    await store.loop.finish(5.0)
    assert [words for _, words in store.asked] == ["abc", "c"]
    store.is_away = True
    store.add("d")
    await store.loop.finish(5.0)
    assert store.waiting == ["d"]
    assert len(store.asked) == 3


async def test_the_last_of_it_has_only_so_much_time(autojump_clock: MockClock) -> None:
    async def write() -> bool:
        await trio.sleep_forever()

    began = trio.current_time()
    await WriteLoop(write, lambda: True, 1.0, 8.0).finish(5.0)
    assert trio.current_time() - began == 5.0
