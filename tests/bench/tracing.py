"""What traces cost a job: a node in this process drains no-op jobs, each with a trace: without
tracing, carrying traces on, and with spans that are batched and go nowhere.
"""

from __future__ import annotations

import logging
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from unittest import mock

import trio
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from musterd.catalog.load import catalog_of
from musterd.config.load import load
from musterd.console import wiring
from musterd.manager.tracing.carrying import Tracing
from musterd.manager.tracing.spans import Spans
from musterd.store.jobs import NewJob
from tests.support.postgres_server import PostgresServer

ROUNDS = 3
BATCH = 1_000
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
LOOK_SECONDS = 0.02


class _Nowhere(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        del spans
        return SpanExportResult.SUCCESS


def _spans() -> Spans:
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(_Nowhere()))
    return Spans(provider)


WAYS: Mapping[str, Callable[[], Tracing | None]] = {
    "off": lambda: None,
    "carried": Tracing,
    "spans": _spans,
}


def embedded(jobs: int) -> Mapping[str, float]:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        return _costs(lambda number: f"sqlite:///{folder}/{number}.db", jobs)


def postgres(server: PostgresServer, jobs: int) -> Mapping[str, float]:
    return _costs(lambda number: server.create_database(f"traced_{number}"), jobs)


def _costs(url_of: Callable[[int], str], jobs: int) -> Mapping[str, float]:
    """Microseconds of this process's processor time for each job, by way; the median of some
    rounds, in which the ways take turns.
    """
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    for number in range(ROUNDS):
        for place, (way, make) in enumerate(WAYS.items()):
            url = url_of(number * len(WAYS) + place)
            found[way].append(trio.run(_cost, url, jobs, make()))
    return {way: statistics.median(each) for way, each in found.items()}


async def _cost(url: str, jobs: int, tracing: Tracing | None) -> float:
    sets = [f"store.url={url}", 'http.listen=""', "workers.default_count=100"]
    sets += ["workers.max_count=100", "log.level=error", "metrics.kinds_max=5"]
    settings = load(None, {}, sets, Path("no.such.file")).settings
    log = logging.getLogger("musterd.bench")
    log.setLevel(logging.ERROR)
    with mock.patch.object(wiring, "make_tracing", return_value=tracing):
        node = wiring.make_node(settings, catalog_of(settings, os.environ), log)
    async with trio.open_nursery() as nursery:
        await node.engine.open()
        await node.engine.migrate()
        for first in range(0, jobs, BATCH):
            batch = [NewJob("noop", traceparent=TRACE)] * min(BATCH, jobs - first)
            await node.engine.jobs.enqueue(batch)
        await node.engine.close()
        began = time.process_time()
        nursery.start_soon(node.daemon.run)
        while node.daemon.status().settled_total < jobs:  # noqa: ASYNC110 - counts ring no bell
            await trio.sleep(LOOK_SECONDS)
        took = time.process_time() - began
        node.daemon.stop()
    if tracing is not None:
        tracing.close()
    return took / jobs * 1e6
