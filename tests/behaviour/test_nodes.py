"""Several nodes on one store."""

from uuid import UUID

import attrs
import trio

from musterd.catalog.kinds import Catalog
from musterd.manager.node.heartbeat import NEWS_SECONDS
from musterd.store.lifecycle import JobState
from musterd.store.nodes import LIVE_SECONDS, NodeRecord, warnings
from tests.support.history import claims_in_order
from tests.support.reloading import standing_clock
from tests.support.stage import Node, Stage, kind, until


async def test_two_nodes_share_the_work_and_run_no_job_twice(stage: Stage) -> None:
    nodes = [await stage.start(name) for name in ("north", "south")]
    ids = await stage.put("report", 200)
    await stage.all_ended()
    assert sorted(claims_in_order(stage.store.deeds)) == ids
    jobs = await stage.jobs()
    assert {(one.state, one.attempt) for one in jobs} == {(JobState.SUCCEEDED, 1)}
    shares = [sum(one.node == node.name for one in jobs) for node in nodes]
    assert min(shares) >= 50


async def test_a_node_that_leaves_hands_its_work_to_the_other(stage: Stage) -> None:
    north = await stage.start("north", shutdown__grace_period_seconds=1)
    await stage.start("south")
    await stage.put("slow", 8)
    await trio.sleep(2)
    await north.stop()
    await stage.all_ended()
    jobs = await stage.jobs()
    assert {one.state for one in jobs} == {JobState.SUCCEEDED}
    assert {one.attempt - one.forgiven for one in jobs} == {1}


async def test_a_late_node_takes_part_at_once(stage: Stage) -> None:
    await stage.start("north", workers__max_count=2)
    await stage.put("slow", 6)
    await trio.sleep(1)
    await stage.start("south")
    await until(lambda: len(stage.running_now()) == 4, within_seconds=0.1)


async def told(stage: Stage) -> list[NodeRecord]:
    """What the nodes have said of themselves, once each that runs has."""
    await trio.sleep(1)
    return await stage.store.engine.nodes.all()


async def reload(node: Node, *extra: str) -> None:
    """Reads the same settings, and a catalog with further kinds."""
    reloader = node.daemon._reloader  # pyright: ignore[reportPrivateUsage] - as a signal would
    catalog = Catalog([*reloader.catalog.values(), *map(kind, extra)])
    with standing_clock():
        await reloader.reload(lambda: (reloader.settings.now, catalog))


async def test_two_daemons_of_one_name_are_two_nodes(stage: Stage) -> None:
    one, two = [await stage.start("north") for _ in range(2)]
    ids = {node.id for node in await told(stage)}
    assert len(ids) == 2
    await one.stop()
    assert {node.id for node in await told(stage)} < ids
    job_ids = await stage.put("report", 4)
    await stage.all_ended()
    assert sorted(claims_in_order(stage.store.deeds)) == job_ids
    await two.stop()
    assert await told(stage) == []


async def test_a_node_has_another_id_at_each_start(stage: Stage) -> None:
    seen: set[UUID] = set()
    for _ in range(3):
        node = await stage.start("north")
        seen |= {one.id for one in await told(stage)}
        node.kill()
        await node.ended.wait()
    assert len(seen) == 3
    await trio.sleep(LIVE_SECONDS)
    assert [one.is_live for one in await stage.store.engine.nodes.all()] == [False] * 3


async def test_a_node_has_one_id_in_the_stores_of_all_its_tenants(stage: Stage) -> None:
    await stage.add_tenants("acme")
    await stage.start("north", tenants__acme__workers__max_count=2)
    (at_home,) = await told(stage)
    (at_acme,) = await stage.stores["acme"].engine.nodes.all()
    assert (at_home.id, at_home.config_hash) == (at_acme.id, at_acme.config_hash)


async def test_nodes_of_one_configuration_agree(stage: Stage) -> None:
    await stage.start("north")
    await stage.start("south", workers__max_count=3)
    north, south = await told(stage)
    assert north.config_hash == south.config_hash
    assert (north.config_generation, north.load) == (1, 0.5)
    assert warnings([north, south]) == []


async def test_a_reload_is_told_soon_and_those_that_lag_behind_are_seen(stage: Stage) -> None:
    nodes = [await stage.start(name) for name in ("north", "south")]
    before, _ = await told(stage)
    await reload(nodes[0], "fresh")
    await trio.sleep(NEWS_SECONDS + 1)
    north, south = await stage.store.engine.nodes.all()
    assert (north.config_generation, south.config_generation) == (2, 1)
    assert north.config_hash != before.config_hash == south.config_hash
    (line,) = warnings([north, south])
    assert line.startswith("the nodes have different configurations: ")
    await reload(nodes[1], "fresh")
    await trio.sleep(NEWS_SECONDS + 1)
    assert warnings(await stage.store.engine.nodes.all()) == []


async def test_what_needs_a_restart_does_not_count_before_it(stage: Stage) -> None:
    """A node says what is in effect, not what it has read."""
    node = await stage.start()
    (before,) = await told(stage)
    reloader = node.daemon._reloader  # pyright: ignore[reportPrivateUsage] - as a signal would
    changed = attrs.evolve(
        reloader.settings.now, duties=attrs.evolve(reloader.settings.now.duties, mode="everyone")
    )
    await reloader.reload(lambda: (changed, reloader.catalog))
    await trio.sleep(NEWS_SECONDS + 1)
    (after,) = await stage.store.engine.nodes.all()
    assert (after.config_generation, after.config_hash) == (2, before.config_hash)
