"""Traces from enqueue to attempt, by the real SDK: a daemon in this process, on both stores."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from musterd import AsyncClient, Client
from musterd.catalog.load import catalog_of
from musterd.config.faults import ConfigError
from musterd.config.load import load
from musterd.console import wiring
from musterd.manager.tracing import spans
from musterd.manager.tracing.carrying import Tracing, make_tracing
from musterd.manager.tracing.spans import Spans
from musterd.store.tracing import traceparent_of
from tests.contract.rigs import Rig
from tests.contract.test_client import url_of
from tests.contract.test_job_options import TRACE
from tests.support.web_scene import serving

WAIT_SECONDS = 30
HANDLERS = """
import os
from musterd import Retry
def around(job):
    return [os.environ.get("TRACEPARENT"), job.traceparent]
def inside(job):
    from opentelemetry import trace
    here = trace.get_current_span().get_span_context()
    return [format(here.span_id, "016x"), job.traceparent]
def twice(job):
    if job.attempt == 1:
        raise Retry(in_seconds=0)
    return job.traceparent
"""
KINDS = """
[kinds.around]
python = "traced_handlers:around"
[kinds.inside]
python = "traced_handlers:inside"
isolation = "thread"
[kinds.twice]
python = "traced_handlers:twice"
isolation = "thread"
[kinds.told]
command = ["/bin/sh", "-c", 'echo "\\"$TRACEPARENT\\""']
"""


class Exported:
    """Spans that a daemon has made, and those of the program that enqueues."""

    def __init__(self) -> None:
        self._memory = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._memory))
        self.tracer = self.provider.get_tracer("a program")

    def named(self, name: str) -> list[ReadableSpan]:
        return [one for one in self._memory.get_finished_spans() if one.name == name]

    async def soon(self, name: str, count: int = 1) -> list[ReadableSpan]:
        with trio.fail_after(WAIT_SECONDS):
            while len(found := self.named(name)) < count:  # noqa: ASYNC110 - nobody tells of spans
                await trio.sleep(0.01)
        return found


@pytest.fixture
def exported() -> Exported:
    return Exported()


@pytest.fixture
async def closed(shared: Rig) -> Rig:
    """The store, with its schema."""
    await shared.engine.close()
    return shared


@asynccontextmanager
async def daemon(
    rig: Rig, folder: Path, monkeypatch: pytest.MonkeyPatch, tracing: Tracing | None
) -> AsyncGenerator[None]:
    (folder / "traced_handlers.py").write_text(HANDLERS)
    (folder / "kinds.toml").write_text(KINDS)
    sets = [
        f"store.url={url_of(rig)}", f"catalog.paths=[{json.dumps(str(folder))}]",
        f"catalog.python_path=[{json.dumps(str(folder))}]", 'http.listen=""',
    ]  # fmt: skip
    settings = load(None, {}, sets, folder / "none.toml").settings

    def make_tracing(*_: object) -> Tracing | None:
        return tracing

    monkeypatch.setattr(wiring, "make_tracing", make_tracing)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    node = wiring.make_node(settings, catalog_of(settings, os.environ), logging.getLogger("traced"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.daemon.run)  # noqa: ASYNC113 - it may start at any time
        yield
        node.daemon.stop()


async def ended(rig: Rig, job_id: int) -> dict[str, Any]:
    with Client(url_of(rig)) as client:
        wait = partial(client.wait, job_id, timeout=WAIT_SECONDS)
        return await trio.to_thread.run_sync(wait)


def job_of(span: ReadableSpan) -> object:
    return (span.attributes or {}).get("messaging.message.id")


def ids(span: ReadableSpan) -> tuple[int, int]:
    assert span.context is not None
    return span.context.trace_id, span.context.span_id


def linked(span: ReadableSpan) -> set[tuple[int, int]]:
    return {(one.context.trace_id, one.context.span_id) for one in span.links}


def enqueue_one(rig: Rig, kind: str) -> int:
    with Client(url_of(rig)) as client:
        return client.enqueue(kind)


def enqueue_pairs(rig: Rig, kind: str) -> int:
    with Client(url_of(rig)) as client:
        return client.enqueue_many([(kind, {}), (kind, {})])[0]


def enqueue_async(rig: Rig, kind: str) -> int:
    async def main() -> int:
        async with AsyncClient(url_of(rig)) as client:
            return await client.enqueue(kind)

    return trio.run(main)


@pytest.mark.parametrize("enqueue", [enqueue_one, enqueue_pairs, enqueue_async])
async def test_the_first_attempt_joins_the_trace_of_whoever_enqueued(
    enqueue: Callable[[Rig, str], int],
    closed: Rig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    exported: Exported,
) -> None:
    def order() -> int:
        with exported.tracer.start_as_current_span("order"):
            return enqueue(closed, "around")

    job_id = await trio.to_thread.run_sync(order)
    async with daemon(closed, tmp_path, monkeypatch, Spans(exported.provider)):
        job = await ended(closed, job_id)
        (order_span,) = exported.named("order")
        runs = await exported.soon("run around")
        run = next(one for one in runs if job_of(one) == str(job_id))
        settles = await exported.soon("settle")
    assert run.parent is not None
    assert (run.parent.trace_id, run.parent.span_id) == ids(order_span)
    assert run.context is not None
    # A child process sees the span of its run, not that of whoever enqueued.
    assert job["result"] == [traceparent_of(run.context)] * 2
    assert order_span.context is not None
    assert job["traceparent"] == traceparent_of(order_span.context)
    assert ids(order_span) in linked(exported.named("claim")[0])
    assert any(ids(run) in linked(one) for one in settles)


async def test_a_retry_links_to_the_trace(
    closed: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exported: Exported
) -> None:
    with exported.tracer.start_as_current_span("order"), Client(url_of(closed)) as client:
        job_id = client.enqueue("twice")
    async with daemon(closed, tmp_path, monkeypatch, Spans(exported.provider)):
        job = await ended(closed, job_id)
        first, second = await exported.soon("run twice", 2)
    (order,) = exported.named("order")
    assert ids(first)[0] == ids(order)[0]
    assert not first.status.is_ok
    assert ids(second)[0] != ids(order)[0]
    assert second.parent is None
    assert linked(second) == {ids(order)}
    assert second.context is not None
    assert job["result"] == traceparent_of(second.context)


async def test_commands_and_threads_are_in_the_span_of_their_run(
    closed: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exported: Exported
) -> None:
    with Client(url_of(closed)) as client:
        made = client.enqueue_many([("told", {}), ("inside", {})])
    async with daemon(closed, tmp_path, monkeypatch, Spans(exported.provider)):
        told, inside = [await ended(closed, one) for one in made]
        (command,), (thread,) = await exported.soon("run told"), await exported.soon("run inside")
    assert command.context is not None
    assert told["result"] == traceparent_of(command.context)
    assert thread.context is not None
    span_id = format(thread.context.span_id, "016x")
    assert inside["result"] == [span_id, traceparent_of(thread.context)]
    assert told["traceparent"] is None  # nobody's trace: the run began its own


async def test_without_spans_the_trace_itself_is_passed_on(
    closed: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Client(url_of(closed)) as client:
        made = [client.enqueue(kind, traceparent=TRACE) for kind in ("around", "told")]
        made.append(client.enqueue("around"))  # a child forgets the trace of the job before
    async with daemon(closed, tmp_path, monkeypatch, make_tracing("none", "n")):
        results = [(await ended(closed, one))["result"] for one in made]
    assert results == [[TRACE, TRACE], TRACE, [None, None]]


async def test_a_request_carries_its_trace_in_the_header(shared: Rig) -> None:
    async def made(headers: dict[str, str], **body: str) -> str | None:
        answer = await web.post("/jobs", {"kind": "report", **body}, headers=headers)
        assert answer.status == 201, answer.text
        found: str | None = answer.json["traceparent"]
        return found

    other = TRACE.replace("-01", "-00")
    async with serving(engine=shared.engine) as web:
        assert await made({"traceparent": TRACE}) == TRACE
        assert await made({"traceparent": TRACE}, traceparent=other) == other
        assert await made({"traceparent": "00-oddity"}) is None


def test_an_exporter_that_is_not_there_is_a_fault_of_the_configuration() -> None:
    with pytest.raises(ConfigError, match=r'tracing\.exporter: found "carrier_pigeon", wanted'):
        make_tracing("carrier_pigeon", "n")


@attrs.frozen
class Installed:
    """An entry point of a package that is not here; the nightly test of releases has it."""

    name: str

    def load(self) -> type[ConsoleSpanExporter]:
        return ConsoleSpanExporter


@pytest.mark.parametrize(
    ("there", "usable"),
    [((), False), (("otlp_proto_http",), True), (("otlp",), True), (("otlp_proto_grpc",), False)],
)
def test_otlp_is_the_exporter_that_the_extra_brings(
    monkeypatch: pytest.MonkeyPatch, there: Sequence[str], usable: bool
) -> None:
    def installed(group: str) -> Iterator[Installed]:
        assert group == spans.EXPORTERS
        return map(Installed, there)

    monkeypatch.setattr(spans, "entry_points", installed)
    if usable:
        made = make_tracing("otlp", "n")
        assert made is not None
        made.close()
    else:
        with pytest.raises(ConfigError, match=r"pip install 'musterd\[otel\]' brings it"):
            make_tracing("otlp", "n")


QUIET = """
import sys, importlib.abc
class None_(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] == "opentelemetry":
            raise ImportError(name)
sys.meta_path.insert(0, None_())
from musterd import Client
from musterd.config.faults import ConfigError
from musterd.manager.tracing.carrying import make_tracing
with Client(f"sqlite:///{sys.argv[1]}", create=True) as client:
    assert client.job(client.enqueue("a"))["traceparent"] is None
assert make_tracing("", "n") is None and make_tracing("none", "n") is not None
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
try:
    make_tracing("otlp", "n")
except ConfigError as error:
    print(error)
"""


def test_without_the_extra_nothing_of_it_is_imported(tmp_path: Path) -> None:
    words: Sequence[str] = [sys.executable, "-c", QUIET, str(tmp_path / "a.db")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "pip install 'musterd[otel]'" in done.stdout


def test_a_span_that_is_not_sampled_is_passed_on_as_such() -> None:
    context = trace.SpanContext(1, 2, is_remote=False, trace_flags=trace.TraceFlags(0))
    assert traceparent_of(context) == f"00-{1:032x}-{2:016x}-00"
