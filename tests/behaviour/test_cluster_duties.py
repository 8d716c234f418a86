"""Five whole nodes on one store: whatever befalls them, each duty is done, and by one node at a
time; and each slot of a schedule has one job.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
import trio

from musterd.manager.duties.duty import DUTIES
from musterd.manager.duties.leadership import REBALANCE_SECONDS, fair_share
from tests.support.cluster import Cluster
from tests.support.stage import Node, until

SCHEDULED: dict[str, Any] = {
    "schedules__tick__kind": '"noop"',
    "schedules__tick__every_seconds": 5,
    "schedules__tick__missed": '"all"',
}
LEASE_SECONDS, MARGIN_SECONDS = 10.0, 1.0
TAKE_OVER_SECONDS = LEASE_SECONDS + 5.0  # five nodes look about once a second, and hesitate
WATCH_SECONDS = 0.05


def held(node: Node) -> set[str]:
    background = node.tenancy().duties
    return {duty for duty in DUTIES if background.holds(duty)}


@attrs.define
class Seen:
    """`overlap_seconds`: for how long two nodes have had the same duty."""

    overlap_seconds: float = 0.0


@asynccontextmanager
async def watched(cluster: Cluster) -> AsyncGenerator[Seen]:
    seen = Seen()

    async def watch() -> None:
        while True:
            having = [duty for node in cluster.alive for duty in held(node)]
            seen.overlap_seconds += WATCH_SECONDS * (len(having) - len(set(having)))
            await trio.sleep(WATCH_SECONDS)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        yield seen
        nursery.cancel_scope.cancel()


def all_are_held(*nodes: Node) -> bool:
    return set().union(*map(held, nodes)) == set(DUTIES)


async def each_slot_has_one_job(cluster: Cluster) -> None:
    ((fired, missed, skipped, last_slot),) = cluster.raw(
        "select fired, missed, skipped, last_slot from schedules"
    )
    jobs = await cluster.jobs()
    assert (len(jobs), missed, skipped) == (fired, 0, 0)
    first = min(job.created_at for job in jobs).timestamp()
    assert fired == round((last_slot / 1e6 - (first - first % 5)) / 5) + 1


async def five(cluster: Cluster) -> list[Node]:
    nodes = await cluster.join(5, 0.23, **SCHEDULED)
    await trio.sleep(4 * REBALANCE_SECONDS)
    assert all_are_held(*nodes)
    return nodes


async def test_duties_are_spread(cluster: Cluster) -> None:
    async with watched(cluster) as seen:
        nodes = await five(cluster)
        assert max(len(held(node)) for node in nodes) <= fair_share(len(DUTIES), 5) + 1
    assert seen.overlap_seconds == 0
    await each_slot_has_one_job(cluster)


async def test_a_killed_nodes_duties_are_taken_over(cluster: Cluster) -> None:
    nodes = await five(cluster)
    async with watched(cluster) as seen:
        for _ in range(4):
            victim = max(cluster.alive, key=lambda node: len(held(node)))
            await cluster.kill(victim)
            # The fewer are left, the more each of them takes, in turns.
            await until(lambda: all_are_held(*cluster.alive), TAKE_OVER_SECONDS)
            await trio.sleep(5)
    assert seen.overlap_seconds == 0
    assert held(cluster.alive[0]) == set(DUTIES)
    assert len(nodes) == 5
    await each_slot_has_one_job(cluster)


async def test_a_node_that_is_cut_off_ends_before_another_begins(cluster: Cluster) -> None:
    nodes = await five(cluster)
    cut = max(nodes, key=lambda node: len(held(node)))
    others = [node for node in nodes if node is not cut]
    async with watched(cluster) as seen:
        cluster.cut(cut)
        await until(lambda: not held(cut), LEASE_SECONDS)
        await until(lambda: all_are_held(*others), TAKE_OVER_SECONDS)
        cluster.heal(cut)
        await trio.sleep(5 * REBALANCE_SECONDS)
    assert seen.overlap_seconds == 0
    assert all_are_held(*nodes)
    assert max(len(held(node)) for node in nodes) <= fair_share(len(DUTIES), 5)
    await each_slot_has_one_job(cluster)


async def test_a_frozen_node_does_no_harm_when_it_wakes_up(cluster: Cluster) -> None:
    nodes = await five(cluster)
    frozen = next(node for node in nodes if "schedules" in held(node))
    others = [node for node in nodes if node is not frozen]
    cluster.freeze(frozen)
    await until(lambda: all_are_held(*others), TAKE_OVER_SECONDS)
    async with watched(cluster) as seen:
        cluster.thaw(frozen)
        await trio.sleep(5 * REBALANCE_SECONDS)
    assert seen.overlap_seconds == 0
    assert all_are_held(*nodes)
    await each_slot_has_one_job(cluster)


@pytest.mark.parametrize("seed", range(3))
async def test_after_whatever_weather_all_is_done_again(cluster: Cluster, seed: int) -> None:
    nodes = await five(cluster)
    rng = random.Random(seed)
    for _ in range(12):
        node = rng.choice([one for one in cluster.alive if one is not nodes[0]] or [nodes[0]])
        what = rng.choice(["cut", "freeze", "drain", "kill", "join"])
        await befall(cluster, node, what)
        await trio.sleep(rng.uniform(1, 20))
        cluster.heal(node)
        cluster.thaw(node)
    await until(lambda: all_are_held(*cluster.alive), TAKE_OVER_SECONDS + LEASE_SECONDS)
    await trio.sleep(10)
    await each_slot_has_one_job(cluster)


async def befall(cluster: Cluster, node: Node, what: str) -> None:
    match what:
        case "cut":
            cluster.cut(node)
        case "freeze":
            cluster.freeze(node)
        case "drain" if len(cluster.alive) > 1:
            await node.stop()
        case "kill" if len(cluster.alive) > 1:
            await cluster.kill(node)
        case _:
            await cluster.join(1, 0.0, **SCHEDULED)
