"""Runs handlers in the caller's own process, whatever their kind's isolation, so that debuggers,
coverage and patches reach them.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import trio

from musterd.catalog.kinds import Python, WorkKind
from musterd.config.settings import Settings
from musterd.store.input import PayloadLimits
from musterd.workers.context import JobContext, ending_of_error, ending_of_value
from musterd.workers.outcome import Assignment, Outcome, Runner
from musterd.workers.runners import inside
from musterd.workers.runners.inside import import_function
from musterd.workers.runners.results import outcome_of
from musterd.workers.toolbox import Toolbox
from musterd.workers.tools import Tools

LEASE_SECONDS = 3600.0  # nobody renews here
Handler = Callable[[JobContext], Any]


class InlineBox(Toolbox):
    """A toolbox whose Python kinds run in this process."""

    def runner(self, kind: WorkKind) -> Runner:
        behaviour = kind.behaviour
        if not isinstance(behaviour, Python):
            return super().runner(kind)
        return Inline(self.tools, "trio" if behaviour.isolation == "task" else "asyncio")


class Inline:
    """Calls a handler here and now."""

    def __init__(self, tools: Tools, loop: Literal["asyncio", "trio"]) -> None:
        self._tools, self._loop = tools, loop

    async def run(self, assignment: Assignment) -> Outcome:
        behaviour = assignment.kind.behaviour
        assert isinstance(behaviour, Python)
        return await self.run_function(lambda job: import_function(behaviour)(job), assignment)  # noqa: PLW0108 - a failing import is an outcome too

    async def run_function(self, function: Handler, assignment: Assignment) -> Outcome:
        limits = self._tools.limits
        link = inside.InsideLink(assignment.recorder)
        job = inside.context_of(assignment, link)
        try:
            value = function(job)
            if inspect.isawaitable(value):
                value = await self._await(value)
            ending = ending_of_value(job, value)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is its outcome
            ending = ending_of_error(job, error)
            inside.log_crash(link, ending, error)
        return outcome_of(ending, assignment.kind, limits)

    async def close(self) -> None:
        """Keeps nothing."""

    async def _await(self, value: Awaitable[Any]) -> Any:
        if self._loop == "trio":
            return await value

        def on_a_loop_of_its_own() -> Any:
            import asyncio  # noqa: PLC0415,TID251 - what a child process would run it on

            async def whole() -> Any:
                return await value

            return asyncio.run(whole())

        # In a thread: in this one Trio runs, and a library that looks would find the wrong loop.
        return await trio.to_thread.run_sync(on_a_loop_of_its_own)


def payload_limits(settings: Settings) -> PayloadLimits:
    return PayloadLimits(settings.limits.max_payload_bytes, settings.limits.max_payload_depth)
