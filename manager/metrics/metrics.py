"""What Prometheus reads: all instruments of a node, on a registry of its own.

A tenancy's reporters, its supervisor, its engine and the HTTP API call here. Counting is cheap: a
kind's series are looked up once. No label grows without bound: kinds beyond `metrics.kinds_max`
share the label `other`.
"""

from __future__ import annotations

import logging
import platform
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import groupby
from math import ceil
from operator import attrgetter
from typing import Any

import trio
from attrs import evolve
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from musterd.config.settings import Metrics as MetricsSettings
from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.manager.log import event
from musterd.manager.metrics.instruments import (
    ConnectionCollector,
    DutyMetrics,
    Instruments,
    JobCounters,
    QueueCollector,
    StoreHealthMetrics,
)
from musterd.manager.node.status import Decision
from musterd.store.connections import ConnectionUse
from musterd.store.engine import Engine
from musterd.store.errors import StoreError, StoreMisconfigured, StoreUnavailable
from musterd.store.leases import Reaped, Settlement, Successes
from musterd.store.lifecycle import ENDED, AttemptOutcome, JobState
from musterd.store.queue import Counts
from musterd.store.threads import in_thread
from musterd.store.wrapped import WrappedEngine, wrapped
from musterd.workers.outcome import PLACES, Where

LAGS_KEPT = 30
CREW_STATES = ("idle", "busy", "retiring")
BUCKETS_SECONDS = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
_how_it_ended = attrgetter("kind", "outcome", "state")


