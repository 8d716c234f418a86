"""What Prometheus reads: all instruments of a node on a registry of its own.

The desk and the workers tell it as their `JobObserver`; the supervisor, the watched store and the
HTTP side have calls of their own. Counting is cheap enough for the hot path: the series of a kind
are looked up once. No label has values that users can multiply without bound: kinds beyond
`metrics.kinds_max` share the label `other`.
"""

from __future__ import annotations

import platform
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import attrgetter

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
from musterd.manager.metrics.crew_metrics import CrewMetrics
from musterd.manager.metrics.duty_metrics import DutyMetrics
from musterd.manager.metrics.job_counters import JobCounters
from musterd.manager.metrics.queue_metrics import QueueCollector
from musterd.manager.metrics.rendering import Rendering
from musterd.manager.metrics.store_metrics import StoreMetrics
from musterd.manager.metrics.vital_metrics import VitalMetrics
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
        self.vitals = VitalMetrics(self.registry)

    # -- told by the desk and the workers -------------------------------------------------------

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

    # -- told by the supervisor -----------------------------------------------------------------

    def scaled(self, decision: Decision, tenant: str = DEFAULT_TENANT) -> None:
        """One tick: what was wished, what held it back, which way it went."""
        self._crew.scaled(decision, tenant)

    def crew(self, idle: int, busy: int, retiring: int, tenant: str = DEFAULT_TENANT) -> None:
        self._crew.counted(idle, busy, retiring, tenant)

    def crew_bounds(self, default_count: int, max_count: int) -> None:
        self._crew.bounds(default_count, max_count)

    # -- told by the store's watcher and the node -----------------------------------------------

    def store_operation(self, operation: str, seconds: float) -> None:
        self._store.took(operation, seconds)

    def store_error(self, operation: str) -> None:
        self._store.failed(operation)

    def watch_connections(self, ask: Callable[[], ConnectionUse]) -> None:
        """Asked at each scrape, in a thread."""
        self._store.connections.ask = ask

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
        self.vitals.tell(None, tenant)

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
        self._leases_lost = self._counter("leases_lost", "Leases that ran out, ended by this node.")
        self._leases_requeued = self._counter(
            "leases_requeued", "Jobs queued again since their lease ran out."
        )
        self._stale_writes = self._counter(
            "stale_writes_rejected", "Settlements refused since the lease had been lost."
        )

    def _make_node_instruments(self, version: str) -> None:
        self._webhooks = self._counter("webhooks", "Tries to tell of a job's end.", "result")
        for result in ("delivered", "failed", "retried"):
            self._webhooks.labels(result=result)
        self._loop_lag = self._gauge("loop_lag_seconds", "How late the loop woke at most, of late.")
        self._draining = self._gauge("node_draining", "1 while the node waits for its last jobs.")
        self._render_seconds = self._gauge(
            "metrics_render_seconds", "How long it took to write the metrics the last time."
        )
        info = self._gauge("build_info", "What is running; always 1.", "version", "python")
        info.labels(version=version, python=platform.python_version()).set(1)

    def _make_config_instruments(self) -> None:
        self._config_generation = self._gauge("config_generation", "Which configuration is in use.")
        self._config_success = self._gauge(
            "config_reload_success", "1 if the last configuration offered was taken."
        )
        self._config_timestamp = self._gauge(
            "config_last_reload_timestamp_seconds", "When a configuration was last taken."
        )

    def _counter(self, name: str, help_text: str, *labels: str) -> Counter:
        return Counter(f"musterd_{name}", help_text, labels, registry=self.registry)

    def _gauge(self, name: str, help_text: str, *labels: str) -> Gauge:
        return Gauge(f"musterd_{name}", help_text, labels, registry=self.registry)
