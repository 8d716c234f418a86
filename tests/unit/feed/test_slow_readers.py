"""What is kept for readers that do not take it: so much for all; who has waited longest goes."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import ExitStack

import pytest
import trio

from musterd.manager.events.feed import too_slow
from musterd.manager.events.source import Reader, Wire
from musterd.store.events import ALL_EVENTS

KEPT = 200_000  # more than a pipe takes


@pytest.fixture
def pipes() -> Generator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def silent_reader(pipes: ExitStack, data: bytes) -> Reader:
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    pipes.callback(os.close, reads)
    pipes.callback(os.close, writes)
    wire = Wire(lambda: writes, chunked=False)
    wire.put(data)
    assert not wire.is_clear
    return Reader(ALL_EVENTS, 0, wire)


async def test_those_that_took_nothing_for_longest_are_cut_off_first(
    autojump_clock: trio.testing.MockClock, pipes: ExitStack
) -> None:
    del autojump_clock
    readers: list[Reader] = []
    for number in range(4):
        readers.append(silent_reader(pipes, bytes(KEPT + number)))
        await trio.sleep(2)
    assert too_slow(readers, 5 * KEPT) == []
    assert too_slow(reversed(readers), 3 * KEPT) == readers[:2]
    assert too_slow(readers, 0) == readers


async def test_what_many_have_before_them_counts_once(
    autojump_clock: trio.testing.MockClock, pipes: ExitStack
) -> None:
    del autojump_clock
    shared = bytes(KEPT)
    readers = [silent_reader(pipes, shared) for _ in range(4)]
    await trio.sleep(2)
    assert too_slow(readers, KEPT) == []
    assert too_slow(readers, KEPT - 1) == readers


async def test_one_that_has_just_taken_something_stays(
    autojump_clock: trio.testing.MockClock, pipes: ExitStack
) -> None:
    del autojump_clock
    reader = silent_reader(pipes, bytes(KEPT))
    assert too_slow([reader], 0) == []
    await trio.sleep(2)
    assert too_slow([reader], 0) == [reader]
