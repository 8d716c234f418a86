"""What Prometheus reads of jobs, crews, duties, queues and stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import TypeVar

from attrs import define, field, frozen
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from musterd.manager.duties.duty import DUTIES
from musterd.store.connections import ConnectionUse
from musterd.store.health import Signs
from musterd.store.history import places
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.queue import Counts

T = TypeVar("T")

OTHER = "other"
OUTCOMES = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED)


class Spread:
    """A histogram: the number of values up to each bound, and their sum."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, values: Sequence[float]) -> None:
        """Values below 0 count as 0: two clocks may differ a little."""
        for place, number in places(self.bounds, values):
            self.counts[place] += number
        self.total += sum(values if min(values) >= 0 else [value for value in values if value > 0])

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulative, as Prometheus wants them; the last is `+Inf`."""
        found: list[tuple[str, float]] = []
        so_far = 0
        for bound, count in zip(self.bounds, self.counts, strict=False):
            so_far += count
            found.append((repr(float(bound)), so_far))
        found.append(("+Inf", so_far + self.counts[-1]))
        return found


@define(eq=False)
class KindCounters:
    """`finished` is by tenant and state."""

    waited: Spread
    retries: int = 0
    promised_seconds: float = 0.0  # how long its jobs may wait; 0 = nothing is promised
    promises_broken: int = 0
    finished: dict[tuple[str, JobState], int] = field(factory=dict[tuple[str, JobState], int])
    ran: dict[AttemptOutcome, Spread] = field(factory=dict[AttemptOutcome, Spread])


@define(eq=False)
class JobCounters(Collector):
    """By kind; kinds beyond `kinds_max` share the label `other`."""

    kinds_max: int
    wait_bounds: Sequence[float]
    run_bounds: Sequence[float]
    kinds: dict[str, KindCounters] = field(factory=dict[str, KindCounters], init=False)

    def of(self, kind: str) -> KindCounters:
        found = self.kinds.get(kind)
        if found is None:
            label = kind if len(self.kinds) < self.kinds_max else OTHER
            found = self.kinds.get(label)
            if found is None:
                found = self.kinds[label] = KindCounters(Spread(self.wait_bounds))
        return found

    def ran(self, tally: KindCounters, outcome: AttemptOutcome) -> Spread:
        found = tally.ran.get(outcome)
        if found is None:
            found = tally.ran[outcome] = Spread(self.run_bounds)
        return found

    def forget(self, tenant: str) -> None:
        for tally in self.kinds.values():
            tally.finished = {key: n for key, n in tally.finished.items() if key[0] != tenant}

    def collect(
        self,
    ) -> Iterable[CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily]:
        # Copied first: this runs in a thread, while the loop goes on counting.
        kinds = list(self.kinds.items())
        claimed = sum(sum(tally.waited.counts) for _, tally in kinds)
        yield CounterMetricFamily(
            "musterd_jobs_claimed", "Jobs claimed by this node.", value=claimed
        )
        finished = CounterMetricFamily(
            "musterd_jobs_finished",
            "Jobs ended by this node.",
            labels=["tenant", "kind", "outcome"],
        )
        retries = CounterMetricFamily(
            "musterd_job_retries", "Attempts that ended in a retry.", labels=["kind"]
        )
        waited = HistogramMetricFamily(
            "musterd_job_wait_seconds", "From a job's due time to its claim.", labels=["kind"]
        )
        ran = HistogramMetricFamily(
            "musterd_job_run_seconds", "How long an attempt ran.", labels=["kind", "outcome"]
        )
        promised = GaugeMetricFamily(
            "musterd_promise_seconds", "How long jobs may wait before they start.", labels=["kind"]
        )
        broken = CounterMetricFamily(
            "musterd_promise_broken", "Jobs claimed later than promised.", labels=["kind"]
        )
        for kind, tally in kinds:
            if tally.promised_seconds:
                promised.add_metric([kind], tally.promised_seconds)
                broken.add_metric([kind], tally.promises_broken)
            ended = dict(tally.finished)
            # All outcomes of a kind begin together, so that its first failure is a rise from 0.
            for tenant in dict.fromkeys(tenant for tenant, _ in ended):
                for state in OUTCOMES:
                    finished.add_metric([tenant, kind, state.value], ended.get((tenant, state), 0))
            retries.add_metric([kind], tally.retries)
            waited.add_metric([kind], tally.waited.buckets(), tally.waited.total)
            for outcome, spread in list(tally.ran.items()):
                ran.add_metric([kind, outcome.value], spread.buckets(), spread.total)
        yield from (finished, retries, waited, ran, promised, broken)


DUTY_SECONDS = (0.01, 0.1, 1.0, 10.0, 60.0, 300.0)


class RunResult(StrEnum):
    """How a run of a duty ended."""

    OK = "ok"
    ERROR = "error"
    GIVEN_UP = "given_up"  # it took longer than it may


@frozen
class Instruments:
    """Makes instruments whose names begin with the program's."""

    registry: CollectorRegistry

    def counter(self, name: str, help_text: str, *labels: str) -> Counter:
        return Counter(f"musterd_{name}", help_text, labels, registry=self.registry)

    def gauge(self, name: str, help_text: str, *labels: str) -> Gauge:
        return Gauge(f"musterd_{name}", help_text, labels, registry=self.registry)


