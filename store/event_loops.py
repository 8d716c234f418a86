"""Which event loop runs here, and how a coroutine on it waits for a thread. Neither asyncio nor
Trio is imported: whoever runs one has done so.
"""

from __future__ import annotations

import sys
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Literal, Protocol, TypeVar

T = TypeVar("T")


class Loop(Protocol):
    async def result(self, future: Future[T]) -> T:
        """What a thread has come to. If cancelled, the thread does not begin, or goes on alone."""
        ...

    async def finish(self, future: Future[None]) -> None:
        """As `result`, for what tidies up: a cancel does not take its time away."""
        ...

    async def rest(self, future: Future[None] | None, seconds: float) -> None:
        """Until it is done, `seconds` at most."""
        ...


def loop_here() -> Literal["asyncio", "trio"] | None:
    """The one that runs in this thread."""
    trio: Any = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_task():
        return "trio"
    asyncio: Any = sys.modules.get("asyncio")
    if asyncio is not None:
        with suppress(RuntimeError):  # none
            asyncio.get_running_loop()
            return "asyncio"
    return None


def this_loop() -> Loop:
    """Raises `RuntimeError` outside of a coroutine."""
    match loop_here():
        case "trio":
            return _OnTrio(sys.modules["trio"])
        case "asyncio":
            return _OnAsyncio(sys.modules["asyncio"])
        case None:
            raise RuntimeError("no event loop runs here: found neither asyncio nor Trio")


class _OnAsyncio:
    def __init__(self, asyncio: Any) -> None:
        self._asyncio = asyncio

    async def result(self, future: Future[T]) -> T:
        result: T = await self._asyncio.wrap_future(future)
        return result

    async def finish(self, future: Future[None]) -> None:
        await self._asyncio.shield(self._asyncio.wrap_future(future))

    async def rest(self, future: Future[None] | None, seconds: float) -> None:
        if future is None:
            await self._asyncio.sleep(seconds)
            return
        seconds_max = None if seconds == float("inf") else seconds
        with suppress(self._asyncio.TimeoutError):
            await self._asyncio.wait_for(self._asyncio.wrap_future(future), seconds_max)


class _OnTrio:
    def __init__(self, trio: Any) -> None:
        self._trio = trio

    async def result(self, future: Future[T]) -> T:
        try:
            await self._done(future)
        except BaseException:
            future.cancel()
            raise
        return future.result()

    async def finish(self, future: Future[None]) -> None:
        with self._trio.CancelScope(shield=True):  # ends within the time limits of the store
            await self._done(future)
        future.result()

    async def rest(self, future: Future[None] | None, seconds: float) -> None:
        with self._trio.move_on_after(seconds):
            if future is None:
                await self._trio.sleep_forever()
            else:
                await self._done(future)

    async def _done(self, future: Future[Any]) -> None:
        done, loop = self._trio.Event(), self._trio.lowlevel.current_trio_token()

        def wake(_future: Future[Any]) -> None:
            with suppress(self._trio.RunFinishedError):
                loop.run_sync_soon(done.set)

        future.add_done_callback(wake)
        await done.wait()
