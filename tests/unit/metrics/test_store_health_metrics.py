"""The health of stores as metrics: gone where it is not known."""

from prometheus_client import CollectorRegistry, generate_latest

from musterd.manager.metrics.instruments import StoreHealthMetrics
from musterd.store.health import Signs

SIGNS = Signs(12.5, 100, 8192)


def samples(registry: CollectorRegistry) -> set[str]:
    lines = generate_latest(registry).decode().splitlines()
    return {line for line in lines if not line.startswith("#")}


def test_each_sign_is_told_of_each_tenant() -> None:
    registry = CollectorRegistry()
    metrics = StoreHealthMetrics(registry)
    assert samples(registry) == set()
    metrics.record(SIGNS, "default")
    metrics.record(Signs(None, None, 4096), "acme")
    assert samples(registry) == {
        'musterd_store_horizon_age_seconds{tenant="default"} 12.5',
        'musterd_store_dead_rows{tenant="default"} 100.0',
        'musterd_store_size_bytes{tenant="default"} 8192.0',
        'musterd_store_size_bytes{tenant="acme"} 4096.0',
    }
    metrics.record(None, "default")
    assert samples(registry) == {'musterd_store_size_bytes{tenant="acme"} 4096.0'}
