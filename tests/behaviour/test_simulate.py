"""What is simulated is what happens: the product's own daemon, on a clock that jumps, and beside it
the simulation of the trace that it left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import attrs
import pytest
import trio

from musterd.catalog.kinds import Catalog
from musterd.manager.scaling.model.figures import quantile
from musterd.manager.scaling.model.settings import model_settings
from musterd.manager.scaling.model.simulation import Run, simulate
from musterd.manager.scaling.model.trace import Trace
from tests.support.stage import Node, Stage, kind, until
from tests.support.stage_idle_scan import EPOCH
from tests.support.traces import trace_from

SAMPLE_SECONDS = 0.37
LATE_SECONDS = 0.011  # a claim that hears of new work a little late


class Put(NamedTuple):
    """After so many seconds, so many of a kind."""

    at: float
    kind: str
    number: int
    options: Mapping[str, Any] = {}


Puts = Sequence[tuple[float, str, int] | Put]

# Nothing falls on a tick: who comes first there is nobody's promise.
KINDS = (
    kind("short", 230),
    kind("middling", 1_730),
    kind("lasting", 4_730),
    kind("endless", 25_310),
    kind("flaky", 1_170, retryable=True, fail_first=2),
    kind("capped", 1_730, max_running=2),
)
BURSTS: Puts = (
    *((3.35, "lasting", 5), (8.35, "lasting", 20)),
    *((31.45, "endless", 3), (40.75, "short", 60)),
)
# From an empty crew's hint on, the ticks are counted from that.
APART: Puts = (
    (3.35, "lasting", 5),
    (8.65, "lasting", 9),
    (47.2, "endless", 3),
    (90.45, "short", 5),
)
TRICKLE: Puts = tuple((0.35 + 0.83 * n, "middling", 1 + n % 4) for n in range(40))
IN_ORDER: Puts = (
    *((3.35, "lasting", 7), Put(3.37, "middling", 6, {"priority": -3})),
    *(Put(4.15, "short", 9, {"priority": 5}), Put(9.75, "lasting", 4, {"priority": 5})),
)
OF_TARGETS: Puts = (
    *(Put(3.35, "middling", 4, {"target": "a"}), Put(3.75, "lasting", 3, {"target": "b"})),
    *((4.35, "short", 9), Put(11.15, "middling", 3, {"target": "a"})),
)
CAPPED: Puts = ((3.35, "capped", 9), (4.55, "short", 6), (5.65, "lasting", 3))
FOR_LATER: Puts = (
    *(Put(3.35, "lasting", 9, {"delay_seconds": 20.0}), (5.15, "middling", 5)),
    Put(6.45, "short", 40, {"delay_seconds": 17.0, "priority": 2}),
)
RETRIES: Puts = ((2.25, "flaky", 12), (9.65, "flaky", 4), (15.35, "lasting", 9))

CASES: Mapping[str, tuple[Mapping[str, Any], Puts]] = {
    "bursts": ({}, BURSTS),
    "bursts, small crew": ({"workers__max_count": 4}, BURSTS),
    "bursts, no window": (
        {"scaling__stabilization_seconds": 0, "scaling__down_cooldown_seconds": 2},
        BURSTS,
    ),
    "bursts, slow growth": ({"workers__max_count": 20, "scaling__up_cooldown_seconds": 4}, BURSTS),
    "trickle": ({"workers__default_count": 1}, TRICKLE),
    "trickle, quick ticks": ({"workers__scale_interval_ms": 250}, TRICKLE),
    "retries": ({"workers__max_count": 12}, RETRIES),
    "depth": ({"scaling__policy": '"depth"'}, BURSTS),
    "latency": (
        {"scaling__policy": '"latency"', "scaling__max_wait_seconds": 3, "workers__max_count": 20},
        BURSTS,
    ),
    "latency, for later": (
        {"scaling__policy": '"latency"', "scaling__max_wait_seconds": 2, "workers__max_count": 20},
        FOR_LATER,
    ),
    "for later": ({"workers__max_count": 20}, FOR_LATER),
    "by priority": ({"workers__max_count": 4}, IN_ORDER),
    "by target": ({}, OF_TARGETS),
    "capped": ({}, CAPPED),
    "no more may run": ({"limits__max_running": 3}, BURSTS),
    "from nothing": ({"workers__default_count": 0}, APART),
    "in steps": (
        {"workers__max_count": 20, "scaling__up_step": 2, "scaling__down_step": 4},
        BURSTS,
    ),
    "with tolerance": ({"workers__max_count": 30, "scaling__tolerance_percent": 20}, BURSTS),
}


@attrs.frozen
class Played:
    """What a daemon did: the size of its crew at each look, and the trace of its jobs, both as
    seconds from its start.
    """

    sizes: Sequence[tuple[float, int]]
    trace: Trace


async def play(stage: Stage, node: Node, puts: Puts) -> Played:
    started, sizes = trio.current_time(), list[tuple[float, int]]()

    async def look() -> None:
        while True:
            await trio.sleep(SAMPLE_SECONDS)
            sizes.append((trio.current_time() - started, node.size))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look)
        for put in puts:
            at, name, count, options = put if isinstance(put, Put) else Put(*put)
            await trio.sleep(started + at - trio.current_time())
            await stage.put(name, count, **options)
        await stage.all_ended(within_seconds=1000)
        await until(lambda: node.size <= node.settings.workers.default_count, 60)
        await trio.sleep(5)
        nursery.cancel_scope.cancel()
    trace = await trace_from(stage.store.engine.events)
    return Played(sizes, since(trace, EPOCH + started))


def since(trace: Trace, moment: float) -> Trace:
    """The trace as told from then on: a log begins a little after its daemon."""
    late = trace.begun_at.timestamp() - moment
    due = [one + late for one in trace.due_seconds]
    span, tick = trace.span_seconds + late, trace.tick_seconds + late
    return attrs.evolve(trace, due_seconds=due, span_seconds=span, tick_seconds=tick)


def size_at(run: Run, moment: float) -> int:
    return [size for at, size in run.sizes if at <= moment][-1]


@pytest.mark.parametrize("name", list(CASES))
async def test_a_simulation_goes_as_the_daemon_went(stage: Stage, name: str) -> None:
    changes, puts = CASES[name]
    stage.kinds = {one.name: one for one in KINDS}
    node = await stage.start(**changes)
    played = await play(stage, node, puts)
    run = simulate(played.trace, model_settings(node.settings, Catalog(KINDS)))
    beside = [(at, size, size_at(run, at)) for at, size in played.sizes]
    assert [one for one in beside if one[1] != one[2]] == []
    assert run.hired > 0
    assert run.retired > 0
    assert list(run.waits) == pytest.approx(played.trace.waited_seconds, abs=LATE_SECONDS)


async def test_two_nodes_are_simulated_as_two(stage: Stage) -> None:
    """Which of them takes a job is chance; how long jobs wait, and what it costs, is not."""
    stage.kinds = {one.name: one for one in KINDS}
    settings = {"workers__default_count": 1, "workers__max_count": 6}
    node = await stage.start("north", **settings)
    await trio.sleep(0.5)
    await stage.start("south", **settings)
    played = await play(stage, node, BURSTS)
    assert played.trace.nodes == 2
    both, one = (
        simulate(played.trace, model_settings(node.settings, Catalog(KINDS), nodes))
        for nodes in (2, 1)
    )
    waited = sorted(played.trace.waited_seconds)
    assert quantile(sorted(both.waits), 0.95) == pytest.approx(quantile(waited, 0.95), abs=1.0)
    assert quantile(sorted(one.waits), 0.95) > 1.8 * quantile(waited, 0.95)
    assert max(size for _, size in both.sizes) == 12
