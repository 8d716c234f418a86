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

from tests.simulation import jumping
from tests.simulation.jumping import JumpingClock

_RUNS: Any = importlib.import_module("trio._core._run")  # its rng and its queue have no other door
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


class Between:
    """What is to be done between two rounds, when no task is about to take its step. `on_stuck` is
    called once when there is round after round and the clock stands.
    """

    def __init__(self) -> None:
        self.clock = JumpingClock()
        self.on_stuck: Callable[[], None] = lambda: None
        self._work: list[Callable[[], None]] = []
        self._moment, self._rounds = -1.0, 0

    def soon(self, work: Callable[[], None]) -> None:
        self._work.append(work)

    def turn(self) -> None:
        """Here Trio would wait for sockets. When nobody has anything to do the clock jumps."""
        now = self.clock.current_time()
        self._rounds = self._rounds + 1 if now == self._moment else 0
        self._moment = now
        if self._rounds == ROUNDS_MAX:
            self.on_stuck()
        if self._work:
            work, self._work = self._work, []
            for one in work:
                one()
        runner = _RUNS.GLOBAL_RUN_CONTEXT.runner
        if not runner.runq:
            self.clock.jump(runner)


@contextmanager
def one_order(seed: int, between: Between) -> Generator[None]:
    """Within it a run of Trio is the same each time, gates work, and threads are not used."""
    rng = _RUNS._r.getstate()
    _RUNS._r.seed(seed)
    runner, sockets = _RUNS.Runner, _RUNS.TheIOManager
    with (
        _replaced(_RUNS, _ALLOW_DETERMINISTIC_SCHEDULING=True),
        _replaced(runner, reschedule=_gated(runner.reschedule)),
        _replaced(sockets, get_events=_turning(sockets.get_events, between)),
        _replaced(trio, sleep=jumping.sleep, sleep_until=jumping.sleep_until),
        _replaced(_THREADS, run_sync=_at_once),
    ):
        try:
            yield
        finally:
            _RUNS._r.setstate(rng)


@contextmanager
def _replaced(where: Any, **by: Any) -> Generator[None]:
    before = {name: getattr(where, name) for name in by}
    for name, one in by.items():
        setattr(where, name, one)
    try:
        yield
    finally:
        for name, one in before.items():
            setattr(where, name, one)


def _turning(get_events: Callable[..., Any], between: Between) -> Callable[..., Any]:
    def turn(sockets: Any, timeout: float) -> Any:
        del timeout
        between.turn()
        runner = _RUNS.GLOBAL_RUN_CONTEXT.runner
        # Nobody knows of any socket but Trio, which has one to be woken by: by signals.
        if len(sockets._registered) > 1 or runner.entry_queue.size():
            return get_events(sockets, 0)
        return ()

    return turn


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
