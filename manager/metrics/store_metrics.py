"""What Prometheus reads of the way to the stores: calls, failures, connections."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from musterd.store.connections import ConnectionUse

BUCKETS_SECONDS = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)


class StoreMetrics:
    """All stores of a node together; names of operations are those of the engine's methods.

    An operation that is seen for the first time has both series at once, so that its first failure
    is a rise from 0.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "musterd_store_operation_seconds",
            "Time of a store call.",
            ["operation"],
            registry=registry,
            buckets=BUCKETS_SECONDS,
        )
        self._errors = Counter(
            "musterd_store_errors", "Store calls that failed.", ["operation"], registry=registry
        )
        self._known: dict[str, tuple[Histogram, Counter]] = {}
        self.connections = ConnectionCollector()
        registry.register(self.connections)

    def took(self, operation: str, seconds: float) -> None:
        self._of(operation)[0].observe(seconds)

    def failed(self, operation: str) -> None:
        self._of(operation)[1].inc()

    def _of(self, operation: str) -> tuple[Histogram, Counter]:
        found = self._known.get(operation)
        if found is None:
            found = (
                self._seconds.labels(operation=operation),
                self._errors.labels(operation=operation),
            )
            self._known[operation] = found
        return found


class ConnectionCollector(Collector):
    """Asks at each scrape; `ask` may be called in any thread."""

    def __init__(self) -> None:
        self.ask: Callable[[], ConnectionUse] = ConnectionUse

    def collect(self) -> Iterable[GaugeMetricFamily]:
        use = self.ask()
        connections = GaugeMetricFamily(
            "musterd_store_connections", "Connections to the stores.", labels=["state"]
        )
        connections.add_metric(["idle"], use.idle)
        connections.add_metric(["busy"], use.busy)
        most = GaugeMetricFamily(
            "musterd_store_connections_max", "Connections to the stores, at most.", value=use.most
        )
        waiting = GaugeMetricFamily(
            "musterd_store_connections_waiting",
            "Store calls that wait for a connection.",
            value=use.waiting,
        )
        return (connections, most, waiting)
