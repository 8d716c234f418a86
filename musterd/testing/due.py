"""All jobs that are due, one after the other, by the worker of a daemon."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, cast

import attrs
import trio

from musterd.catalog.kinds import Catalog, WorkKind
from musterd.catalog.load import catalog_of
from musterd.config.load import load
from musterd.config.settings import LiveSettings, Settings
from musterd.store.input import check_payload
from musterd.store.jobs import JobFilter, JobRecord, NewJob
from musterd.store.sqlite.engine import SqliteEngine
from musterd.testing.running import LEASE_SECONDS, InlineBox, payload_limits
from musterd.workers.claiming.desk import ClockAndRng, Desk
from musterd.workers.claiming.exchange_loop import ExchangeLoop
from musterd.workers.claiming.observer import JobObserver
from musterd.workers.idleness import Idleness
from musterd.workers.log_writer import LogWriter
from musterd.workers.progress import PhaseBook, ProgressWriter
from musterd.workers.tools import make_tools
from musterd.workers.worker import WorkerDeps, attempt, work

CLOSE_SECONDS = 5.0
GivenCatalog: TypeAlias = Path | str | Iterable[WorkKind] | None


@attrs.frozen
class DueResult:
    """What became of a job of `run_due`: its state, and its result or its error."""

    id: int
    kind: str
    state: str
    attempt: int
    result: Any
    error: Mapping[str, str] | None


def run_due(catalog: Path | str | Iterable[WorkKind], jobs: Iterable[NewJob]) -> list[DueResult]:
    """Enqueues the jobs into a store in memory and runs all that is due, one after the other.

    `catalog` is a catalog file, a folder of them, or kinds. A job that is to be tried again later,
    or snoozes, is left queued. Raises ConfigError for a faulty catalog.
    """
    settings, kinds = settings_and_kinds(catalog)
    return trio.run(_run_due, settings, kinds, list(jobs))


def settings_and_kinds(catalog: GivenCatalog) -> tuple[Settings, Catalog]:
    """None = what the verbs would find here: the configuration of the machine and environment."""
    if catalog is None:
        settings = load(None, dict(os.environ), []).settings
        return settings, catalog_of(settings, os.environ)
    paths = [catalog] if isinstance(catalog, Path | str) else []
    named = json.dumps([str(Path(each).resolve()) for each in paths])
    settings = load(None, {}, [f"catalog.paths={named}"]).settings
    kinds = (
        catalog_of(settings, os.environ) if paths else Catalog(cast(Iterable[WorkKind], catalog))
    )
    return settings, kinds


async def _run_due(settings: Settings, catalog: Catalog, jobs: list[NewJob]) -> list[DueResult]:
    for job in jobs:
        check_payload(job.payload, payload_limits(settings))
    engine = SqliteEngine(":memory:", time.time, inline=True, busy_timeout_seconds=1.0)
    await engine.open()
    try:
        await engine.migrate()
        ids = await engine.jobs.enqueue(jobs)
        await work_until_dry(engine, settings, catalog)
        found = await engine.jobs.find(JobFilter(limit=len(ids)))
        return [due_result(record) for record in sorted(found, key=lambda record: record.id)]
    finally:
        with trio.move_on_after(CLOSE_SECONDS, shield=True):
            await engine.close()


async def work_until_dry(engine: SqliteEngine, settings: Settings, catalog: Catalog) -> None:
    """One worker, the desk and the loop of a daemon, until nothing due is left."""
    rng = random.Random(0)
    pace = _pace(settings)
    observer, sources = cast(JobObserver, _NobodyListens()), ClockAndRng(time.monotonic, rng)
    desk = Desk("test", pace, tuple, Idleness(), observer, sources)
    loop = ExchangeLoop(desk, engine.leases, time.monotonic, rng, lambda: None)
    tools = make_tools(settings, time.monotonic, {})
    notes = ProgressWriter(desk, engine, pace)
    book = PhaseBook(desk, engine, rng, notes, LogWriter(engine, pace))
    deps = WorkerDeps(lambda: catalog, pace, partial(InlineBox, lambda: tools), book, attempt)
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
    limits = attrs.evolve(settings.limits, claim_batch=1, claim_ahead_ms=0, log_interval_ms=0)
    return LiveSettings(attrs.evolve(settings, workers=workers, limits=limits))


class _NobodyListens:
    """An observer that ignores whatever it is called for."""

    def __getattr__(self, _name: str) -> Callable[..., None]:
        return lambda *_: None


def due_result(record: JobRecord) -> DueResult:
    result, error = (
        None if text is None else json.loads(text) for text in (record.result, record.error)
    )
    return DueResult(record.id, record.kind, record.state.value, record.attempt, result, error)
