"""What a store says is asked for seldom, and shared."""

import trio

from musterd.manager.tenancy.tenant_duties import HEALTH_FRESH_SECONDS, LIMIT_SECONDS, StoreCache
from musterd.store.health import Signs
from tests.support.silent_store import gone, hanging

SIGNS = Signs(12.5, 100, 8192)


async def test_a_store_is_asked_seldom(autojump_clock: trio.testing.MockClock) -> None:
    asked: list[float] = []
    heard: list[Signs | None] = []

    async def ask() -> Signs:
        asked.append(trio.current_time())
        await trio.sleep(0.1)
        return SIGNS

    cache = StoreCache(ask, HEALTH_FRESH_SECONDS, heard.append)
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(cache.refresh)
    await trio.sleep(HEALTH_FRESH_SECONDS / 2)
    await cache.refresh()
    assert (len(asked), heard) == (1, [SIGNS])
    await trio.sleep(HEALTH_FRESH_SECONDS / 2 + 0.1)
    assert await cache.refresh() == 1
    assert len(asked) == 2
    cache.forget()
    await cache.refresh()
    assert len(asked) == 3


async def test_what_is_not_known_is_told_too(autojump_clock: trio.testing.MockClock) -> None:
    heard: list[Signs | None] = []

    started = trio.current_time()
    await StoreCache(hanging, HEALTH_FRESH_SECONDS, heard.append).refresh()
    assert trio.current_time() - started == LIMIT_SECONDS
    await StoreCache(gone, HEALTH_FRESH_SECONDS, heard.append).refresh()
    assert heard == [None, None]
