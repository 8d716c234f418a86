"""Kinds with phases for tests, whose phases do what a test tells them, and note that they ran."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio
from attrs import evolve

from musterd.catalog.kinds import Phase, Pipeline, Python, WorkKind
from musterd.store.events import EventFilter
from musterd.store.jobs import JobRecord
from musterd.workers.context import JobContext
from tests.support.stage import Stage, kind

NAMES = ["download", "process", "upload"]
ROOT = Path(__file__).parents[2]

RUNS: list[tuple[int, str, int]] = []  # (job, phase, attempt), each time that one has begun
ENDS: list[tuple[int, str, int]] = []  # and each time that one has ended well
DOES: dict[str, Callable[[JobContext], Any]] = {}  # by phase; else it takes a moment


async def run_phase(job: JobContext) -> Any:
    """The handler of phases that tests tell what to do."""
    name = str(job.phase)
    RUNS.append((job.fence.id, name, job.attempt))
    if name in DOES:
        result = DOES[name](job)
        if inspect.isawaitable(result):
            result = await result
    else:
        await trio.sleep(0.1)
        result = f"{name} {job.attempt}"
    ENDS.append((job.fence.id, name, job.attempt))
    return result


def ran() -> list[str]:
    return [name for _, name, _ in RUNS]


def states(job: JobRecord) -> str:
    return " ".join(phase.state for phase in job.phases)


async def events_of(stage: Stage, job_id: int) -> list[tuple[str, Any]]:
    page = await stage.store.engine.events.read(0, EventFilter(job_id))
    return [(event.type.removeprefix("job."), event.data) for event in page.events]


async def error_of(stage: Stage, job_id: int) -> tuple[str, str]:
    error = json.loads((await stage.job(job_id)).error or "{}")
    return error["type"], error["message"]


def forget() -> None:
    RUNS.clear()
    ENDS.clear()
    DOES.clear()


def told_phase(name: str, **values: Any) -> Phase:
    """A phase that `run_phase` does."""
    behaviour = Python("tests.support.pipelines", "run_phase", "task", (ROOT,))
    return Phase(name, evolve(kind("video", **values), behaviour=behaviour, phase=name))


def timed_phase(name: str, duration_ms: int = 100, **values: Any) -> Phase:
    """A deterministic phase."""
    return Phase(name, evolve(kind("video", duration_ms, **values), phase=name))


def pipeline(*phases: Phase | str, **values: Any) -> WorkKind:
    """The kind `video`; a bare name is a phase that `run_phase` does, as retryable as the kind."""
    made = [
        told_phase(one, retryable=values.get("retryable", False)) if isinstance(one, str) else one
        for one in phases
    ]
    return evolve(kind("video", **values), behaviour=Pipeline(tuple(made)))