class Metrics:
    """The methods of observers return at once and never raise. `rendering` makes the text."""

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
        self._connections = ConnectionCollector()
        self.registry.register(self._connections)
        self._operations: dict[str, tuple[Histogram, Counter]] = {}
        self._wishes: dict[str, Decision] = {}  # the last decision of each tenant
        make = Instruments(self.registry)
        self._make_crew_instruments(make)
        self._make_store_instruments(make)
        self._make_node_instruments(make, version)
        self.duties = DutyMetrics(make)
        self.rendering = Rendering(self.render)
        self.store_health = StoreHealthMetrics(self.registry)

    # -- reported by the desk and the workers --------------------------------------------------

    def claimed(self, kind: str, waited_seconds: Sequence[float]) -> None:
        self._jobs.of(kind).waited.observe(waited_seconds)

    def promised(self, kind: str, waited_seconds: Sequence[float], promised_seconds: float) -> None:
        """How long claimed jobs were allowed to wait; 0 = nothing is promised."""
        tally = self._jobs.of(kind)
        tally.promised_seconds = promised_seconds
        if promised_seconds and max(waited_seconds) > promised_seconds:
            tally.promises_broken += sum(waited > promised_seconds for waited in waited_seconds)

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

    def succeeded(self, successes: Successes, tenant: str = DEFAULT_TENANT) -> None:
        key = tenant, JobState.SUCCEEDED
        for kind, run_seconds in successes.run_seconds_by_kind().items():
            tally = self._jobs.of(kind)
            tally.finished[key] = tally.finished.get(key, 0) + len(run_seconds)
            self._jobs.ran(tally, AttemptOutcome.SUCCEEDED).observe(run_seconds)

    def stale_writes(self, count: int) -> None:
        self._stale_writes.inc(count)

    def contained(self, where: Where) -> None:
        """A fault that was kept from going further."""
        self._contained.labels(where=where).inc()

    def reaped(self, reaped: Sequence[Reaped], tenant: str = DEFAULT_TENANT) -> None:
        """Only the node that reaps a lease counts its loss, so that each counts once."""
        self._leases_lost.inc(len(reaped))
        for one in reaped:
            if one.state is JobState.QUEUED:
                self._leases_requeued.inc()
            elif one.state in ENDED:
                finished, key = self._jobs.of(one.kind).finished, (tenant, one.state)
                finished[key] = finished.get(key, 0) + 1

    # -- reported by the supervisor ------------------------------------------------------------

    def scaled(self, decision: Decision, tenant: str = DEFAULT_TENANT) -> None:
        """One tick. Series without a tenant are sums over all tenants."""
        before = self._wishes.get(tenant)
        if decision.raw_wish is None and before is not None:
            decision = evolve(decision, raw_wish=before.raw_wish)  # the last one known
        self._wishes[tenant] = decision
        self._sum_up_wishes()
        self._decisions.labels(direction=_direction(decision)).inc()
        if decision.slack_seconds is None:
            self._slack.remove_by_labels({"tenant": tenant})
        else:
            self._slack.labels(tenant=tenant).set(decision.slack_seconds)
        if decision.candidate is None:
            self._desired_candidate.remove_by_labels({"tenant": tenant})
        else:
            self._desired_candidate.labels(tenant=tenant).set(
                float(str(decision.candidate["desired"]))
            )
        if decision.limited_by is not None:
            # The names of hours are no label: a reload may bring others each time.
            self._limited.labels(reason=decision.limited_by.partition(":")[0]).inc()

    def crew(self, idle: int, busy: int, retiring: int, tenant: str = DEFAULT_TENANT) -> None:
        for state, count in zip(CREW_STATES, (idle, busy, retiring), strict=True):
            self._workers.labels(tenant=tenant, state=state).set(count)

    def crew_bounds(self, default_count: int, max_count: int) -> None:
        self._workers_min.set(default_count)
        self._workers_max.set(max_count)

    def _sum_up_wishes(self) -> None:
        self._desired.set(sum(one.desired for one in self._wishes.values()))
        raw = [one.raw_wish for one in self._wishes.values() if one.raw_wish is not None]
        if raw:
            self._desired_raw.set(sum(raw))

    # -- reported by the engine and the node ----------------------------------------------------

    def store_operation(self, operation: str, seconds: float) -> None:
        """`operation` is the name of an engine's method."""
        self._of_operation(operation)[0].observe(seconds)

    def store_error(self, operation: str) -> None:
        self._of_operation(operation)[1].inc()

    def _of_operation(self, operation: str) -> tuple[Histogram, Counter]:
        """Both series together, so that an operation's first failure is a rise from 0."""
        found = self._operations.get(operation)
        if found is None:
            labels = {"operation": operation}
            found = self._store_seconds.labels(**labels), self._store_errors.labels(**labels)
            self._operations[operation] = found
        return found

    def watch_connections(self, ask: Callable[[], ConnectionUse]) -> None:
        """`ask` is called at each scrape, in a thread."""
        self._connections.read_from(ask)

    def counts(self, counts: Counts | None, tenant: str = DEFAULT_TENANT) -> None:
        """None = unknown."""
        self._queue.by_tenant.pop(tenant, None)
        if counts is not None:
            self._queue.by_tenant[tenant] = counts

    def unknown_kinds(self, number: int | None, tenant: str = DEFAULT_TENANT) -> None:
        """None = unknown."""
        self._queue.unknown.pop(tenant, None)
        if number is not None:
            self._queue.unknown[tenant] = number

    def nodes_desired(self, number: int | None, tenant: str = DEFAULT_TENANT) -> None:
        """None = unknown."""
        self._queue.nodes.pop(tenant, None)
        if number is not None:
            self._queue.nodes[tenant] = number

    def model_error(self, ratio: float | None, tenant: str = DEFAULT_TENANT) -> None:
        """In the last hour; None = unknown."""
        if ratio is None:
            self._model_error.remove_by_labels({"tenant": tenant})
        else:
            self._model_error.labels(tenant=tenant).set(ratio)

    def forget(self, tenant: str) -> None:
        """Drops the series of a tenant that is no longer served."""
        self._jobs.forget(tenant)
        self.counts(None, tenant)
        self.unknown_kinds(None, tenant)
        self.nodes_desired(None, tenant)
        self.model_error(None, tenant)
        self._wishes.pop(tenant, None)
        self._slack.remove_by_labels({"tenant": tenant})
        self._desired_candidate.remove_by_labels({"tenant": tenant})
        self._sum_up_wishes()
        for state in CREW_STATES:
            with suppress(KeyError):  # its crew was never counted
                self._workers.remove(tenant, state)
        self.store_health.record(None, tenant)
        self.duties.forget(tenant)

    def webhook(self, result: str) -> None:
        """One attempt: delivered, failed for good, or to be retried."""
        self._webhooks.labels(result=result).inc()

    def loop_lag(self, seconds: float) -> None:
        """Keeps the largest of the latest values, so that no scrape misses a hiccup."""
        self._lags.append(seconds)
        self._loop_lag.set(max(self._lags))

    def config(self, generation: int, success: bool, timestamp: float) -> None:
        self._config_generation.set(generation)
        self._config_success.set(int(success))
        self._config_timestamp.set(timestamp)

    def draining(self) -> None:
        self._draining.set(1)

    def render(self) -> bytes:
        """The text format. Slow with many series: call it through `Rendering`."""
        began = time.perf_counter()
        text = generate_latest(self.registry)
        self._render_seconds.set(time.perf_counter() - began)
        return text

    # -- making ----------------------------------------------------------------------------------

    def _make_crew_instruments(self, make: Instruments) -> None:
        self._workers = make.gauge("workers", "Workers, by state.", "tenant", "state")
        self._workers_min = make.gauge("workers_min", "The smallest crew: workers.default_count.")
        self._workers_max = make.gauge("workers_max", "The largest crew: workers.max_count.")
        self._desired = make.gauge("workers_desired", "Workers wanted, within all limits.")
        self._desired_raw = make.gauge("workers_desired_raw", "Workers wanted, before limits.")
        self._desired_candidate = make.gauge(
            "workers_desired_candidate", "Workers that [scaling.candidate] would have.", "tenant"
        )
        self._slack = make.gauge(
            "promise_slack_seconds",
            "What is left of the promise of the worst waiting job; below 0 it is broken.",
            "tenant",
        )
        self._model_error = make.gauge(
            "model_error_ratio",
            "By how much of the real p95 of waits the model's was off in the last hour.",
            "tenant",
        )
        self._decisions = make.counter("scale_decisions", "Scaling decisions.", "direction")
        for direction in ("up", "down", "hold"):
            self._decisions.labels(direction=direction)
        self._limited = make.counter(
            "scale_limited", "Scaling decisions held back, by the limit.", "reason"
        )

    def _make_store_instruments(self, make: Instruments) -> None:
        self._store_seconds = Histogram(
            "musterd_store_operation_seconds", "Duration of a store call.", ["operation"],
            registry=self.registry, buckets=BUCKETS_SECONDS,
        )  # fmt: skip
        self._store_errors = make.counter("store_errors", "Store calls that failed.", "operation")
        self._leases_lost = make.counter("leases_lost", "Leases that expired, ended by this node.")
        self._leases_requeued = make.counter(
            "leases_requeued", "Jobs requeued because their lease expired."
        )
        self._stale_writes = make.counter(
            "stale_writes_rejected", "Settlements rejected because the lease was lost."
        )

    def _make_node_instruments(self, make: Instruments, version: str) -> None:
        self._webhooks = make.counter("webhooks", "Attempts to deliver a webhook.", "result")
        for result in ("delivered", "failed", "retried"):
            self._webhooks.labels(result=result)
        self._contained = make.counter(
            "faults_contained", "Faults that were kept from going further.", "where"
        )
        for where in PLACES:
            self._contained.labels(where=where)
        self._loop_lag = make.gauge("loop_lag_seconds", "Largest recent delay of the event loop.")
        self._draining = make.gauge("node_draining", "1 while the node drains.")
        self._render_seconds = make.gauge(
            "metrics_render_seconds", "How long the last rendering of the metrics took."
        )
        info = make.gauge("build_info", "Version in use; always 1.", "version", "python")
        info.labels(version=version, python=platform.python_version()).set(1)
        self._config_generation = make.gauge(
            "config_generation", "Number of the configuration in use."
        )
        self._config_success = make.gauge(
            "config_reload_success", "1 if the last reload succeeded."
        )
        self._config_timestamp = make.gauge(
            "config_last_reload_timestamp_seconds", "When a configuration was last applied."
        )


