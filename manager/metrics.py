"""What Prometheus reads: all instruments of a node on a registry of its own.

The desk and the workers tell it as their `Listener`; the supervisor, the watched store and the
HTTP side have calls of their own. Counting is cheap enough for the hot path: the series of a kind
are looked up once. No label has values that users can multiply without bound: kinds beyond
`metrics.kinds_max` share the label `other`.
"""

from __future__ import annotations

import platform
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress

from attrs import define, evolve, field
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from musterd.config.settings import Metrics as MetricsSettings
from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.manager.duty_metrics import DutyMetrics
from musterd.manager.tallies import JobTallies
from musterd.manager.view import Decision
from musterd.store.job import AttemptOutcome, Counts, JobState, Reaped
from musterd.store.lifecycle import ENDED
from musterd.workers.listener import Ignored, Report

LAGS_KEPT = 30
CREW_STATES = ("idle", "busy", "retiring")
STORE_BUCKETS_SECONDS = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)


@define(eq=False)
class _QueueCollector(Collector):
    """The gauges of the queues: what each store counted last, nothing before it has been asked."""

    by_tenant: dict[str, Counts] = field(factory=dict[str, Counts])

    def collect(self) -> Iterable[GaugeMetricFamily | CounterMetricFamily]:
        jobs = GaugeMetricFamily(
            "musterd_jobs", "Jobs in the store, by state.", labels=["tenant", "state"]
        )
        depth = GaugeMetricFamily(
            "musterd_queue_depth", "Jobs that are due and claimable.", labels=["tenant"]
        )
        oldest = GaugeMetricFamily(
            "musterd_queue_oldest_age_seconds",
            "How long the longest-waiting due job has waited.",
            labels=["tenant"],
        )
        enqueued = CounterMetricFamily(
            "musterd_jobs_enqueued", "Jobs ever enqueued, from any source.", labels=["tenant"]
        )
        # Copied first: this runs in a thread, while the loop goes on.
        for tenant, counts in list(self.by_tenant.items()):
            for state in JobState:
                jobs.add_metric([tenant, state.value], counts.by_state.get(state, 0))
            depth.add_metric([tenant], counts.due)
            oldest.add_metric([tenant], counts.oldest_due_seconds)
            enqueued.add_metric([tenant], counts.enqueued_total)
        return (jobs, depth, oldest, enqueued)


