"""Where the calls of an engine run: in the Trio task, or in a thread of their own."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TypeVar

import trio

from musterd.store.connections import ConnectionUse
from musterd.store.errors import StoreUnavailable, no_thread
from musterd.store.retention import apart

T = TypeVar("T")


class InlineRunner:
    """Runs calls in the Trio task: in memory, and under a mock clock, where threads lie (virtual
    time jumps while they work). It has the cancel points of the other.
    """

    use_now = ConnectionUse(idle=1, most=1)

    def __init__(self) -> None:
        self._alone = Lock()  # what runs on another loop may ask too

    async def run(self, work: Callable[[], T]) -> T:
        await trio.lowlevel.checkpoint()
        with self._alone:
            return work()

    aside = run

    def close(self) -> None:
        pass


class ThreadRunner:
    """One thread with its own queue: neither Trio's thread limit nor another engine holds it up,
    and a disk that stalls does not hold up the loop.

    A cancel never abandons a call. The caller waits until the work has ended and takes its result,
    as with `trio.to_thread.run_sync`; the cancel comes at its next checkpoint. So a cancelled write
    is whole or was never begun, its caller learns which, and none lands after its caller has gone.
    """

    def __init__(self, where: str) -> None:
        """Raises `StoreUnavailable` where no thread can be started now."""
        self._works: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = Thread(target=self._serve, name="musterd-sqlite", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            message = f"opening: {where}: {no_thread(error).strerror}"
            raise StoreUnavailable(message, "no_thread") from None
        self._calls = 0  # not yet ended

    @property
    def use_now(self) -> ConnectionUse:
        busy = min(self._calls, 1)
        return ConnectionUse(1 - busy, busy, 1, max(0, self._calls - 1))

    async def run(self, work: Callable[[], T]) -> T:
        """Runs `work` alone, in its turn. A cancel arrives before it starts or after its end."""
        await trio.lowlevel.checkpoint_if_cancelled()
        loop, task = trio.lowlevel.current_trio_token(), trio.lowlevel.current_task()
        done: list[T] = []
        failed: list[BaseException] = []

        def answer() -> None:
            try:
                done.append(work())
            except BaseException as error:  # noqa: ASYNC103, BLE001 - raised where it is waited for
                failed.append(error)
            loop.run_sync_soon(trio.lowlevel.reschedule, task)

        self._calls += 1
        self._works.put(answer)
        # No deadline: a call ends within the busy timeout, and what has begun cannot be taken back.
        await trio.lowlevel.wait_task_rescheduled(_not_abandoned)
        self._calls -= 1
        if failed:
            raise failed[0]
        return done[0]

    def _serve(self) -> None:
        while (answer := self._works.get()) is not None:
            answer()

    async def aside(self, work: Callable[[], T]) -> T:
        """What does not ask the database, in a thread of its own; a cancel abandons it."""
        return await apart(work)

    def close(self) -> None:
        """Gives the thread back. Waits for what runs, which ends within the busy timeout."""
        self._works.put(None)
        self._thread.join()


def _not_abandoned(_raise_cancel: object) -> trio.lowlevel.Abort:
    return trio.lowlevel.Abort.FAILED
