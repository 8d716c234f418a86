"""One handler, once."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict, Unpack, overload

import attrs
import trio

from musterd.catalog.kinds import Python, WorkKind
from musterd.config.load import load
from musterd.store.input import check_payload
from musterd.store.job_log import plain
from musterd.store.leases import Claim
from musterd.tasks import Task
from musterd.testing.running import LEASE_SECONDS, Handler, Inline, payload_limits
from musterd.workers.context import PhaseFacts
from musterd.workers.joblog import JobLog
from musterd.workers.outcome import Assignment, Note, Outcome, Recorder
from musterd.workers.tools import log_bounds, make_tools


@attrs.frozen
class TestResult:
    """What a handler came to. `outcome` is success, failure, cancel, retry or snooze.

    `error` is {"type", "message"} of a failure or a retry; `reason` is what a cancel or a snooze
    said; `progress` has every report of it, as (percent, note). `log` has its lines as they were
    said, without time, stream and level.
    """

    __test__ = False  # pytest: no test case

    outcome: str
    result: Any = None
    error: Mapping[str, str] | None = None
    reason: str | None = None
    delay_seconds: float | None = None
    retryable: bool = False
    progress: Sequence[tuple[float, str | None]] = ()
    spent: Mapping[str, float] = attrs.field(factory=dict[str, float])
    log: str = ""


class KeepingRecorder(Recorder):
    """Keeps what an attempt tells, in the order in which it came."""

    def __init__(self, log: JobLog, remaining_seconds: float = LEASE_SECONDS) -> None:
        self._log, self._remaining_seconds = log, remaining_seconds
        self.notes: list[Note] = []
        self.sums: list[str] = []  # what had been spent, each time that it was told

    def remaining_seconds(self) -> float:
        return self._remaining_seconds

    def report(self, note: Note) -> None:
        self.notes.append(note)

    def spend(self, spent: str) -> None:
        super().spend(spent)
        self.sums.append(spent)

    @property
    def log(self) -> JobLog:
        return self._log


@attrs.frozen
class InPhase:
    """The phase that a handler is called for, and what those before it returned, by name."""

    name: str
    results: Mapping[str, Any] = attrs.field(factory=dict[str, Any])


class JobFacts(TypedDict, total=False):
    """What else `run_handler` may be told."""

    budgets: Mapping[str, int]
    scheduled_for: datetime
    loop: Literal["asyncio", "trio"]


@overload
def run_handler(
    function: Handler,
    payload: Any = None,
    *,
    attempt: int = 1,
    phase: InPhase | None = None,
    **job: Unpack[JobFacts],
) -> TestResult: ...
@overload
def run_handler(
    function: Task[..., Any],
    payload: Any = None,
    *,
    attempt: int = 1,
    phase: InPhase | None = None,
    **job: Unpack[JobFacts],
) -> TestResult: ...
def run_handler(
    function: Handler | Task[..., Any],
    payload: Any = None,
    *,
    attempt: int = 1,
    phase: InPhase | None = None,
    **job: Unpack[JobFacts],
) -> TestResult:
    """Runs a handler once. `loop` is what an `async def` runs on: asyncio as with isolation
    "process", Trio as with "task".

    `phase` says for which phase of its kind it is called, `scheduled_for` for which slot of a
    schedule, which is called "test".
    Raises InputRefused for a payload that could not be enqueued.
    """
    settings = load(None, {}, []).settings
    text = json.dumps({} if payload is None else payload)
    check_payload(text, payload_limits(settings))
    behaviour = Python(function.__module__, function.__qualname__, "process", ())
    kind = WorkKind(
        function.__name__, behaviour, False, settings.retry, None, 0, "requeue", __file__,
        budgets=job.get("budgets", {}),
    )  # fmt: skip
    scheduled_for = job.get("scheduled_for")
    claim = Claim(
        1, kind.name, text, attempt, None, 0, 0.0, 1, uuid.UUID(int=1),
        schedule=None if scheduled_for is None else "test", scheduled_for=scheduled_for,
    )  # fmt: skip
    kept = KeepingRecorder(JobLog(log_bounds(settings), time.time))
    assignment = Assignment(claim, kind, json.loads(text), kept, _phase_facts(phase))
    run = Inline(make_tools(settings, time.monotonic, {}), job.get("loop", "asyncio")).run_function
    return _test_result(trio.run(run, function, assignment), kept)


def _test_result(outcome: Outcome, kept: KeepingRecorder) -> TestResult:
    error = None
    if outcome.ended in ("failure", "retry"):
        error = {"type": outcome.error_type or "error", "message": outcome.message or ""}
    return TestResult(
        outcome=outcome.ended,
        result=None if outcome.result is None else json.loads(outcome.result),
        error=error,
        reason=None if error else outcome.message,
        delay_seconds=outcome.delay_seconds,
        retryable=outcome.retryable,
        progress=[(note.percent, note.note) for note in kept.notes],
        spent=json.loads(kept.spent) if kept.spent else {},
        log=plain(kept.log.text()),
    )


def _phase_facts(phase: InPhase | None) -> PhaseFacts | None:
    if phase is None:
        return None
    results = phase.results.items()
    texts = {name: None if result is None else json.dumps(result) for name, result in results}
    return PhaseFacts(phase.name, (*texts, phase.name), texts, texts.__getitem__)
