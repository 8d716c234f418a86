"""Where an engine's calls run: on one thread that it owns, or inline in the Trio task.

SQLite calls block, and on a disk that stalls they block for long: a thread keeps the loop turning.
Under a mock clock threads lie (virtual time jumps while they work), so there the same calls run
inline, with the same cancel points.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Concatenate, ParamSpec, Protocol, TypeVar

import trio

from musterd.store.connections import ConnectionUse
from musterd.store.sqlite.database import Database

P = ParamSpec("P")
T = TypeVar("T")


class Call(Protocol):
    """How the parts of an engine (its events, phases, outbox) reach its database."""

    async def __call__(
        self,
        operation: Callable[Concatenate[Database, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T: ...


class Runner(Protocol):
    async def run(self, work: Callable[[], T]) -> T:
        """Runs `work` alone, in its turn. A cancel arrives before it starts or after its end."""
        ...

    @property
    def use_now(self) -> ConnectionUse:
        """Of the one connection there is."""
        ...

    def close(self) -> None:
        """Gives the thread back. Waits for what runs, which ends within the busy timeout."""
        ...


class InlineRunner:
    use_now = ConnectionUse(idle=1, most=1)

    async def run(self, work: Callable[[], T]) -> T:
        await trio.lowlevel.checkpoint()
        return work()

    def close(self) -> None:
        pass


class ThreadRunner:
    """One thread with its own queue: neither Trio's thread limit nor another engine holds it up.

    A cancel never abandons a call. The caller waits until the work has ended and takes its result,
    as with `trio.to_thread.run_sync`; the cancel comes at its next checkpoint. So a cancelled write
    is whole or was never begun, its caller learns which, and none lands after its caller has gone.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="musterd-sqlite")
        self._calls = 0  # not yet ended

    @property
    def use_now(self) -> ConnectionUse:
        busy = min(self._calls, 1)
        return ConnectionUse(1 - busy, busy, 1, max(0, self._calls - 1))

    async def run(self, work: Callable[[], T]) -> T:
        await trio.lowlevel.checkpoint_if_cancelled()
        loop = trio.lowlevel.current_trio_token()
        ended = trio.Event()
        future = self._thread.submit(work)
        self._calls += 1
        future.add_done_callback(lambda _: loop.run_sync_soon(ended.set))
        # No deadline: a call ends within the busy timeout, and what has begun cannot be taken back.
        with trio.CancelScope(shield=True):
            await ended.wait()
        self._calls -= 1
        return future.result()

    def close(self) -> None:
        self._thread.shutdown(wait=True)