class Metrics:
    """All instruments. The methods of `Listener` and the others return at once and never raise.

    What the gauges of the crew say without naming a tenant is the sum over all of them.
    """

    def __init__(self, settings: MetricsSettings, version: str) -> None:
        # Creation times would double the counters' series.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # untyped there
        self.registry = CollectorRegistry()
        bounds = settings.wait_buckets_seconds, settings.run_buckets_seconds
        self._jobs = JobTallies(settings.kinds_max, *bounds)
        self.registry.register(self._jobs)
        self._lags: deque[float] = deque(maxlen=LAGS_KEPT)
        self._queue = _QueueCollector()
        self._wishes: dict[str, Decision] = {}  # the last of each tenant
        self.registry.register(self._queue)
        ProcessCollector(registry=self.registry)
        self._make_lease_instruments()
        self._make_crew_instruments()
        self._make_node_instruments(version)
        self.duties = DutyMetrics(self.registry)

    # -- told by the desk and the workers -------------------------------------------------------

    def claimed(self, kind: str, waited_seconds: float) -> None:
        self._jobs.of(kind).waited.observe(waited_seconds)

    def settled(self, reports: Sequence[Report], tenant: str = DEFAULT_TENANT) -> None:
        jobs = self._jobs
        for report in reports:
            tally = jobs.of(report.kind)
            if report.state in ENDED:
                key = (tenant, report.state)
                tally.finished[key] = tally.finished.get(key, 0) + 1
            elif report.outcome is AttemptOutcome.RETRYING:
                tally.retries += 1
            jobs.ran(tally, report.outcome).observe(report.run_seconds)

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
        before = self._wishes.get(tenant)
        if decision.raw_wish is None and before is not None:
            decision = evolve(decision, raw_wish=before.raw_wish)  # the last one known
        self._wishes[tenant] = decision
        self._sum_up_wishes()
        self._decisions.labels(direction=_direction(decision)).inc()
        if decision.limited_by is not None:
            self._limited.labels(reason=decision.limited_by).inc()

    def crew(self, idle: int, busy: int, retiring: int, tenant: str = DEFAULT_TENANT) -> None:
        for state, count in zip(CREW_STATES, (idle, busy, retiring), strict=True):
            self._workers.labels(tenant=tenant, state=state).set(count)

    def crew_bounds(self, default_count: int, max_count: int) -> None:
        self._workers_min.set(default_count)
        self._workers_max.set(max_count)

    # -- told by the store's watcher and the node -----------------------------------------------

    def store_operation(self, operation: str, seconds: float) -> None:
        self._store_seconds.labels(operation=operation).observe(seconds)

    def store_error(self, operation: str) -> None:
        self._store_errors.labels(operation=operation).inc()

    def counts(self, counts: Counts | None, tenant: str = DEFAULT_TENANT) -> None:
        """None = the store does not say."""
        self._queue.by_tenant.pop(tenant, None)
        if counts is not None:
            self._queue.by_tenant[tenant] = counts

    def forget(self, tenant: str) -> None:
        """Drops the series of a tenant that is no longer served."""
        self._jobs.forget(tenant)
        self._queue.by_tenant.pop(tenant, None)
        self._wishes.pop(tenant, None)
        self._sum_up_wishes()
        for state in CREW_STATES:
            with suppress(KeyError):  # its crew was never told of
                self._workers.remove(tenant, state)

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

    def render(self) -> bytes:
        """Gives the text format. Takes its time with many series: call it in a thread."""
        return generate_latest(self.registry)

    def _sum_up_wishes(self) -> None:
        self._desired.set(sum(one.desired for one in self._wishes.values()))
        raw = [one.raw_wish for one in self._wishes.values() if one.raw_wish is not None]
        if raw:
            self._desired_raw.set(sum(raw))

    # -- making ----------------------------------------------------------------------------------

    def _make_lease_instruments(self) -> None:
        self._leases_lost = self._counter("leases_lost", "Leases that ran out, ended by this node.")
        self._leases_requeued = self._counter(
            "leases_requeued", "Jobs queued again since their lease ran out."
        )
        self._stale_writes = self._counter(
            "stale_writes_rejected", "Settlements refused since the lease had been lost."
        )

    def _make_crew_instruments(self) -> None:
        self._workers = self._gauge("workers", "The crew, by what it does.", "tenant", "state")
        self._workers_min = self._gauge("workers_min", "The least crew: workers.default_count.")
        self._workers_max = self._gauge("workers_max", "The largest crew: workers.max_count.")
        self._desired = self._gauge("workers_desired", "The crew decided on, within all limits.")
        self._desired_raw = self._gauge("workers_desired_raw", "The crew wished for, unlimited.")
        self._decisions = self._counter("scale_decisions", "Scaling decisions.", "direction")
        self._limited = self._counter("scale_limited", "Decisions held back, by what.", "reason")
        for direction in ("up", "down", "hold"):
            self._decisions.labels(direction=direction)

    def _make_node_instruments(self, version: str) -> None:
        self._store_seconds = self._histogram(
            "store_operation_seconds", "Time of a store call.", STORE_BUCKETS_SECONDS, "operation"
        )
        self._store_errors = self._counter("store_errors", "Store calls that failed.", "operation")
        self._webhooks = self._counter("webhooks", "Tries to tell of a job's end.", "result")
        for result in ("delivered", "failed", "retried"):
            self._webhooks.labels(result=result)
        self._loop_lag = self._gauge("loop_lag_seconds", "How late the loop woke at most, of late.")
        self._config_generation = self._gauge("config_generation", "Which configuration is in use.")
        self._config_success = self._gauge(
            "config_reload_success", "1 if the last configuration offered was taken."
        )
        self._config_timestamp = self._gauge(
            "config_last_reload_timestamp_seconds", "When a configuration was last taken."
        )
        info = self._gauge("build_info", "What is running; always 1.", "version", "python")
        info.labels(version=version, python=platform.python_version()).set(1)

    def _counter(self, name: str, help_text: str, *labels: str) -> Counter:
        return Counter(f"musterd_{name}", help_text, labels, registry=self.registry)

    def _gauge(self, name: str, help_text: str, *labels: str) -> Gauge:
        return Gauge(f"musterd_{name}", help_text, labels, registry=self.registry)

    def _histogram(
        self, name: str, help_text: str, buckets: Sequence[float], *labels: str
    ) -> Histogram:
        return Histogram(
            f"musterd_{name}", help_text, labels, registry=self.registry, buckets=buckets
        )


def _direction(decision: Decision) -> str:
    if decision.hired or decision.taken_back:
        return "up"
    return "down" if decision.retired else "hold"
