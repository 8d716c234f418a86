"""Work in a thread, also on a machine that lets nobody start one: a limit on processes, such as
systemd's `TasksMax=`, counts threads too, and a handler that forks without end uses it up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import trio

T = TypeVar("T")
LOOK_SECONDS = 0.1


async def in_thread(
    work: Callable[[], T],
    *,
    limiter: trio.CapacityLimiter | None = None,
    abandon_on_cancel: bool = False,
) -> T:
    """As `trio.to_thread.run_sync`. Waits while no thread can be started."""
    has_begun = False

    def begin() -> T:
        nonlocal has_begun
        has_begun = True
        return work()

    while True:
        try:
            return await trio.to_thread.run_sync(
                begin, limiter=limiter, abandon_on_cancel=abandon_on_cancel
            )
        except RuntimeError:
            if has_begun:
                raise
        await trio.sleep(LOOK_SECONDS)
