"""Python kinds with `isolation = "thread"`: a `def` in a thread that its worker owns.

A thread can't be ended from outside. One whose job is over (time limit, lost lease, dismissal) is
left to itself, and a fresh one serves the next job; a worker with too many of those takes no more.
"""

from __future__ import annotations

import contextlib
import inspect
import queue
import threading

import attrs
import trio

from musterd.catalog.kinds import Python
from musterd.workers.context import Ending, JobContext, ending_of_error, ending_of_value
from musterd.workers.outcome import Assignment, Note, Outcome
from musterd.workers.runners import inside
from musterd.workers.runners.inside import import_function
from musterd.workers.toolbox import Tools

ABANDONED_MAX = 4  # threads of one worker that run on though their jobs are over
JOIN_SECONDS = 1.0


@attrs.define(eq=False)
class _Call:
    """One job on its way through the thread."""

    behaviour: Python
    job: JobContext
    link: inside.InsideLink
    loop: trio.lowlevel.TrioToken
    ended: trio.Event = attrs.field(factory=trio.Event)
    ending: Ending | None = None

    def do(self) -> None:
        self.ending = self._ending()
        # The loop may have ended: then nobody waits any more.
        with contextlib.suppress(trio.RunFinishedError):
            self.loop.run_sync_soon(self.ended.set)

    def _ending(self) -> Ending:
        try:
            function = import_function(self.behaviour)
            if inspect.iscoroutinefunction(function):
                found = f"{self.behaviour.module}:{self.behaviour.function} is an async def"
                raise TypeError(f'{found}; isolation "thread" wants a plain def')
            ending = ending_of_value(self.job, function(self.job))
        except BaseException as error:  # noqa: ASYNC103,BLE001 - what user code raises is its end
            ending = ending_of_error(self.job, error)
            inside.log_crash(self.link, ending, error)
        return ending


class _OwnThread:
    """Runs jobs, one at a time, until it is ended."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        # A daemon thread: one that hangs must not keep the process from its end.
        self.thread = threading.Thread(target=self._run, name="musterd-handler", daemon=True)
        self.thread.start()

    def take(self, call: _Call) -> None:
        self._calls.put(call)

    def end(self) -> None:
        """It ends once it has done what it is at."""
        self._calls.put(None)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            call.do()
            del call  # not kept until the next comes


class ThreadRunner:
    """See the module: one thread at a time, started with the first job."""

    def __init__(self, tools: Tools) -> None:
        self._limits = tools.limits
        self._own: _OwnThread | None = None
        self._abandoned: list[_OwnThread] = []

    @property
    def abandoned_count(self) -> int:
        """How many threads still run whose jobs are over."""
        self._abandoned = [each for each in self._abandoned if each.thread.is_alive()]
        return len(self._abandoned)

    async def run(self, assignment: Assignment) -> Outcome:
        if self._abandoned and self.abandoned_count >= ABANDONED_MAX:
            await trio.lowlevel.checkpoint()
            return _refused(self.abandoned_count)
        behaviour = assignment.kind.behaviour
        assert isinstance(behaviour, Python)
        loop = trio.lowlevel.current_trio_token()
        notes = _Notes(assignment, loop)
        link = inside.InsideLink(
            assignment.remaining_seconds, notes.report, self._limits.log_bytes_max
        )
        call = _Call(behaviour, inside.context_of(assignment, link), link, loop)
        self._own = own = self._own or _OwnThread()
        own.take(call)
        try:
            await call.ended.wait()
        except trio.Cancelled:
            self._abandon(own)
            notes.is_over = True
            inside.leave_traces(assignment, link)
            raise
        assert call.ending is not None
        return inside.conclude(call.ending, assignment, link, self._limits)

    async def close(self) -> None:
        own, self._own = self._own, None
        if own is not None:
            own.end()
            own.thread.join(JOIN_SECONDS)  # it is idle: this takes microseconds

    def _abandon(self, own: _OwnThread) -> None:
        own.end()
        self._abandoned.append(own)
        self._own = None


class _Notes:
    """Carries a thread's notes to the loop: the last of those that come faster than it turns."""

    def __init__(self, assignment: Assignment, loop: trio.lowlevel.TrioToken) -> None:
        self._report, self._loop = assignment.report, loop
        self._last: Note | None = None
        self.is_over = False

    def report(self, note: Note) -> None:
        self._last = note
        with contextlib.suppress(trio.RunFinishedError):
            self._loop.run_sync_soon(self._pass_on, idempotent=True)

    def _pass_on(self) -> None:
        if self._last is not None and not self.is_over:
            self._report(self._last)


def _refused(count: int) -> Outcome:
    message = (
        f"its worker has {count} threads that run on though their jobs are over; a thread can't be"
        ' ended from outside: give the kind isolation = "process", or end its waits in time'
    )
    return Outcome("failure", None, "threads_exhausted", message, True)
