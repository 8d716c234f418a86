"""Functions of the user's that are told of something: called as handlers of kinds are, in a child
process, but for no job.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import trio

from musterd.catalog.kinds import Python, WorkKind
from musterd.config.settings import Retry
from musterd.store.leases import Claim
from musterd.store.waiting import Bell
from musterd.workers.joblog import JobLog, LogBounds
from musterd.workers.outcome import Assignment, Note, Recorder
from musterd.workers.runners.process import ProcessRunner
from musterd.workers.tools import Tools

CALL_SECONDS = 60.0  # a call that takes longer has failed
IDLE_SECONDS = 60.0  # then the child is not kept any longer
CLOSE_SECONDS = 10.0
GRACE_SECONDS = 2.0  # from TERM to KILL
LOG_BOUNDS = LogBounds(bytes_max=4_096, lines_max=100)
ONCE = Retry(0, "fixed", 0.0, 1.0, 0.0, "none")  # the caller tries again


class PythonHooks:
    """One child at a time, started with the first call; one call at a time. `run` as long as there
    may be calls: it ends a child that idles, and in the end the last one.
    """

    def __init__(
        self, tools: Callable[[], Tools], search_path: Callable[[], tuple[Path, ...]]
    ) -> None:
        self._latest, self._search_path = tools, search_path
        self._tools = tools()
        self._runner = ProcessRunner(self._tools)
        self._turn = trio.Lock()
        self._called = Bell()

    async def call(self, target: str, event: Mapping[str, Any]) -> str | None:
        """Calls `module:function` with a JobContext whose payload is the event, and whose kind its
        type. Gives what went wrong; None = nothing.
        """
        async with self._turn:
            self._called.ring()
            await self._renew()
            with trio.move_on_after(CALL_SECONDS):
                outcome = await self._runner.run(self._assignment(target, event))
                if outcome.ended == "success":
                    return None
                what = outcome.error_type or outcome.ended
                return f"{target}: {what}: {outcome.message or 'it said no more'}"
        return f"{target} took longer than {CALL_SECONDS:g} s"

    async def run(self) -> None:
        try:
            while True:
                await self._called.wait()
                self._called.clear()
                if await self._called.wait(IDLE_SECONDS):
                    continue
                async with self._turn:
                    await self._runner.close()
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_SECONDS):
                await self._runner.close()

    async def _renew(self) -> None:
        """After a reload a fresh child, which imports the functions anew."""
        if self._tools is not self._latest():
            await self._runner.close()
            self._tools = self._latest()
            self._runner = ProcessRunner(self._tools)

    def _assignment(self, target: str, event: Mapping[str, Any]) -> Assignment:
        module, _, function = target.partition(":")
        kind = WorkKind(
            name=str(event["type"]),
            behaviour=Python(module, function, "process", self._search_path()),
            retryable=False,
            retry=ONCE,
            time_limit_seconds=CALL_SECONDS,
            priority=0,
            on_lease_lost="fail",
            source=target,
            grace_seconds=GRACE_SECONDS,
        )
        text = json.dumps(event)
        about: Mapping[str, Any] = event.get("data") or {}
        claim = Claim(about.get("id", 0), kind.name, text, 1, None, 0, 0.0, None, uuid4())
        return Assignment(claim, kind, json.loads(text), _Unread())


class _Unread(Recorder):
    """Progress of a call is of no interest, nor are its log and what it spends."""

    def __init__(self) -> None:
        self._until_local = trio.current_time() + CALL_SECONDS
        self._log = JobLog(LOG_BOUNDS, lambda: 0.0)

    def remaining_seconds(self) -> float:
        return self._until_local - trio.current_time()

    def report(self, note: Note) -> None:
        del note

    @property
    def log(self) -> JobLog:
        return self._log
