"""Python kinds inside the daemon: how a handler is imported, its context, how it ends; and the two
ways to run it there, `isolation = "task"` and `"thread"`.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import queue
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context, copy_context
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import attrs
import trio

from musterd.catalog.kinds import Python
from musterd.store.errors import no_thread
from musterd.store.job_log import Voice
from musterd.workers.context import Ending, Facts, JobContext, ending_of_error, ending_of_value
from musterd.workers.joblog import JobLog
from musterd.workers.outcome import Assignment, Note, Outcome, Recorder
from musterd.workers.runners.hearing import SPEAKER, hear_logging, heard_by
from musterd.workers.runners.results import outcome_of
from musterd.workers.shortage import put_off
from musterd.workers.tools import Tools

_NOTHING: Mapping[str, float] = {}
CRASH = Voice("musterd", "error")
_OWN_FOLDER = str(Path(__file__).parent)


class InsideLink:
    """What a handler says goes straight to the recorder of its attempt."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def log(self, text: str, level: str = "info") -> None:
        self._recorder.log.add(text.encode("utf-8", "replace"), Voice("job", level))

    def complain(self, text: str) -> None:
        """Words of ours."""
        self._recorder.log.add(text.encode("utf-8", "replace"), CRASH)

    def note(self, percent: float, note: str | None) -> None:
        self._recorder.report(Note(percent, note))

    def spent(self, amounts: Mapping[str, float]) -> None:
        self._recorder.spend(json.dumps(dict(amounts)))

    def remaining_seconds(self) -> float:
        return self._recorder.remaining_seconds()


def context_of(assignment: Assignment, link: InsideLink) -> JobContext:
    payload, attempt = assignment.payload, assignment.claim.attempt
    return JobContext(payload, attempt, lambda: _facts(assignment), link)


def _facts(assignment: Assignment) -> Facts:
    claim, kind = assignment.claim, assignment.kind
    spent: Mapping[str, float] = json.loads(claim.spent) if claim.spent else _NOTHING
    return Facts(
        kind.name, assignment.payload, claim.id, claim.token, claim.attempt, kind.budgets, spent,
        assignment.phase, claim.schedule, claim.scheduled_for, claim.traceparent,
    )  # fmt: skip


def log_crash(link: InsideLink, ending: Ending, error: BaseException) -> None:
    """Puts the traceback into the log, without our own part of it."""
    if not ending.is_crash:
        return
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_OWN_FOLDER):
        trace = trace.tb_next
    link.complain("".join(traceback.format_exception(type(error), error, trace)))


def import_function(behaviour: Python) -> Callable[..., Any]:
    """Raises what the import raises; AttributeError or TypeError if there is no such function."""
    with _IMPORTING:
        _FINDER.add(behaviour.search_path)
        found: Any = importlib.import_module(behaviour.module)
    for name in behaviour.function.split("."):
        found = getattr(found, name)
    if not callable(found):
        what = f"{behaviour.module}:{behaviour.function}"
        raise TypeError(f"{what} is no function but {type(found).__name__}")
    function: Callable[..., Any] = found
    return function


class _UsersFolders:
    """A finder for top-level modules in the users' folders."""

    def __init__(self) -> None:
        self._folders: list[str] = []

    def add(self, folders: Sequence[Path]) -> None:
        new = [str(each) for each in folders if str(each) not in self._folders]
        if new:
            self._folders += new
            importlib.invalidate_caches()
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is not None or name == "musterd" or name in sys.stdlib_module_names:
            return None
        return PathFinder.find_spec(name, self._folders, target)


_IMPORTING = threading.Lock()
_FINDER = _UsersFolders()


class TaskRunner:
    """Calls an `async def` in the worker's own task, on the daemon's own loop: no nursery, thread,
    or scope of its own. For code that is trusted never to block the loop.
    """

    def __init__(self, tools: Tools) -> None:
        self._limits = tools.limits
        self._functions: dict[tuple[str, str], Callable[[JobContext], Any]] = {}
        hear_logging()

    async def run(self, assignment: Assignment) -> Outcome:
        link = InsideLink(assignment.recorder)
        job = context_of(assignment, link)
        heard = SPEAKER.set(assignment.recorder)  # as `heard_by`, which costs as much as the rest
        try:
            ending = ending_of_value(job, await self._function(assignment)(job))
        except trio.Cancelled:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever user code raises is its outcome
            _let_cancel_out(error)
            ending = _ending(job, link, error)
        finally:
            SPEAKER.reset(heard)
        return outcome_of(ending, assignment.kind, self._limits)

    async def close(self) -> None:
        """Keeps nothing that has to be given back."""

    def _function(self, assignment: Assignment) -> Callable[[JobContext], Any]:
        behaviour = assignment.kind.behaviour
        assert isinstance(behaviour, Python)
        place = (behaviour.module, behaviour.function)
        function = self._functions.get(place)
        if function is None:
            function = import_function(behaviour)
            if not _is_async(function):
                found = f"{behaviour.module}:{behaviour.function} is a plain def"
                raise TypeError(f'{found}; isolation "task" wants an async def')
            self._functions[place] = function
        return function


