"""What nodes say of themselves, and when they count as dead."""

from uuid import UUID

import attrs
import pytest
import trio

from musterd.store.jobs import JobFilter, NewJob
from musterd.store.nodes import (
    FORGET_SECONDS,
    LIVE_SECONDS,
    KnownKind,
    NodeRecord,
    kinds_text,
)
from musterd.store.queue import SpareCapacity
from musterd.store.sqlite.engine import SqliteEngine
from tests.contract.job_tools import take_one
from tests.contract.rigs import Rig, closing_engine
from tests.support.beats import beat_of, live_node


async def only(rig: Rig) -> NodeRecord:
    (node,) = await rig.engine.nodes.all()
    return node


async def test_a_node_is_as_it_said(rig: Rig) -> None:
    kinds = {
        "a": KnownKind("no such file", 4, 12, 0.25, 0.5),
        "b": KnownKind(),
    }
    beat = await live_node(rig.engine, kinds=kinds, busy=3, retiring=1, up_seconds=90.0)
    node = await only(rig)
    assert (node.id, node.name, node.version, node.phase) == (beat.id, "north", "1", "running")
    assert (node.idle, node.busy, node.retiring, node.crew) == (2, 3, 1, 5)
    assert (node.default_count, node.max_count) == (2, 8)
    assert node.named == kinds
    assert not node.lacks("a")
    assert node.lacks("c")
    assert 89 <= (node.heartbeat_at - node.started_at).total_seconds() <= 91
    assert 0 <= node.silent_seconds < 5


async def test_a_second_beat_changes_what_may_change(rig: Rig) -> None:
    first = await live_node(rig.engine)
    started_at = (await only(rig)).started_at
    rig.pass_time(7)
    started_at = (await only(rig)).started_at
    assert 7 <= (await only(rig)).silent_seconds < 12
    await live_node(rig.engine, node_id=first.id, kinds=None, phase="draining", idle=0, busy=5)
    node = await only(rig)
    assert (node.phase, node.idle, node.busy) == ("draining", 0, 5)
    assert (node.started_at, list(node.named)) == (started_at, ["report"])
    assert node.silent_seconds < 5


async def test_a_node_says_with_which_configuration_it_runs_and_how_busy_its_machine_is(
    rig: Rig,
) -> None:
    first = await live_node(rig.engine, config_generation=1, config_hash="a" * 12, load=0.75)
    node = await only(rig)
    assert (node.config_generation, node.config_hash, node.load) == (1, "a" * 12, 0.75)
    later = attrs.evolve(first, config_generation=2**40, config_hash="b" * 12, load=None)
    await rig.engine.nodes.beat(later)
    node = await only(rig)
    assert (node.config_generation, node.config_hash, node.load) == (2**40, "b" * 12, None)


async def test_a_node_of_a_version_before_has_said_neither(rig: Rig) -> None:
    await live_node(rig.engine)
    node = await only(rig)
    assert (node.config_generation, node.config_hash, node.load) == (None, None, None)


async def test_nodes_of_one_name_are_as_many_as_they_are(rig: Rig) -> None:
    first = await live_node(rig.engine)
    second = await live_node(rig.engine, busy=4)
    assert {(node.id, node.busy) for node in await rig.engine.nodes.all()} == {
        (first.id, 0),
        (second.id, 4),
    }
    await rig.engine.nodes.leave(first.id)
    assert (await only(rig)).id == second.id


async def test_a_node_that_has_not_named_its_kinds_may_know_any(rig: Rig) -> None:
    await live_node(rig.engine, kinds=None)
    node = await only(rig)
    assert node.kinds is None
    assert not node.lacks("report")


async def test_a_silent_node_is_dead_and_forgotten_later(rig: Rig) -> None:
    await live_node(rig.engine)
    rig.pass_time(LIVE_SECONDS - 2)
    assert (await only(rig)).is_live
    rig.pass_time(2)
    assert not (await only(rig)).is_live
    await live_node(rig.engine, "south")
    assert [(node.name, node.is_live) for node in await rig.engine.nodes.all()] == [
        ("north", False),
        ("south", True),
    ]
    rig.pass_time(FORGET_SECONDS + 1)
    await live_node(rig.engine, "east")
    assert [node.name for node in await rig.engine.nodes.all()] == ["east"]


