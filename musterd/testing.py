"""For unit tests of handlers: run one once, or run all that is due, without a daemon.

Both run the handler in the caller's own process, whatever its kind's isolation, so that debuggers,
coverage and patches reach it.
"""

from __future__ import annotations

import inspect
import json
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, cast

import attrs
import trio

from musterd.catalog.kinds import Catalog, Python, WorkKind
from musterd.catalog.load import catalog_of
from musterd.config.load import load
from musterd.config.settings import LiveSettings, Settings
from musterd.store.input import PayloadLimits, check_payload
from musterd.store.jobs import JobFilter, JobRecord, NewJob
from musterd.store.leases import Claim
from musterd.store.sqlite.engine import SqliteEngine
from musterd.workers.claiming.desk import ClockAndRng, Desk, JobObserver
from musterd.workers.claiming.exchange_loop import ExchangeLoop
from musterd.workers.context import JobContext, PhaseFacts, ending_of_error, ending_of_value
from musterd.workers.idleness import Idleness
from musterd.workers.outcome import Assignment, Note, Outcome, Runner, Traces
from musterd.workers.progress import PhaseBook, ProgressWriter
from musterd.workers.runners import inside
from musterd.workers.runners.inside import import_function
from musterd.workers.toolbox import Toolbox
from musterd.workers.tools import Tools, make_tools
from musterd.workers.worker import WorkerDeps, work

CLOSE_SECONDS = 5.0
LEASE_SECONDS = 3600.0  # nobody renews here
Handler = Callable[[JobContext], Any]