def _is_async(function: Callable[[JobContext], Any]) -> bool:
    """An object may be called by a method, as a `@task` is."""
    return any(map(inspect.iscoroutinefunction, (function, type(function).__call__)))


def _let_cancel_out(error: BaseException) -> None:
    """A nursery of the handler's may have put a cancel and an error into one group."""
    if not isinstance(error, BaseExceptionGroup):
        return
    cancelled = cast("BaseExceptionGroup[BaseException]", error).subgroup(trio.Cancelled)
    if cancelled is not None:
        raise cancelled


def _ending(job: JobContext, link: InsideLink, error: BaseException) -> Ending:
    ending = ending_of_error(job, error)
    log_crash(link, ending, error)
    return ending


ABANDONED_MAX = 4  # threads of one worker that run on though their jobs are over
JOIN_SECONDS = 1.0


@attrs.define(eq=False)
class _Call:
    """One job on its way through the thread."""

    behaviour: Python
    job: JobContext
    link: InsideLink
    recorder: Recorder
    loop: trio.lowlevel.TrioToken
    context: Context | None  # None = the thread's own
    ended: trio.Event = attrs.field(factory=trio.Event)
    ending: Ending | None = None

    def do(self) -> None:
        self.ending = self.context.run(self._ending) if self.context else self._ending()
        # The loop may have ended: then nobody waits any more.
        with contextlib.suppress(trio.RunFinishedError):
            self.loop.run_sync_soon(self.ended.set)

    def _ending(self) -> Ending:
        try:
            function = import_function(self.behaviour)
            if _is_async(function):
                found = f"{self.behaviour.module}:{self.behaviour.function} is an async def"
                raise TypeError(f'{found}; isolation "thread" wants a plain def')
            with heard_by(self.recorder):
                ending = ending_of_value(self.job, function(self.job))
        except BaseException as error:  # noqa: ASYNC103,BLE001 - what user code raises is its end
            ending = ending_of_error(self.job, error)
            log_crash(self.link, ending, error)
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
    """Calls a `def` in a thread that its worker owns: one at a time, started with the first job.

    A thread can't be ended from outside. One whose job is over (time limit, lost lease, dismissal)
    is left to itself, and a fresh one serves the next job; a worker with too many of those takes no
    more.
    """

    def __init__(self, tools: Tools) -> None:
        self._limits, self._contained = tools.limits, tools.contained
        self._own: _OwnThread | None = None
        hear_logging()
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
        recorder = _ThreadRecorder(assignment.recorder, loop)
        link = InsideLink(recorder)
        # What traces looks for the span that it is in, there.
        context = None if assignment.claim.traceparent is None else copy_context()
        call = _Call(behaviour, context_of(assignment, link), link, recorder, loop, context)
        try:
            self._own = own = self._own or _OwnThread()
        except RuntimeError as error:  # a limit on processes counts threads too
            await trio.lowlevel.checkpoint()
            waiting = put_off(no_thread(error), assignment.claim, self._contained)
            assert waiting is not None, "it is short of threads"
            return waiting
        own.take(call)
        try:
            await call.ended.wait()
        except trio.Cancelled:
            self._abandon(own)
            raise
        finally:
            recorder.end()
        assert call.ending is not None
        return outcome_of(call.ending, assignment.kind, self._limits)

    async def close(self) -> None:
        own, self._own = self._own, None
        if own is not None:
            own.end()
            own.thread.join(JOIN_SECONDS)  # it is idle: this takes microseconds

    def _abandon(self, own: _OwnThread) -> None:
        own.end()
        self._abandoned.append(own)
        self._own = None


class _ThreadRecorder(Recorder):
    """Carries a thread's notes to the loop: the last of those that come faster than it turns."""

    def __init__(self, recorder: Recorder, loop: trio.lowlevel.TrioToken) -> None:
        self._recorder, self._loop = recorder, loop
        self._last: Note | None = None
        self._is_over = False

    def report(self, note: Note) -> None:
        self._last = note
        self._wake()

    def spend(self, spent: str) -> None:
        super().spend(spent)
        self._wake()

    def remaining_seconds(self) -> float:
        return self._recorder.remaining_seconds()

    @property
    def log(self) -> JobLog:
        return self._recorder.log

    def end(self) -> None:
        """The attempt is over, though its thread may run on: what it has told counts."""
        self._pass_on()
        self._is_over = True

    def _wake(self) -> None:
        with contextlib.suppress(trio.RunFinishedError):
            self._loop.run_sync_soon(self._pass_on, idempotent=True)

    def _pass_on(self) -> None:
        if self._is_over:
            return
        if self._last is not None:
            self._recorder.report(self._last)
        if self.spent is not None:
            self._recorder.spend(self.spent)


def _refused(count: int) -> Outcome:
    message = (
        f"its worker has {count} threads that run on though their jobs are over; a thread can't be"
        ' ended from outside: give the kind isolation = "process", or end its waits in time'
    )
    return Outcome("failure", None, "threads_exhausted", message, True)
