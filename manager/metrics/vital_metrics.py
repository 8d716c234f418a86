"""What Prometheus reads of the stores' vitals, and how they are asked for: seldom, and only while
somebody scrapes.
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from musterd.store.vitals import Signs

FRESH_SECONDS = 30.0
LIMIT_SECONDS = 2.0


class VitalMetrics(Collector):
    """The last signs of each tenant whose `metrics` duty this node has. What is not known is not
    there.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._signs: dict[str, Signs] = {}
        registry.register(self)

    def tell(self, signs: Signs | None, tenant: str) -> None:
        """None = the store does not say, or it is no longer ours to tell."""
        self._signs.pop(tenant, None)
        if signs is not None:
            self._signs[tenant] = signs

    def collect(self) -> Iterable[GaugeMetricFamily]:
        told = list(self._signs.items())  # copied: this runs in a thread, while the loop goes on
        horizon = [(name, signs.horizon_age_seconds) for name, signs in told]
        dead = [(name, signs.dead_rows) for name, signs in told]
        size = [(name, signs.size_bytes) for name, signs in told]
        yield _gauge("horizon_age_seconds", "How far back dead rows are kept.", horizon)
        yield _gauge("dead_rows", "Rows of our tables that wait for a vacuum.", dead)
        yield _gauge("size_bytes", "What our tables and indexes take on disk.", size)


def _gauge(
    name: str, help_text: str, values: Iterable[tuple[str, float | None]]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"musterd_store_{name}", help_text, labels=["tenant"])
    for tenant, value in values:
        if value is not None:
            family.add_metric([tenant], value)
    return family
