"""The vitals as metrics: asked seldom, and gone where they are not known."""

import trio
from prometheus_client import CollectorRegistry, generate_latest

from musterd.manager.metrics.vital_metrics import (
    FRESH_SECONDS,
    LIMIT_SECONDS,
    VitalMetrics,
    VitalsCache,
)
from musterd.store.errors import StoreUnavailable
from musterd.store.vitals import Signs

SIGNS = Signs(12.5, 100, 8192)


def samples(registry: CollectorRegistry) -> set[str]:
    lines = generate_latest(registry).decode().splitlines()
    return {line for line in lines if not line.startswith("#")}


def test_each_sign_is_told_of_each_tenant() -> None:
    registry = CollectorRegistry()
    metrics = VitalMetrics(registry)
    assert samples(registry) == set()
    metrics.tell(SIGNS, "default")
    metrics.tell(Signs(None, None, 4096), "acme")
    assert samples(registry) == {
        'musterd_store_horizon_age_seconds{tenant="default"} 12.5',
        'musterd_store_dead_rows{tenant="default"} 100.0',
        'musterd_store_size_bytes{tenant="default"} 8192.0',
        'musterd_store_size_bytes{tenant="acme"} 4096.0',
    }
    metrics.tell(None, "default")
    assert samples(registry) == {'musterd_store_size_bytes{tenant="acme"} 4096.0'}


async def test_a_store_is_asked_seldom(autojump_clock: trio.testing.MockClock) -> None:
    asked: list[float] = []
    heard: list[Signs | None] = []

    async def ask() -> Signs:
        asked.append(trio.current_time())
        await trio.sleep(0.1)
        return SIGNS

    cache = VitalsCache(ask, heard.append)
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(cache.refresh)
    await trio.sleep(FRESH_SECONDS / 2)
    await cache.refresh()
    assert (len(asked), heard) == (1, [SIGNS])
    await trio.sleep(FRESH_SECONDS / 2)
    await cache.refresh()
    assert len(asked) == 2
    cache.forget()
    await cache.refresh()
    assert len(asked) == 3


async def test_what_is_not_known_is_told_too(autojump_clock: trio.testing.MockClock) -> None:
    heard: list[Signs | None] = []

    async def slow() -> Signs:
        await trio.sleep_forever()
        raise AssertionError

    async def away() -> Signs:
        await trio.lowlevel.checkpoint()
        raise StoreUnavailable("away", "unreachable")

    started = trio.current_time()
    await VitalsCache(slow, heard.append).refresh()
    assert trio.current_time() - started == LIMIT_SECONDS
    await VitalsCache(away, heard.append).refresh()
    assert heard == [None, None]
