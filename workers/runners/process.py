"""Python kinds with `isolation = "process"`: a child that its worker keeps from job to job."""

from __future__ import annotations

import signal
from pathlib import Path

import trio

from musterd.catalog.kinds import Python, WorkKind
from musterd.workers.joblog import JobLog
from musterd.workers.outcome import Assignment, Outcome
from musterd.workers.runners.executor import ChildDied, Ended, Executor
from musterd.workers.runners.results import outcome_of
from musterd.workers.toolbox import Tools

# An idle child has nothing to finish but what its handlers' modules do at exit.
IDLE_GRACE_SECONDS = 1.0
STOP_SECONDS_MAX = 10.0  # beyond the grace; the process group has bounds of its own below this


class ProcessRunner:
    """One child at a time, started with the first job. It is replaced after `max_jobs_per_child`
    jobs, when it holds too much memory, when a kind needs other folders to import from, and when
    its job did not end by itself.
    """

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._child: Executor | None = None
        self._search_path: tuple[Path, ...] = ()

    async def run(self, assignment: Assignment) -> Outcome:
        log = JobLog(self._tools.limits.log_bytes_max)
        try:
            child = await self._ready_child(assignment.kind, log)
            ended = await child.do(assignment, log)
        except (ChildDied, OSError) as error:
            return await self._died(error, assignment, log)
        except BaseException:  # cancelled, as a rule: the job is stopped before that gets out
            grace_seconds = assignment.kind.grace_seconds
            bound = trio.current_time() + grace_seconds + STOP_SECONDS_MAX
            with trio.CancelScope(shield=True, deadline=bound):
                await self._stop(grace_seconds, log)
            assignment.traces.log = log.text()
            raise
        await self._recycle(child, ended)
        outcome = outcome_of(ended.ending, assignment.kind, self._tools.limits)
        text, spent = log.text(), assignment.traces.spent
        if text is None and spent is None:
            return outcome
        return outcome._replace(log=text, spent=spent)

    async def close(self) -> None:
        await self._stop(IDLE_GRACE_SECONDS, None)

    async def _ready_child(self, kind: WorkKind, log: JobLog) -> Executor:
        behaviour = kind.behaviour
        assert isinstance(behaviour, Python)
        if self._child is not None and self._search_path != behaviour.search_path:
            await self._stop(IDLE_GRACE_SECONDS, None)
        if self._child is None:
            self._search_path = behaviour.search_path
            self._child = Executor(behaviour, self._tools, kind.grace_seconds)
            await self._greet(self._child, log)
        return self._child

    async def _greet(self, child: Executor, log: JobLog) -> None:
        seconds = self._tools.start_timeout_seconds
        with trio.move_on_after(seconds):
            await child.hello(log)
            return
        raise ChildDied(f"its child process was not ready within {seconds:g} s")

    async def _recycle(self, child: Executor, ended: Ended) -> None:
        tools = self._tools
        if (
            child.jobs >= tools.max_jobs_per_child
            or ended.memory_bytes > tools.max_child_memory_bytes
        ):
            await self._stop(IDLE_GRACE_SECONDS, None)

    async def _died(self, error: Exception, assignment: Assignment, log: JobLog) -> Outcome:
        started = self._child is not None and self._child.jobs > 0
        child = self._child
        await self._stop(0.0, log)
        how = _how_it_ended(child.status) if child is not None else ""
        if isinstance(error, OSError):
            message = f"its child process could not be started: {error}"
        else:
            message = f"{error}{how}"
        spent = assignment.traces.spent
        # One that never got as far as the job is no fault of the job's.
        retryable = assignment.kind.retryable or not started
        outcome = Outcome("failure", None, "child_died", message, retryable)
        return outcome._replace(log=log.text(), spent=spent)

    async def _stop(self, grace_seconds: float, log: JobLog | None) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        await child.stop(grace_seconds, log)


def _how_it_ended(status: int | None) -> str:
    if status is None:
        return ""
    if status >= 0:
        return f" (exit status {status})"
    try:
        return f" (killed by {signal.Signals(-status).name})"
    except ValueError:
        return f" (killed by signal {-status})"
