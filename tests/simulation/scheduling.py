"""One seed decides the order of all tasks; and a gate before the tasks of a process that can be
shut, as the system does it to a process that is stopped or killed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from typing import Any

import trio

_RUNS: Any = importlib.import_module("trio._core._run")  # its dice and its queue have no other door
_THREADS: Any = trio.to_thread


ROUNDS_MAX = 20_000  # at one moment


class Gate:
    """Before all tasks of one process. While it is shut none of them takes a step: not one that
    could run now, not one whose wait ends meanwhile, not one that is cancelled.
    """

    def __init__(self) -> None:
        self.is_shut = False
        self._waiting: list[trio.lowlevel.Task] = []

    def shut(self) -> None:
        """Between two rounds of the scheduler only: see `Between`."""
        if self.is_shut:
            return
        self.is_shut = True
        queue = _RUNS.GLOBAL_RUN_CONTEXT.runner.runq
        mine = [task for task in queue if task.context.get(GATE) is self]
        self._waiting += mine
        others = [task for task in queue if task.context.get(GATE) is not self]
        queue.clear()
        queue.extend(others)

    def open(self) -> None:
        """All that has come up meanwhile is done now."""
        self.is_shut = False
        waiting, self._waiting = self._waiting, []
        _RUNS.GLOBAL_RUN_CONTEXT.runner.runq.extend(waiting)

    def hold(self, task: trio.lowlevel.Task) -> None:
        self._waiting.append(task)


GATE: ContextVar[Gate | None] = ContextVar("GATE", default=None)  # of the process of this task


class Between(trio.abc.Instrument):
    """What is to be done between two rounds, when no task is about to take its step. `on_stuck` is
    called once when there is round after round and the clock stands.
    """

    def __init__(self) -> None:
        self.on_stuck: Callable[[], None] = lambda: None
        self._work: list[Callable[[], None]] = []
        self._moment, self._rounds = -1.0, 0

    def soon(self, work: Callable[[], None]) -> None:
        self._work.append(work)

    def before_io_wait(self, timeout: float) -> None:
        del timeout
        now = trio.current_time()
        self._rounds = self._rounds + 1 if now == self._moment else 0
        self._moment = now
        if self._rounds == ROUNDS_MAX:
            self.on_stuck()
        work, self._work = self._work, []
        for one in work:
            one()


@contextmanager
def one_order(seed: int) -> Generator[None]:
    """Within it a run of Trio is the same each time, gates work, and threads are not used."""
    run, runner, thread = _RUNS, _RUNS.Runner, _THREADS
    before = run._ALLOW_DETERMINISTIC_SCHEDULING, run._r.getstate()
    reschedule, run_sync = runner.reschedule, thread.run_sync
    run._ALLOW_DETERMINISTIC_SCHEDULING = True
    run._r.seed(seed)
    runner.reschedule = _gated(reschedule)
    thread.run_sync = _at_once
    try:
        yield
    finally:
        run._ALLOW_DETERMINISTIC_SCHEDULING = before[0]
        run._r.setstate(before[1])
        runner.reschedule = reschedule
        thread.run_sync = run_sync


def _gated(reschedule: Callable[..., None]) -> Callable[..., None]:
    def gated(runner: Any, task: trio.lowlevel.Task, *next_send: Any) -> None:
        reschedule(runner, task, *next_send)
        gate = task.context.get(GATE)
        if gate is not None and gate.is_shut:
            runner.runq.pop()
            gate.hold(task)

    return gated


async def _at_once(work: Callable[..., Any], *args: Any, **_: Any) -> Any:
    """In place of a thread: on a clock that jumps, no time would pass for one."""
    await trio.lowlevel.checkpoint()
    return work(*args)


def outside_of_all(work: Callable[..., object], *args: Any) -> None:
    """Calls it as if no process did: a task that it starts is nobody's, and nothing stops it."""
    Context().run(work, *args)
