"""Assignments of Python kinds, without a daemon."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import trio

from musterd.catalog.kinds import Isolation, Python, WorkKind
from musterd.config.children import children_environment
from musterd.config.settings import Retry
from musterd.store.leases import Claim
from musterd.testing.handlers import KeepingRecorder
from musterd.workers.joblog import JobLog, LogBounds
from musterd.workers.outcome import Assignment, Note, Outcome, Runner
from musterd.workers.runners.results import AnswerLimits
from musterd.workers.toolbox import Toolbox
from musterd.workers.tools import Tools
from tests.support.assignments import BOUNDS, Heard

USER = Path(__file__).with_name("user")
RETRY = Retry(3, "fixed", 1.0, 1.0, 1.0, "none")
TOKEN = uuid.UUID(int=7)


def python_kind(function: str, isolation: Isolation = "process", **values: Any) -> WorkKind:
    """The user's function, in `shop` unless it names another module."""
    module, _, name = function.rpartition(":")
    path = values.pop("search_path", (USER,))
    behaviour = Python(module or "shop", name, isolation, path)
    values.setdefault("grace_seconds", 2.0)
    return WorkKind(
        "kind", behaviour, values.pop("retryable", False), RETRY, None, 0, "requeue", "test:1",
        **values,
    )  # fmt: skip


def some_tools(**values: Any) -> Tools:
    limits = AnswerLimits(65_536, 64)
    environment = children_environment(os.environ, ())
    return Tools(limits, time.monotonic, {}, values.pop("environment", environment), **values)


@attrs.define
class Bench(Heard):
    """One worker's toolbox, and what the jobs run with it have told."""

    box: Toolbox
    notes: list[Note] = attrs.field(factory=list[Note])  # of all jobs
    remaining_seconds: float = 7.5
    log_bounds: LogBounds = BOUNDS
    told: KeepingRecorder = attrs.field(init=False)

    def assignment(self, kind: WorkKind, payload: Any = None, **claim: Any) -> Assignment:
        text = json.dumps({} if payload is None else payload)
        self.told = KeepingRecorder(JobLog(self.log_bounds, time.time), self.remaining_seconds)
        row = Claim(5, kind.name, text, 1, None, 0, 0.0, 1, TOKEN)._replace(**claim)
        self.told.notes = self.notes
        return Assignment(row, kind, json.loads(text), self.told)

    async def run(self, kind: WorkKind, payload: Any = None, **claim: Any) -> Outcome:
        return await self.runner(kind).run(self.assignment(kind, payload, **claim))

    def runner(self, kind: WorkKind) -> Runner:
        return self.box.runner(kind)


@asynccontextmanager
async def a_bench(tools: Tools | None = None) -> AsyncGenerator[Bench]:
    given = tools or some_tools()
    async with trio.open_nursery() as nursery:
        box = Toolbox(lambda: given, nursery)
        try:
            yield Bench(box)
        finally:
            with trio.move_on_after(10, shield=True):
                await box.close()


def result_of(outcome: Outcome) -> Any:
    assert outcome.ended == "success", outcome
    return None if outcome.result is None else json.loads(outcome.result)
