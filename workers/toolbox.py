"""A worker's own runners, one for each way of working, and the scope that an attempt can be
cancelled by. The runner of deterministic kinds, which needs no tools, is here too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from types import TracebackType

import trio

from musterd.catalog.kinds import JSON, Command, Deterministic, Planned, Python, WorkKind, plan
from musterd.store.leases import Claim
from musterd.workers.outcome import Assignment, Contained, Outcome, Runner
from musterd.workers.tools import Tools

CLOSE_SECONDS = 10.0  # for ending what a worker keeps between jobs


class Bounds:
    """A worker's own. `with bounds as scope:` around an attempt is `with trio.CancelScope()`, but
    within `kept` a scope that nobody has cancelled stays open for the next attempt: to open one
    costs more than a short job does, and so does to ask it whether it was cancelled. So an attempt
    is cancelled, and limited, through the methods here.
    """

    __slots__ = ("_is_touched", "_keeps", "_scope")

    def __init__(self) -> None:
        self._keeps = False
        self._is_touched = False  # the attempt under way was cancelled, or has a limit
        self._scope: trio.CancelScope | None = None

    def cancel(self) -> None:
        """Of the attempt under way."""
        if self._scope is not None:
            self._is_touched = True
            self._scope.cancel()

    def limit(self, seconds: float) -> None:
        """Of the attempt under way: it may take so long from now on."""
        assert self._scope is not None
        self._is_touched = True
        self._scope.deadline = trio.current_time() + seconds

    @contextmanager
    def kept(self) -> Generator[None]:
        """Scopes stay open from attempt to attempt, until the end of this block at the latest."""
        self._keeps = True
        try:
            yield
        finally:
            self._keeps = False
            scope, self._scope = self._scope, None
            if scope is not None:
                scope.__exit__(None, None, None)

    def __enter__(self) -> trio.CancelScope:
        scope = self._scope
        if scope is None:
            scope = self._scope = trio.CancelScope()
            scope.__enter__()
        return scope

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        scope = self._scope
        assert scope is not None
        if self._keeps and error is None:
            if not self._is_touched:
                return None
            if not scope.cancel_called:
                scope.deadline, self._is_touched = math.inf, False
                return None
        self._scope, self._is_touched = None, False
        return scope.__exit__(kind, error, trace)


class Toolbox:
    """Where a worker finds what runs its jobs. `latest` gives the tools of now, which a reload
    makes anew; `tools` says by which clock leases are trusted. What runs beside a job runs in the
    worker's nursery, and ends with it.
    """

    def __init__(self, latest: Callable[[], Tools], nursery: trio.Nursery) -> None:
        self.tools = latest()
        self._latest, self._nursery = latest, nursery
        self.bounds = Bounds()
        self._runners: dict[str, Runner] = {}
        self._last: tuple[WorkKind, Runner] | None = None  # most jobs are of the kind of the last

    @property
    def is_outdated(self) -> bool:
        return self._latest() is not self.tools

    def renew(self) -> None:
        """Between two jobs: goes on with the tools of now; the old runners are closed beside it."""
        if self._runners:
            self._nursery.start_soon(_close_all, self._runners, self.tools)
            self._runners, self._last = {}, None
        self.tools = self._latest()

    def runner(self, kind: WorkKind) -> Runner:
        """The runner for jobs of this kind; the same one from job to job."""
        if self._last is not None and self._last[0] is kind:
            return self._last[1]
        way = _way_of(kind)
        runner = self._runners.get(way)
        if runner is None:
            runner = self._runners[way] = _made(way, self.tools)
        self._last = kind, runner
        return runner

    async def close(self) -> None:
        """Closes all runners."""
        if self._runners:
            await _close_all(self._runners, self.tools)


async def _close_all(runners: Mapping[str, Runner], tools: Tools) -> None:
    """Bounded, and not to be cancelled."""
    with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_SECONDS):
        for way, runner in runners.items():
            try:
                await runner.close()
            except Exception as error:  # noqa: BLE001 - the others are closed all the same
                tools.contained(Contained("runner", way, None, error))


def _way_of(kind: WorkKind) -> str:
    behaviour = kind.behaviour
    if isinstance(behaviour, Python):
        return behaviour.isolation
    if isinstance(behaviour, Deterministic):
        return "deterministic"
    return "command" if isinstance(behaviour, Command) else "http"


def _made(way: str, tools: Tools) -> Runner:
    """Each is imported when it is first used: a node pays only for what its kinds need."""
    if way == "command":
        from musterd.workers.runners.command import CommandRunner

        return CommandRunner(tools.limits, tools.variables, tools.contained)
    if way == "http":
        from musterd.workers.runners.http_call import HttpRunner

        return HttpRunner(
            tools.connections.client(), tools.limits, tools.variables, tools.contained
        )
    if way == "process":
        from musterd.workers.runners.process import ProcessRunner

        return ProcessRunner(tools)
    if way == "task":
        from musterd.workers.runners.inside import TaskRunner

        return TaskRunner(tools)
    if way == "thread":
        from musterd.workers.runners.inside import ThreadRunner

        return ThreadRunner(tools)
    return DeterministicRunner()


def at_once(kind: WorkKind, payload: JSON, claim: Claim) -> Outcome | None:
    """The outcome of an attempt that takes no time: it needs no scope, no limit, no checkpoint.
    None = it does take time.
    """
    planned = plan(kind, payload, claim.attempt)
    return None if planned.duration_seconds else _conclude(planned, kind, claim)


class DeterministicRunner:
    """Sleeps, and ends as planned."""

    async def run(self, assignment: Assignment) -> Outcome:
        kind, claim = assignment.kind, assignment.claim
        planned = plan(kind, assignment.payload, claim.attempt)
        await trio.sleep(planned.duration_seconds)
        return _conclude(planned, kind, claim)

    async def close(self) -> None:
        """Keeps nothing."""


def _conclude(planned: Planned, kind: WorkKind, claim: Claim) -> Outcome:
    if planned.outcome == "success":
        return Outcome("success", f'{{"duration_ms": {round(planned.duration_seconds * 1000)}}}')
    if planned.outcome == "cancel":
        return Outcome("cancel", message=f"kind {kind.name!r} ends its jobs as canceled")
    message = f"kind {kind.name!r} fails attempt {claim.attempt}, as its catalog says"
    return Outcome("failure", None, "planned_failure", message, kind.retryable)