class DutyMetrics:
    """The duties of a node's tenants."""

    def __init__(self, make: Instruments) -> None:
        self._leader = make.gauge(
            "duty_leader", "1 while this node has the duty.", "tenant", "duty"
        )
        self._runs = make.counter("duty_runs", "Runs of a duty.", "tenant", "duty", "result")
        self._last_success = make.gauge(
            "duty_last_success_timestamp_seconds",
            "When a run of the duty last succeeded on this node.",
            "tenant",
            "duty",
        )
        self._run_seconds = Histogram(
            "musterd_duty_run_seconds",
            "How long a run of the duty took, of all tenants.",
            ("duty",),
            registry=make.registry,
            buckets=DUTY_SECONDS,
        )

    def serve(self, tenant: str) -> None:
        """All series of a tenant begin together, so that its first error is a rise from 0."""
        for duty in DUTIES:
            self._leader.labels(tenant, duty)
            for result in RunResult:
                self._runs.labels(tenant, duty, result)

    def forget(self, tenant: str) -> None:
        for metric in (self._leader, self._runs, self._last_success):
            metric.remove_by_labels({"tenant": tenant})

    def holds(self, tenant: str, duty: str, *, held: bool) -> None:
        self._leader.labels(tenant, duty).set(held)

    def ran(self, tenant: str, duty: str, result: RunResult, seconds: float, at: float) -> None:
        self._runs.labels(tenant, duty, result).inc()
        self._run_seconds.labels(duty).observe(seconds)
        if result is RunResult.OK:
            self._last_success.labels(tenant, duty).set(at)


@define(eq=False)
class QueueCollector(Collector):
    """The last counts of each store; unknown ones have no series."""

    by_tenant: dict[str, Counts] = field(factory=dict[str, Counts])
    unknown: dict[str, int] = field(factory=dict[str, int])  # waiting jobs of unknown kinds
    nodes: dict[str, int] = field(factory=dict[str, int])  # that there is work for

    def collect(self) -> Iterable[GaugeMetricFamily | CounterMetricFamily]:
        known = list(self.by_tenant.items())  # copied: this runs in a thread beside the loop
        jobs = GaugeMetricFamily(
            "musterd_jobs", "Jobs in the store, by state.", labels=["tenant", "state"]
        )
        enqueued = CounterMetricFamily(
            "musterd_jobs_enqueued", "Jobs ever enqueued, from any source.", labels=["tenant"]
        )
        for tenant, counts in known:
            for state in JobState:
                jobs.add_metric([tenant, state.value], counts.by_state.get(state, 0))
            enqueued.add_metric([tenant], counts.enqueued_total)

        yield jobs
        yield from _gauges_of(
            known,
            ("queue_depth", "Jobs that are due and claimable.", lambda counts: counts.due),
            ("queue_oldest_age_seconds", "How long the longest-waiting due job has waited.",
                lambda counts: counts.oldest_due_seconds),
            ("queue_paused", "1 while the queue is paused and nothing is claimed.",
                lambda counts: int(counts.paused_at is not None)),
            ("targets_halted", "Targets halted by a paused or failed job; 1,000 at most.",
                lambda counts: counts.targets_halted),
        )  # fmt: skip
        yield enqueued
        yield from _gauges_of(
            list(self.unknown.items()),
            ("jobs_unknown_kind", "Waiting jobs whose kind no live node knows.", float),
        )
        yield from _gauges_of(
            list(self.nodes.items()),
            ("nodes_desired", "Nodes of workers.max_count that there is work for.", float),
        )


class ConnectionCollector(Collector):
    """Asks at each scrape, in any thread."""

    def __init__(self) -> None:
        self._ask: Callable[[], ConnectionUse] = ConnectionUse

    def read_from(self, ask: Callable[[], ConnectionUse]) -> None:
        self._ask = ask

    def collect(self) -> Iterable[GaugeMetricFamily]:
        use, name = self._ask(), "musterd_store_connections"
        connections = GaugeMetricFamily(name, "Connections to the stores.", labels=["state"])
        connections.add_metric(["idle"], use.idle)
        connections.add_metric(["busy"], use.busy)
        yield connections
        limit = "Limit of connections to the stores."
        yield GaugeMetricFamily(f"{name}_max", limit, value=use.most)
        waiting = "Store calls that wait for a connection."
        yield GaugeMetricFamily(f"{name}_waiting", waiting, value=use.waiting)


class StoreHealthMetrics(Collector):
    """Health of the stores whose `metrics` duty this node has. Unknown figures have no series."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._health: dict[str, Signs] = {}
        registry.register(self)

    def record(self, figures: Signs | None, tenant: str) -> None:
        """None = unknown, or another node exports it."""
        self._health.pop(tenant, None)
        if figures is not None:
            self._health[tenant] = figures

    def collect(self) -> Iterable[GaugeMetricFamily]:
        known = list(self._health.items())  # copied: this runs in a thread beside the loop
        yield from _gauges_of(
            known,
            ("store_horizon_age_seconds",
                "Age of the oldest snapshot, which keeps dead rows from being removed.",
                lambda figures: figures.horizon_age_seconds),
            ("store_dead_rows", "Rows of our tables that wait for a vacuum.",
                lambda figures: figures.dead_rows),
            ("store_size_bytes", "Size of our tables and indexes on disk.",
                lambda figures: figures.size_bytes),
        )  # fmt: skip


def _gauges_of(
    known: Iterable[tuple[str, T]], *rows: tuple[str, str, Callable[[T], float | None]]
) -> Iterable[GaugeMetricFamily]:
    """Gauges with one series per tenant that has a value. `rows`: name, help, how to read it."""
    for name, help_text, read in rows:
        family = GaugeMetricFamily(f"musterd_{name}", help_text, labels=["tenant"])
        for tenant, figures in known:
            value = read(figures)
            if value is not None:
                family.add_metric([tenant], value)
        yield family