@attrs.frozen
class TestResult:
    """What a handler came to. `outcome` is success, failure, cancel, retry or snooze.

    `error` is {"type", "message"} of a failure or a retry; `reason` is what a cancel or a snooze
    said; `progress` has every report of it, as (percent, note).
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


@attrs.frozen
class InPhase:
    """The phase that a handler is called for, and what those before it returned, by name."""

    name: str
    results: Mapping[str, Any] = attrs.field(factory=dict[str, Any])


@attrs.frozen
class DueResult:
    """What became of a job of `run_due`: its state, and its result or its error."""

    id: int
    kind: str
    state: str
    attempt: int
    result: Any
    error: Mapping[str, str] | None


class JobFacts(TypedDict, total=False):
    """What else `run_handler` may be told."""

    budgets: Mapping[str, int]
    scheduled_for: datetime
    loop: Literal["asyncio", "trio"]


def run_handler(
    function: Handler,
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
    check_payload(text, _payload_limits(settings))
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
    progress: list[Note] = []
    assignment = Assignment(
        claim, kind, json.loads(text), lambda: LEASE_SECONDS, progress.append, _unspent,
        Traces(), _phase_facts(phase),
    )  # fmt: skip
    run = _Inline(make_tools(settings, time.monotonic, {}), job.get("loop", "asyncio")).run_function
    return _test_result(trio.run(run, function, assignment), assignment, progress)


def run_due(catalog: Path | str | Iterable[WorkKind], jobs: Iterable[NewJob]) -> list[DueResult]:
    """Enqueues the jobs into a store in memory and runs all that is due, one after the other.

    `catalog` is a catalog file, a folder of them, or kinds. A job that is to be tried again later,
    or snoozes, is left queued. Raises ConfigError for a faulty catalog.
    """
    paths = [catalog] if isinstance(catalog, Path | str) else []
    named = json.dumps([str(Path(each).resolve()) for each in paths])
    settings = load(None, {}, [f"catalog.paths={named}"]).settings
    kinds = catalog_of(settings) if paths else Catalog(cast(Iterable[WorkKind], catalog))
    return trio.run(_run_due, settings, kinds, list(jobs))


async def _run_due(settings: Settings, catalog: Catalog, jobs: list[NewJob]) -> list[DueResult]:
    for job in jobs:
        check_payload(job.payload, _payload_limits(settings))
    engine = SqliteEngine(":memory:", time.time, inline=True, busy_timeout_seconds=1.0)
    await engine.open()
    try:
        await engine.migrate()
        ids = await engine.jobs.enqueue(jobs)
        await _work_until_dry(engine, settings, catalog)
        found = await engine.jobs.find(JobFilter(limit=len(ids)))
        return [_due_result(record) for record in sorted(found, key=lambda record: record.id)]
    finally:
        with trio.move_on_after(CLOSE_SECONDS, shield=True):
            await engine.close()


async def _work_until_dry(engine: SqliteEngine, settings: Settings, catalog: Catalog) -> None:
    """One worker, the desk and the loop of a daemon, until nothing due is left."""
    rng = random.Random(0)
    pace = _pace(settings)
    observer, sources = cast(JobObserver, _NobodyListens()), ClockAndRng(time.monotonic, rng)
    desk = Desk("test", pace, tuple, Idleness(), observer, sources)
    loop = ExchangeLoop(desk, engine, time.monotonic, rng, lambda: None)
    tools = make_tools(settings, time.monotonic, {})
    notes = ProgressWriter(desk, engine, pace)
    book = PhaseBook(desk, engine, rng, notes)
    deps = WorkerDeps(lambda: catalog, pace, partial(_InlineBox, lambda: tools), book)
    seat = desk.open_seat(1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(book.run)
        nursery.start_soon(notes.run)
        nursery.start_soon(loop.run)
        nursery.start_soon(work, seat, desk, deps)
        while (await engine.queue.observe(1)).due or desk.held:  # noqa: ASYNC110 - no event says so
            await trio.sleep(0.001)
        seat.retire()
        loop.close()
        await loop.finished.wait()
        nursery.cancel_scope.cancel()


def _pace(settings: Settings) -> LiveSettings:
    """One job at a time, looked for without a pause."""
    workers = attrs.evolve(
        settings.workers, lease_timeout_seconds=LEASE_SECONDS, poll_interval_ms=10
    )
    limits = attrs.evolve(settings.limits, claim_batch=1, claim_ahead_ms=0)
    return LiveSettings(attrs.evolve(settings, workers=workers, limits=limits))


class _InlineBox(Toolbox):
    """A toolbox whose Python kinds run in this process."""

    def runner(self, kind: WorkKind) -> Runner:
        behaviour = kind.behaviour
        if not isinstance(behaviour, Python):
            return super().runner(kind)
        return _Inline(self.tools, "trio" if behaviour.isolation == "task" else "asyncio")


class _Inline:
    """Calls a handler here and now."""

    def __init__(self, tools: Tools, loop: Literal["asyncio", "trio"]) -> None:
        self._tools, self._loop = tools, loop

    async def run(self, assignment: Assignment) -> Outcome:
        behaviour = assignment.kind.behaviour
        assert isinstance(behaviour, Python)
        return await self.run_function(lambda job: import_function(behaviour)(job), assignment)  # noqa: PLW0108 - a failing import is an outcome too

    async def run_function(self, function: Handler, assignment: Assignment) -> Outcome:
        limits = self._tools.limits
        link = inside.InsideLink(assignment, limits.log_bytes_max)
        job = inside.context_of(assignment, link)
        try:
            value = function(job)
            if inspect.isawaitable(value):
                value = await self._await(value)
            ending = ending_of_value(job, value)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is its outcome
            ending = ending_of_error(job, error)
            inside.log_crash(link, ending, error)
        return inside.conclude(ending, assignment, link, limits)

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


class _NobodyListens:
    """An observer that ignores whatever it is called for."""

    def __getattr__(self, _name: str) -> Callable[..., None]:
        return lambda *_: None


def _test_result(outcome: Outcome, assignment: Assignment, progress: Sequence[Note]) -> TestResult:
    error = None
    if outcome.ended in ("failure", "retry"):
        error = {"type": outcome.error_type or "error", "message": outcome.message or ""}
    spent = assignment.traces.spent
    return TestResult(
        outcome=outcome.ended,
        result=None if outcome.result is None else json.loads(outcome.result),
        error=error,
        reason=None if error else outcome.message,
        delay_seconds=outcome.delay_seconds,
        retryable=outcome.retryable,
        progress=[(note.percent, note.note) for note in progress],
        spent=json.loads(spent) if spent else {},
        log=outcome.log or "",
    )


def _due_result(record: JobRecord) -> DueResult:
    result, error = (
        None if text is None else json.loads(text) for text in (record.result, record.error)
    )
    return DueResult(record.id, record.kind, record.state.value, record.attempt, result, error)


def _phase_facts(phase: InPhase | None) -> PhaseFacts | None:
    if phase is None:
        return None
    results = phase.results.items()
    texts = {name: None if result is None else json.dumps(result) for name, result in results}
    return PhaseFacts(phase.name, (*texts, phase.name), texts, texts.__getitem__)


def _payload_limits(settings: Settings) -> PayloadLimits:
    return PayloadLimits(settings.limits.max_payload_bytes, settings.limits.max_payload_depth)


def _unspent(_spent: str) -> None:
    """Nothing has to last here."""