def _direction(decision: Decision) -> str:
    if decision.hired or decision.taken_back:
        return "up"
    return "down" if decision.retired else "hold"


class Rendering:
    """Runs `render` in a thread, one call at a time: with ten thousand series it takes half a
    second and holds the interpreter. Callers that arrive meanwhile share the next call, so that
    nobody gets figures older than the request.
    """

    def __init__(self, render: Callable[[], bytes]) -> None:
        self._render = render
        self._turn = trio.Lock()
        self._thread = trio.CapacityLimiter(1)
        self._begun = 0  # renderings so far
        self._text = b""
        self._number = 0  # of the rendering that the text is from

    async def text(self) -> bytes:
        """Raises what `render` raises; each waiting caller then tries for itself."""
        wanted = self._begun + 1
        async with self._turn:
            if self._number < wanted:
                self._begun += 1
                text = await in_thread(self._render, limiter=self._thread)
                self._text, self._number = text, self._begun
            return self._text


SETTLED_SECONDS = 5.0  # after so long without a failure, any success ends the trouble
CLAIM = "exchange"
CLAIMS_KEPT, CLAIMS_MIN = 500, 5
CLAIM_SECONDS = 30.0
MISCONFIGURED = "misconfigured"
UNCLAIMABLE = "unclaimable"


