"""The guard on a real node: it stops hiring, and says why."""

from __future__ import annotations

import trio

from musterd.manager.scaling.guard import MIB, Machine
from tests.support.reloading import reload
from tests.support.stage import Stage, until

CALM, PRESSED = Machine(10**12, 0.0, 0.0), Machine(10**12, 50.0, 0.0)


async def test_under_pressure_nobody_is_hired_and_nobody_leaves(stage: Stage) -> None:
    stage.machine = CALM
    node = await stage.start(scaling__guard="{memory_pressure_percent = 10}")
    await stage.put("slow", 4)
    await until(lambda: node.size == 4)
    stage.machine = PRESSED
    await stage.put("slow", 4)
    await trio.sleep(2.5)
    assert node.size == 4
    last = node.journal[-1]
    assert (last.raw_wish, last.desired, last.limited_by) == (8, 4, "machine_memory")
    assert node.metric("scale_limited_total", reason="machine_memory") >= 2
    stage.machine = CALM
    await until(lambda: node.size == 8, 1.5)


async def test_memory_that_has_been_promised_to_new_workers_is_not_free(stage: Stage) -> None:
    stage.machine = Machine(400 * MIB)
    node = await stage.start(
        workers__max_count=20, workers__default_count=1,
        scaling__guard="{min_free_memory_mb = 100}",
    )  # fmt: skip
    footprints = node.tenancy()._footprints  # pyright: ignore[reportPrivateUsage] - a child's report
    footprints.note("slow", 100 * MIB)
    await stage.put("slow", 15)
    await trio.sleep(3.5)
    assert node.size == 1 + 3
    assert node.journal[-1].limited_by == "machine_memory"


async def test_what_cannot_be_measured_is_said_once_and_stops_nobody(stage: Stage) -> None:
    node = await stage.start(scaling__guard="{cpu_pressure_percent = 10}")
    await stage.put("slow", 8)
    await until(lambda: node.size == 8)
    await trio.sleep(10)
    (said,) = node.events.named("guard cannot be measured here")
    assert said["keys"] == "scaling.guard.cpu_pressure_percent"
    await reload(node, scaling__guard="{memory_pressure_percent = 10}")
    await trio.sleep(1.5)
    assert len(node.events.named("guard cannot be measured here")) == 2


async def test_slow_claims_stop_hiring_until_they_are_quick_again(stage: Stage) -> None:
    node = await stage.start(scaling__guard="{claim_p99_ms = 50}")
    engine = node.tenancy().engine
    now = trio.current_time()
    for second in range(6):
        engine._claims.append((now + second, 0.2))  # pyright: ignore[reportPrivateUsage] - a slow store
    await stage.put("long", 6)
    await trio.sleep(2.5)
    assert (node.size, node.journal[-1].limited_by) == (2, "store")
    await until(lambda: node.size == 6, 60)
