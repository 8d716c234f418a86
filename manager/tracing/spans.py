"""Spans of OpenTelemetry: `claim` and `settle` around visits to the store, `run KIND` around
attempts. The first attempt of a job joins the trace of whoever made it; later ones begin traces of
their own, which link there.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Link, SpanContext, SpanKind, StatusCode, TraceFlags

from musterd import __version__
from musterd.catalog.kinds import WorkKind
from musterd.manager.tracing.carrying import Tracing, not_usable
from musterd.store.leases import Claim, Ends
from musterd.store.lifecycle import AttemptOutcome
from musterd.store.tracing import traceparent_of
from musterd.workers.claiming.held import Held
from musterd.workers.outcome import Outcome
from musterd.workers.progress import PhaseBook
from musterd.workers.toolbox import Toolbox

EXPORTERS = "opentelemetry_traces_exporter"  # the entry points of those that are installed
OTLP, OTLP_OVER_HTTP = "otlp", "otlp_proto_http"  # as people call it, and as its package does
LINKS_MAX = 128  # of a span, as the SDK has it
RUNS_MAX = 10_000  # whose settlements are awaited; those of lost leases never come
NO_PARENT = Context()


class Spans(Tracing):
    """With a tracer of the SDK."""

    def __init__(self, provider: TracerProvider) -> None:
        self.visits = self
        self._provider = provider
        self._tracer = provider.get_tracer("musterd", __version__)
        self._runs: OrderedDict[int, SpanContext] = OrderedDict()  # by job

    async def attempt(
        self, held: Held, kind: WorkKind, box: Toolbox, phases: PhaseBook
    ) -> Outcome | None:
        claim = held.claim
        parent, links = _origin(claim)
        span = self._tracer.start_span(
            f"run {claim.kind}", parent, SpanKind.CONSUMER, _facts_of_run(claim), links
        )
        context = span.get_span_context()
        held.trace(traceparent_of(context))
        self._note_run(claim.id, context)
        with trace.use_span(
            span, end_on_exit=True, record_exception=False, set_status_on_exception=False
        ):
            outcome = await super().attempt(held, kind, box, phases)
            if outcome is not None and span.is_recording():
                _say_end(span, outcome)
        return outcome

    def visited(self, tenant: str, began_ns: int, ends: Ends, claims: list[Claim]) -> None:
        if claims:
            origins = [context_of(one.traceparent) for one in claims if one.traceparent]
            facts = {
                **_facts("claim", "receive", tenant, len(claims)),
                "musterd.kinds": sorted({claim.kind for claim in claims}),
            }
            self._visit("claim", began_ns, origins, facts).end()
        if ends.are_any:
            self._settled(tenant, began_ns, ends).end()

    def failed(self, tenant: str, began_ns: int, ends: Ends, error: Exception) -> None:
        if ends.are_any:
            span = self._visit(
                "settle", began_ns, [], _facts("settle", "settle", tenant, len(ends.ids))
            )
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(StatusCode.ERROR, str(error))
            span.end()

    def close(self) -> None:
        self._provider.shutdown()

    def _settled(self, tenant: str, began_ns: int, ends: Ends) -> trace.Span:
        runs = [self._runs.pop(job_id, None) for job_id in ends.ids]
        facts = _facts("settle", "settle", tenant, len(ends.ids))
        outcomes = {one.outcome.value for one in ends.settlements}
        outcomes |= {AttemptOutcome.SUCCEEDED.value} if ends.successes.ids else set()
        return self._visit(
            "settle", began_ns, runs, {**facts, "musterd.outcomes": sorted(outcomes)}
        )

    def _visit(
        self,
        name: str,
        began_ns: int,
        linked: Iterable[SpanContext | None],
        facts: Mapping[str, Any],
    ) -> trace.Span:
        """One span for all jobs of a visit, which links to the spans of each."""
        links = [Link(one) for one in linked if one is not None][:LINKS_MAX]
        return self._tracer.start_span(
            name, NO_PARENT, SpanKind.CLIENT, facts, links, start_time=began_ns
        )

    def _note_run(self, job_id: int, context: SpanContext) -> None:
        if not context.trace_flags & TraceFlags.SAMPLED:
            return
        self._runs[job_id] = context
        if len(self._runs) > RUNS_MAX:
            self._runs.popitem(last=False)


def context_of(traceparent: str) -> SpanContext | None:
    _, trace_id, span_id, flags = traceparent.split("-")
    found = SpanContext(
        int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16))
    )
    return found if found.is_valid else None


def _origin(claim: Claim) -> tuple[Context, Sequence[Link]]:
    """What its span is part of, and what it links to."""
    made = None if claim.traceparent is None else context_of(claim.traceparent)
    if made is None:
        return NO_PARENT, ()
    if claim.attempt > 1:
        return NO_PARENT, (Link(made),)
    return trace.set_span_in_context(trace.NonRecordingSpan(made), NO_PARENT), ()


def _facts(name: str, kind: str, tenant: str, count: int) -> dict[str, Any]:
    """In OpenTelemetry's words for messaging."""
    return {
        "messaging.system": "musterd",
        "messaging.operation.name": name,
        "messaging.operation.type": kind,
        "messaging.batch.message_count": count,
        "musterd.tenant": tenant,
    }


def _facts_of_run(claim: Claim) -> dict[str, Any]:
    return {
        "messaging.system": "musterd",
        "messaging.operation.name": "run",
        "messaging.operation.type": "process",
        "messaging.destination.name": claim.kind,
        "messaging.message.id": str(claim.id),
        "musterd.attempt": claim.attempt,
        "musterd.waited_seconds": claim.waited_seconds,
    }


def _say_end(span: trace.Span, outcome: Outcome) -> None:
    span.set_attribute("musterd.ended", outcome.ended)
    if outcome.error_type is not None:
        span.set_attribute("error.type", outcome.error_type)
    if outcome.ended in ("failure", "retry"):
        span.set_status(StatusCode.ERROR, outcome.message)


def make_spans(exporter: str, node: str) -> Spans:
    """Raises ConfigError if there is no such exporter."""
    named = {"service.instance.id": node}
    if "OTEL_SERVICE_NAME" not in os.environ:
        named["service.name"] = "musterd"
    provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(_exporter(exporter)))
    return Spans(provider)


def _exporter(name: str) -> SpanExporter:
    found = {one.name: one for one in entry_points(group=EXPORTERS)}
    if OTLP_OVER_HTTP in found:
        found.setdefault(OTLP, found[OTLP_OVER_HTTP])
    if name not in found:
        there = f"one that is installed: {', '.join(sorted(found))}"
        get = "; pip install 'musterd[otel]' brings it" if name == OTLP else ""
        raise not_usable(name, there + get)
    make: Any = found[name].load()
    exporter: SpanExporter = make()
    return exporter
