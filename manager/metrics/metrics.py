"""What Prometheus reads: all instruments of a node on a registry of its own.

The desk and the workers report to it as their `JobObserver`; the supervisor, the instrumented store
and the HTTP side have calls of their own. Counting is cheap enough for the hot path: the series of
a kind are looked up once. No label has values that users can multiply without bound: kinds beyond
`metrics.kinds_max` share the label `other`.
"""

from __future__ import annotations

import platform
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import attrgetter

import trio
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from musterd.config.settings import Metrics as MetricsSettings
from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.manager.metrics.instruments import (
    CrewMetrics,
    DutyMetrics,
    JobCounters,
    QueueCollector,
    StoreHealthMetrics,
    StoreMetrics,
)
from musterd.manager.node.status import Decision
from musterd.store.connections import ConnectionUse
from musterd.store.leases import Reaped, Settlement
from musterd.store.lifecycle import ENDED, AttemptOutcome, JobState
from musterd.store.queue import Counts
from musterd.workers.observer import Ignored

LAGS_KEPT = 30
_how_it_ended = attrgetter("kind", "outcome", "state")


class Metrics:
    """All instruments. The methods of `JobObserver` and the others return at once and never raise.

    `rendering` gives the text to whoever asks over HTTP.
    """

    def __init__(self, settings: MetricsSettings, version: str) -> None:
        # Creation times would double the counters' series.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # untyped there
        self.registry = CollectorRegistry()
        bounds = settings.wait_buckets_seconds, settings.run_buckets_seconds
        self._jobs = JobCounters(settings.kinds_max, *bounds)
        self.registry.register(self._jobs)
        self._lags: deque[float] = deque(maxlen=LAGS_KEPT)
        self._queue = QueueCollector()
        self.registry.register(self._queue)
        ProcessCollector(registry=self.registry)
        self._crew = CrewMetrics(self.registry)
        self._store = StoreMetrics(self.registry)
        self._make_lease_instruments()
        self._make_node_instruments(version)
        self._make_config_instruments()
        self.duties = DutyMetrics(self.registry)
        self.rendering = Rendering(self.render)
        self.store_health = StoreHealthMetrics(self.registry)

    # -- reported by the desk and the workers --------------------------------------------------

    def claimed(self, kind: str, waited_seconds: Sequence[float]) -> None:
        self._jobs.of(kind).waited.observe(waited_seconds)

    def settled(self, settlements: Sequence[Settlement], tenant: str = DEFAULT_TENANT) -> None:
        jobs = self._jobs
        for (kind, outcome, state), alike in groupby(settlements, key=_how_it_ended):
            run_seconds = [settlement.run_seconds for settlement in alike]
            tally, count = jobs.of(kind), len(run_seconds)
            if state in ENDED:
                key = (tenant, state)
                tally.finished[key] = tally.finished.get(key, 0) + count
            elif outcome is AttemptOutcome.RETRYING:
                tally.retries += count
            jobs.ran(tally, outcome).observe(run_seconds)

    def stale_writes(self, count: int) -> None:
        self._stale_writes.inc(count)

    def lease_lost(self, job_id: int, kind: str, attempt: int) -> None:
        """Not counted here: the node that reaps the lease counts it, so that each loss counts
        once.
        """

    def request_ignored(self, ignored: Ignored) -> None:
        """Not counted: the status tells of it as long as it lasts."""

    def reaped(self, reaped: Sequence[Reaped], tenant: str = DEFAULT_TENANT) -> None:
        self._leases_lost.inc(len(reaped))
        for one in reaped:
            if one.state is JobState.QUEUED:
                self._leases_requeued.inc()
            elif one.state in ENDED:
                finished, key = self._jobs.of(one.kind).finished, (tenant, one.state)
                finished[key] = finished.get(key, 0) + 1

    # -- reported by the supervisor ------------------------------------------------------------

    def scaled(self, decision: Decision, tenant: str = DEFAULT_TENANT) -> None:
        """One tick: what was wished, what held it back, which way it went."""
        self._crew.scaled(decision, tenant)

    def crew(self, idle: int, busy: int, retiring: int, tenant: str = DEFAULT_TENANT) -> None:
        self._crew.counted(idle, busy, retiring, tenant)

    def crew_bounds(self, default_count: int, max_count: int) -> None:
        self._crew.bounds(default_count, max_count)

    # -- reported by the engine and the node ----------------------------------------------------

    def store_operation(self, operation: str, seconds: float) -> None:
        self._store.took(operation, seconds)

    def store_error(self, operation: str) -> None:
        self._store.failed(operation)

    def watch_connections(self, ask: Callable[[], ConnectionUse]) -> None:
        """Asked at each scrape, in a thread."""
        self._store.connections.read_from(ask)

    def counts(self, counts: Counts | None, tenant: str = DEFAULT_TENANT) -> None:
        """None = the store does not say."""
        self._queue.by_tenant.pop(tenant, None)
        if counts is not None:
            self._queue.by_tenant[tenant] = counts

    def forget(self, tenant: str) -> None:
        """Drops the series of a tenant that is no longer served."""
        self._jobs.forget(tenant)
        self._queue.by_tenant.pop(tenant, None)
        self._crew.forget(tenant)
        self.store_health.record(None, tenant)

    def webhook(self, result: str) -> None:
        """One try: delivered, failed for good, or to be retried."""
        self._webhooks.labels(result=result).inc()

    def loop_lag(self, seconds: float) -> None:
        """Keeps the largest of the last looks, so that a scrape sees a hiccup that came between
        two of them.
        """
        self._lags.append(seconds)
        self._loop_lag.set(max(self._lags))

    def config(self, generation: int, success: bool, timestamp: float) -> None:
        self._config_generation.set(generation)
        self._config_success.set(int(success))
        self._config_timestamp.set(timestamp)

    def draining(self) -> None:
        """The node takes no more jobs, and will end."""
        self._draining.set(1)

    def render(self) -> bytes:
        """Gives the text format. Takes its time with many series: call it in a thread, and one at
        a time (see `rendering`).
        """
        began = time.perf_counter()
        text = generate_latest(self.registry)
        self._render_seconds.set(time.perf_counter() - began)
        return text

    # -- making ----------------------------------------------------------------------------------

    def _make_lease_instruments(self) -> None:
        self._leases_lost = self._counter("leases_lost", "Leases that expired, ended by this node.")
        self._leases_requeued = self._counter(
            "leases_requeued", "Jobs requeued because their lease expired."
        )
        self._stale_writes = self._counter(
            "stale_writes_rejected", "Settlements rejected because the lease was lost."
        )

    def _make_node_instruments(self, version: str) -> None:
        self._webhooks = self._counter("webhooks", "Attempts to deliver a webhook.", "result")
        for result in ("delivered", "failed", "retried"):
            self._webhooks.labels(result=result)
        self._loop_lag = self._gauge("loop_lag_seconds", "Largest recent delay of the event loop.")
        self._draining = self._gauge("node_draining", "1 while the node drains.")
        self._render_seconds = self._gauge(
            "metrics_render_seconds", "How long the last rendering of the metrics took."
        )
        info = self._gauge("build_info", "Version in use; always 1.", "version", "python")
        info.labels(version=version, python=platform.python_version()).set(1)

    def _make_config_instruments(self) -> None:
        self._config_generation = self._gauge(
            "config_generation", "Number of the configuration in use."
        )
        self._config_success = self._gauge(
            "config_reload_success", "1 if the last reload succeeded."
        )
        self._config_timestamp = self._gauge(
            "config_last_reload_timestamp_seconds", "When a configuration was last applied."
        )

    def _counter(self, name: str, help_text: str, *labels: str) -> Counter:
        return Counter(f"musterd_{name}", help_text, labels, registry=self.registry)

    def _gauge(self, name: str, help_text: str, *labels: str) -> Gauge:
        return Gauge(f"musterd_{name}", help_text, labels, registry=self.registry)


class Rendering:
    """`render` takes its time (half a second with ten thousand series) and holds the interpreter:
    it runs in a thread, one at a time. Who asks while it runs shares the next one with all others
    who do, so that nobody gets numbers that are older than the question.
    """

    def __init__(self, render: Callable[[], bytes]) -> None:
        self._render = render
        self._turn = trio.Lock()
        self._thread = trio.CapacityLimiter(1)
        self._begun = 0  # renderings so far
        self._text = b""
        self._number = 0  # of the rendering that the text is from

    async def text(self) -> bytes:
        """Raises what `render` raises; then whoever waits tries for itself."""
        wanted = self._begun + 1
        async with self._turn:
            if self._number < wanted:
                self._begun += 1
                text = await trio.to_thread.run_sync(self._render, limiter=self._thread)
                self._text, self._number = text, self._begun
            return self._text
