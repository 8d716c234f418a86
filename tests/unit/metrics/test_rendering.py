"""Many who ask at once cost one rendering at a time, and nobody gets what is older than that."""

import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from musterd.manager.metrics.metrics import Rendering


class Counted:
    """Renders the number of the call, and holds it up until it is let go."""

    def __init__(self) -> None:
        self.calls = 0
        self.at_once: list[int] = []
        self.began, self.go = threading.Event(), threading.Event()
        self.fails = False
        self._running = 0

    def __call__(self) -> bytes:
        self.calls += 1
        self._running += 1
        self.at_once.append(self._running)
        number = self.calls
        self.began.set()
        self.go.wait(10)
        self._running -= 1
        if self.fails:
            raise RuntimeError(number)
        return str(number).encode()


async def ask(rendering: Rendering, found: list[bytes]) -> None:
    found.append(await rendering.text())


@asynccontextmanager
async def one_under_way() -> AsyncGenerator[tuple[Counted, Rendering, list[bytes], trio.Nursery]]:
    """Somebody has asked, and waits for the first rendering."""
    render, found = Counted(), list[bytes]()
    rendering = Rendering(render)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, rendering, found)
        await trio.to_thread.run_sync(render.began.wait, 10)
        yield render, rendering, found, nursery


async def test_twenty_who_ask_while_one_is_made_share_the_next() -> None:
    async with one_under_way() as (render, rendering, found, nursery):
        for _ in range(20):
            nursery.start_soon(ask, rendering, found)
        await wait_all_tasks_blocked()
        render.go.set()
    assert sorted(found) == [b"1", *[b"2"] * 20]
    assert render.at_once == [1, 1]


async def test_one_after_the_other_gets_a_fresh_one_each() -> None:
    render = Counted()
    render.go.set()
    rendering = Rendering(render)
    assert [await rendering.text(), await rendering.text()] == [b"1", b"2"]


async def test_what_failed_for_one_is_tried_again_by_the_next() -> None:
    render = Counted()
    render.go.set()
    render.fails = True
    rendering = Rendering(render)
    with pytest.raises(RuntimeError):
        await rendering.text()
    render.fails = False
    assert await rendering.text() == b"2"


async def test_the_loop_turns_meanwhile_and_who_leaves_while_waiting_is_no_harm() -> None:
    async with one_under_way() as (render, rendering, found, _):
        with trio.move_on_after(0.01) as scope:
            await rendering.text()
        assert scope.cancelled_caught
        render.go.set()
    assert found == [b"1"]
    assert await rendering.text() == b"2"
