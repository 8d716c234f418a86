"""A clock that jumps, and pauses on it: what Trio's own do, to the round, at a part of their price.
A simulation hardly does anything else than wait.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import trio

_RUNS: Any = importlib.import_module("trio._core._run")  # its deadlines have no other door
_CANCELLED: Any = trio.Cancelled
_TRIO_SLEEP, _TRIO_SLEEP_UNTIL = trio.sleep, trio.sleep_until


class JumpingClock(trio.abc.Clock):
    """Stands while anything can run; then it is at once at the next deadline."""

    def __init__(self) -> None:
        self._now = 0.0

    def start_clock(self) -> None:
        """It stands at 0 already."""

    def current_time(self) -> float:
        return self._now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        return max(0.0, deadline - self._now)

    def jump(self, runner: Any) -> None:
        """To the next deadline of this run, if that is to come."""
        seconds = runner.deadlines.next_deadline() - self._now
        if 0 < seconds < math.inf:
            self._now += seconds


class _Pause:
    """Stands among Trio's deadlines in the place of a cancel scope. When its time has come nobody
    is cancelled, and so nothing has to be raised and caught: its task goes on.
    """

    __slots__ = ("_deadlines", "_registered_deadline", "_task")

    def __init__(self, deadline: float, task: trio.lowlevel.Task, deadlines: Any) -> None:
        self._registered_deadline, self._task, self._deadlines = deadline, task, deadlines
        deadlines.add(deadline, self)

    def give_up(self) -> None:
        self._deadlines.remove(self._registered_deadline, self)
        self._registered_deadline = math.inf

    def _cancel(self, reason: object) -> None:
        """So Trio calls it when the time has come."""
        del reason
        self.give_up()
        trio.lowlevel.reschedule(self._task)


async def sleep_until(deadline: float) -> None:
    """As `trio.sleep_until`."""
    if not deadline < math.inf:
        await _TRIO_SLEEP_UNTIL(deadline)
        return
    context = _RUNS.GLOBAL_RUN_CONTEXT
    task = context.task
    pause = _Pause(deadline, task, context.runner.deadlines)

    def abort(_: object) -> trio.lowlevel.Abort:
        pause.give_up()
        return trio.lowlevel.Abort.SUCCEEDED

    await trio.lowlevel.wait_task_rescheduled(abort)
    if task._cancel_status.effectively_cancelled:  # since its time came
        raise _CANCELLED._create(source="unknown")


async def sleep(seconds: float) -> None:
    """As `trio.sleep`."""
    if 0 < seconds < math.inf:
        await sleep_until(trio.current_time() + seconds)
    else:
        await _TRIO_SLEEP(seconds)
