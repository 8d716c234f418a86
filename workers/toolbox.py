"""A worker's own runners: one for each way of working, made when a kind first needs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import trio

from musterd.catalog.kinds import Command, Deterministic, Python, WorkKind
from musterd.workers.bounds import Bounds
from musterd.workers.running import Runner
from musterd.workers.tools import Tools

CLOSE_SECONDS = 10.0


class Box(Protocol):
    """Where a worker finds what runs its jobs. `tools` says by which clock leases are trusted."""

    tools: Tools
    bounds: Bounds

    @property
    def is_outdated(self) -> bool:
        """Whether there are other tools by now."""
        ...

    async def renew(self) -> None:
        """Between two jobs: closes all runners, and goes on with the tools of now."""
        ...

    def runner(self, kind: WorkKind) -> Runner:
        """The runner for jobs of this kind; the same one from job to job."""
        ...

    async def close(self) -> None:
        """Closes all runners. Bounded, and not to be cancelled."""
        ...


class Toolbox:
    """The box of a daemon's worker. `latest` gives the tools of now, which a reload makes anew."""

    def __init__(self, latest: Callable[[], Tools]) -> None:
        self.tools = latest()
        self._latest = latest
        self.bounds = Bounds()
        self._runners: dict[str, Runner] = {}

    @property
    def is_outdated(self) -> bool:
        return self._latest() is not self.tools

    async def renew(self) -> None:
        await self.close()
        self._runners = {}
        self.tools = self._latest()

    def runner(self, kind: WorkKind) -> Runner:
        way = _way_of(kind)
        runner = self._runners.get(way)
        if runner is None:
            runner = self._runners[way] = _MAKERS[way](self.tools)
        return runner

    async def close(self) -> None:
        if not self._runners:
            return
        with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_SECONDS):
            for runner in self._runners.values():
                await runner.close()


def _way_of(kind: WorkKind) -> str:
    behaviour = kind.behaviour
    if isinstance(behaviour, Python):
        return behaviour.isolation
    if isinstance(behaviour, Deterministic):
        return "deterministic"
    return "command" if isinstance(behaviour, Command) else "http"


# Each is imported when it is first used: a node pays only for what its kinds need.


def _deterministic(_tools: Tools) -> Runner:
    from musterd.workers.runners.deterministic import DeterministicRunner

    return DeterministicRunner()


def _process(tools: Tools) -> Runner:
    from musterd.workers.runners.process import ProcessRunner

    return ProcessRunner(tools)


def _task(tools: Tools) -> Runner:
    from musterd.workers.runners.task import TaskRunner

    return TaskRunner(tools)


def _thread(tools: Tools) -> Runner:
    from musterd.workers.runners.thread import ThreadRunner

    return ThreadRunner(tools)


def _command(tools: Tools) -> Runner:
    from musterd.workers.runners.command import CommandRunner

    return CommandRunner(tools.limits, tools.variables)


def _http(tools: Tools) -> Runner:
    from musterd.workers.runners.http_call import HttpRunner

    return HttpRunner(tools.connections.client(), tools.limits, tools.variables)


_MAKERS: dict[str, Callable[[Tools], Runner]] = {
    "command": _command,
    "deterministic": _deterministic,
    "http": _http,
    "process": _process,
    "task": _task,
    "thread": _thread,
}