async def test_a_node_that_was_forgotten_may_come_back(rig: Rig) -> None:
    first = await live_node(rig.engine)
    rig.pass_time(FORGET_SECONDS + 1)
    await live_node(rig.engine, node_id=first.id)
    assert (await only(rig)).is_live


async def test_who_leaves_is_off_the_list(rig: Rig) -> None:
    north = await live_node(rig.engine)
    south = await live_node(rig.engine, "south")
    await rig.engine.nodes.leave(north.id)
    await rig.engine.nodes.leave(north.id)
    assert (await only(rig)).id == south.id


async def test_many_nodes_beat_at_once(shared: Rig) -> None:
    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(shared.engine.nodes.beat, beat_of(f"node-{number}"))
    assert len(await shared.engine.nodes.all()) == 20


async def test_a_daemon_that_starts_alone_on_its_file_forgets_the_dead(
    unopened_sqlite: Rig,
) -> None:
    engine = unopened_sqlite.engine
    assert isinstance(engine, SqliteEngine)
    async with closing_engine(engine):
        await engine.open()
        await engine.migrate()
        await live_node(engine)
        await engine.start_node("south")
        assert await engine.nodes.all() == []


def test_a_node_names_a_bounded_number_of_kinds() -> None:
    text = kinds_text({f"kind-{n:05}": KnownKind("x" * 10_000) for n in range(5_000)})
    assert len(text) < 200_000
    assert '"whole": false' in text


@pytest.mark.parametrize("text", ["[]", '{"kinds": 3}', "null", '{"kinds": {"a": 1}, "whole": 1}'])
async def test_kinds_that_cannot_be_read_are_not_known(rig: Rig, text: str) -> None:
    await live_node(rig.engine)
    rig.raw(f"update nodes set kinds = '{text}'")
    assert (await only(rig)).kinds is None


async def test_what_other_nodes_could_take_on_is_seen(rig: Rig) -> None:
    me, north = UUID(int=5), UUID(int=3)
    await live_node(rig.engine, "me", node_id=me, busy=1)
    await live_node(rig.engine, "north", node_id=north, busy=3, max_count=8)
    await live_node(rig.engine, "full", busy=9, max_count=8)
    await live_node(rig.engine, "south", node_id=UUID(int=7), busy=6, max_count=8)
    await live_node(rig.engine, "leaving", phase="draining")
    await live_node(rig.engine, "arriving", phase="starting")
    assert (await rig.engine.queue.observe(10, me)).others == SpareCapacity(7, 5, 3, 3)
    assert (await rig.engine.queue.observe(10, north)).others == SpareCapacity(9, 0, 5, 0)
    assert (await rig.engine.queue.observe(10)).others == SpareCapacity()
    rig.pass_time(LIVE_SECONDS + 1)
    assert (await rig.engine.queue.observe(10, me)).others == SpareCapacity()


async def test_a_node_that_may_be_silent_for_longer_is_seen_for_longer(rig: Rig) -> None:
    await live_node(rig.engine, "resting", busy=3, pause_seconds=30.0)
    rig.pass_time(3 * 30 - 2)
    assert (await rig.engine.queue.observe(10, UUID(int=1))).others.free == 5
    rig.pass_time(3)
    assert (await rig.engine.queue.observe(10, UUID(int=1))).others.free == 0


async def test_all_nodes_see_the_same_lot_until_the_first_job_is_gone(rig: Rig) -> None:
    assert (await rig.engine.queue.observe(10, UUID(int=1))).lot == 0
    await rig.engine.jobs.enqueue([NewJob("report")])
    rig.pass_time(1)
    await rig.engine.jobs.enqueue([NewJob("report")])
    lot = (await rig.engine.queue.observe(10, UUID(int=1))).lot
    assert lot == (await rig.engine.queue.observe(1, UUID(int=2))).lot
    run_at = (await rig.engine.jobs.find(JobFilter()))[-1].run_at
    assert lot == round(run_at.timestamp() * 1_000_000)
    await take_one(rig.engine)
    assert (await rig.engine.queue.observe(10, UUID(int=1))).lot > lot
