"""A crew without workers: it decides as soon as there is something to do."""

from __future__ import annotations

import pytest
import trio

from tests.support.stage import Stage, until


async def test_an_empty_crew_hires_at_the_hint(stage: Stage) -> None:
    node = await stage.start(workers__default_count=0, workers__scale_interval_ms=60_000)
    await trio.sleep(7)
    await stage.put("report", 3)
    await stage.all_ended(within_seconds=0.5)
    assert [one.hired for one in node.journal] == [3]


async def test_hints_that_find_nothing_to_do_cost_one_look_a_tick(stage: Stage) -> None:
    node = await stage.start(workers__default_count=0)
    await stage.store.engine.queue.pause(by="operator")
    looks = len(node.journal)
    for _ in range(100):
        await stage.put("report")
        await trio.sleep(0.1)
    assert len(node.journal) - looks <= 2 * 10 + 2
    assert not node.workers


async def test_a_crew_with_workers_waits_for_its_tick(stage: Stage) -> None:
    node = await stage.start(workers__default_count=1)
    await until(lambda: len(node.journal) == 3)
    await trio.sleep(0.25)
    await stage.put("slow", 5)
    await trio.sleep(0.5)
    assert len(node.journal) == 3
    await until(lambda: node.size == 5)
    assert node.journal[-1].at - node.journal[-2].at == pytest.approx(1)
