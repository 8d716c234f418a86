"""What nodes say of themselves, and when they count as dead."""

import pytest
import trio

from musterd.store.nodes import (
    FORGET_SECONDS,
    LIVE_SECONDS,
    KindStanding,
    NodeRecord,
    kinds_text,
)
from musterd.store.sqlite.engine import SqliteEngine
from tests.contract.rigs import Rig, closing_engine
from tests.support.beats import beat_of, live_node


async def only(rig: Rig) -> NodeRecord:
    (node,) = await rig.engine.nodes()
    return node


async def test_a_node_is_as_it_said(rig: Rig) -> None:
    kinds = {
        "a": KindStanding("no such file", 4, 12, 0.25, 0.5),
        "b": KindStanding(),
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
    assert [(node.name, node.is_live) for node in await rig.engine.nodes()] == [
        ("north", False),
        ("south", True),
    ]
    rig.pass_time(FORGET_SECONDS + 1)
    await live_node(rig.engine, "east")
    assert [node.name for node in await rig.engine.nodes()] == ["east"]


async def test_a_node_that_was_forgotten_may_come_back(rig: Rig) -> None:
    first = await live_node(rig.engine)
    rig.pass_time(FORGET_SECONDS + 1)
    await live_node(rig.engine, node_id=first.id)
    assert (await only(rig)).is_live


async def test_who_leaves_is_off_the_list(rig: Rig) -> None:
    north = await live_node(rig.engine)
    south = await live_node(rig.engine, "south")
    await rig.engine.leave(north.id)
    await rig.engine.leave(north.id)
    assert (await only(rig)).id == south.id


async def test_many_nodes_beat_at_once(shared: Rig) -> None:
    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(shared.engine.beat, beat_of(f"node-{number}"))
    assert len(await shared.engine.nodes()) == 20


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
        assert await engine.nodes() == []


def test_a_node_names_a_bounded_number_of_kinds() -> None:
    text = kinds_text({f"kind-{n:05}": KindStanding("x" * 10_000) for n in range(5_000)})
    assert len(text) < 200_000
    assert '"whole": false' in text


@pytest.mark.parametrize("text", ["[]", '{"kinds": 3}', "null", '{"kinds": {"a": 1}, "whole": 1}'])
async def test_kinds_that_cannot_be_read_are_not_known(rig: Rig, text: str) -> None:
    await live_node(rig.engine)
    rig.raw(f"update nodes set kinds = '{text}'")
    assert (await only(rig)).kinds is None
