"""Python kinds with `isolation = "task"`: an `async def` on the daemon's own loop, for code that is
trusted never to block it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

import trio

from musterd.catalog.kinds import Python
from musterd.workers.context import Ending, JobContext, ending_of_error, ending_of_value
from musterd.workers.outcome import Assignment, Outcome
from musterd.workers.runners import inside
from musterd.workers.runners.inside import import_function
from musterd.workers.toolbox import Tools


class TaskRunner:
    """Calls the handler in the worker's own task: no nursery, no thread, no scope of its own."""

    def __init__(self, tools: Tools) -> None:
        self._limits = tools.limits
        self._functions: dict[tuple[str, str], Callable[[JobContext], Any]] = {}

    async def run(self, assignment: Assignment) -> Outcome:
        link = inside.InsideLink(
            assignment.remaining_seconds, assignment.report, self._limits.log_bytes_max
        )
        job = inside.context_of(assignment, link)
        try:
            ending = ending_of_value(job, await self._function(assignment)(job))
        except trio.Cancelled:
            inside.leave_traces(assignment, link)
            raise
        except BaseException as error:  # noqa: BLE001 - whatever user code raises is its outcome
            _let_cancel_out(error, assignment, link)
            ending = _ending(job, link, error)
        return inside.conclude(ending, assignment, link, self._limits)

    async def close(self) -> None:
        """Keeps nothing that has to be given back."""

    def _function(self, assignment: Assignment) -> Callable[[JobContext], Any]:
        behaviour = assignment.kind.behaviour
        assert isinstance(behaviour, Python)
        place = (behaviour.module, behaviour.function)
        function = self._functions.get(place)
        if function is None:
            function = import_function(behaviour)
            if not inspect.iscoroutinefunction(function):
                found = f"{behaviour.module}:{behaviour.function} is a plain def"
                raise TypeError(f'{found}; isolation "task" wants an async def')
            self._functions[place] = function
        return function


def _let_cancel_out(error: BaseException, assignment: Assignment, link: inside.InsideLink) -> None:
    """A nursery of the handler's may have put a cancel and an error into one group."""
    if not isinstance(error, BaseExceptionGroup):
        return
    cancelled = cast("BaseExceptionGroup[BaseException]", error).subgroup(trio.Cancelled)
    if cancelled is not None:
        inside.leave_traces(assignment, link)
        raise cancelled


def _ending(job: JobContext, link: inside.InsideLink, error: BaseException) -> Ending:
    ending = ending_of_error(job, error)
    inside.log_crash(link, ending, error)
    return ending