class InstrumentedEngine(WrappedEngine):
    """Measures another `Engine`.

    `trouble` says what is wrong with the store (see `StoreUnavailable`), or None. It ends when a
    call that had failed succeeds: successful reads say nothing about a full disk. `local_clock`
    counts seconds; `tenant` is named in logs.
    """

    def __init__(
        self,
        engine: Engine,
        metrics: Metrics,
        log: logging.Logger,
        local_clock: Callable[[], float],
        tenant: str = "",
    ) -> None:
        super().__init__(engine, self._measured)
        # A statistic that cannot be read says nothing about the queue: that is no trouble.
        self.health = wrapped(engine.health, "health", self._counted)
        self._metrics = metrics
        self._log = log
        self._local_clock = local_clock
        self._named = {"tenant": tenant} if tenant else {}
        self._claims: deque[tuple[float, float]] = deque(maxlen=CLAIMS_KEPT)  # when, how long
        self._failing: set[str] = set()
        self._failed_local = 0.0
        self.trouble: str | None = None
        self.trouble_since_local: float | None = None
        self.last_message: str | None = None

    def trouble_seconds(self) -> float:
        """0 = there is no trouble."""
        if self.trouble_since_local is None:
            return 0.0
        return self._local_clock() - self.trouble_since_local

    def claim_p99_seconds(self) -> float | None:
        """Of the exchanges of the last half minute; None = too few to say."""
        since = self._local_clock() - CLAIM_SECONDS
        took = sorted(seconds for at, seconds in self._claims if at >= since)
        return took[ceil(len(took) * 0.99) - 1] if len(took) >= CLAIMS_MIN else None

    def cannot_give_out(self, message: str) -> None:
        """A row stands in the way of all claims. It ends when none has failed for a while."""
        self._failed("claim", UNCLAIMABLE, message)

    async def _measured(self, operation: str, call: Callable[[], Awaitable[Any]]) -> Any:
        if operation == "wait_for_hint":
            # A lost source of hints is no trouble, because polling goes on; nor is a wait timed.
            return await self._errors_counted(operation, call)
        try:
            found = await self._timed(operation, call)
        except StoreUnavailable as error:
            self._failed(operation, error.trouble, str(error))
            raise
        except StoreMisconfigured as error:
            self._failed(operation, MISCONFIGURED, str(error))
            raise
        if self.trouble is not None:
            self._went_well(operation)
        return found

    async def _counted(self, operation: str, call: Callable[[], Awaitable[Any]]) -> Any:
        return await self._errors_counted(operation, lambda: self._timed(operation, call))

    async def _errors_counted(self, operation: str, call: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await call()
        except StoreError:
            self._metrics.store_error(operation)
            raise

    async def _timed(self, operation: str, call: Callable[[], Awaitable[Any]]) -> Any:
        started = self._local_clock()
        found = await call()
        ended = self._local_clock()
        self._metrics.store_operation(operation, ended - started)
        if operation == CLAIM:
            self._claims.append((ended, ended - started))
        return found

    def _failed(self, operation: str, trouble: str, message: str) -> None:
        self._metrics.store_error(operation)
        self._failing.add(operation)
        self._failed_local = self._local_clock()
        is_new = trouble != self.trouble
        self.trouble = trouble
        self.last_message = message
        if self.trouble_since_local is None:
            self.trouble_since_local = self._failed_local
        if is_new:
            fields = {"trouble": trouble, "operation": operation, "message": message}
            event(self._log, logging.WARNING, "store in trouble", **fields, **self._named)

    def _went_well(self, operation: str) -> None:
        is_calm = self._local_clock() - self._failed_local >= SETTLED_SECONDS
        if operation not in self._failing and not is_calm:
            return
        fields = {"trouble": self.trouble, "seconds": round(self.trouble_seconds(), 1)}
        event(self._log, logging.INFO, "store recovered", **fields, **self._named)
        self._failing.clear()
        self.trouble = self.trouble_since_local = self.last_message = None
