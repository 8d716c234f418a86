"""The ground under simulated clusters does what it says: kills, freezes, failovers; and what fails
is made small.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest
import trio

from musterd.manager.scaling.supervisor import Supervisor
from musterd.store.jobs import NewJob
from musterd.workers.claiming.desk import Desk
from musterd.workers.claiming.held import Held
from tests.simulation import deeds
from tests.simulation.plan import Deed, Scenario, draw
from tests.simulation.process import Process
from tests.simulation.running import live, run
from tests.simulation.shrinking import numbers_of, numbers_text, relevant, shrink
from tests.simulation.weather import Spell
from tests.simulation.world import World

Story = Callable[[World], Awaitable[None]]
LONG = '{"steps": [1, 1, 1, 1, 1, 1]}'


def quiet(**changes: Any) -> Scenario:
    """One node, and nothing that happens by itself."""
    own = {"workers__lease_timeout_seconds": 10.0, "limits__max_running": 0}
    tables = ("schedules", "retention")
    drawn = draw(1).knobs.items()
    knobs = {name: value for name, value in drawn if not name.startswith(tables)} | own
    fields: dict[str, Any] = {
        "nodes": ("n1",),
        "faults": frozenset[str](),
        "deeds": (),
        "lag_seconds": 0.0,
    }
    return attrs.evolve(draw(1), knobs=knobs, **fields, **changes)


async def one_node(world: World, payload: str = LONG) -> Process:
    """With a job in its hand."""
    node = world.start("n1")
    await trio.sleep(1)
    await world.client("c1").jobs.enqueue_keyed([NewJob("plain", payload)])
    await trio.sleep(1)
    return node


def told(world: World, *records: str) -> list[dict[str, Any]]:
    return [one for one in world.recorder.body if one["record"] in records]


def test_a_killed_process_does_nothing_more() -> None:
    async def story(world: World) -> None:
        node = await one_node(world)
        node.kill()
        await node.ended.wait()
        await trio.sleep(30)
        assert world.store.raw("select state, attempt from job_rows") == [("running", 1)]

    world = live(quiet(), story)
    (killed,) = (one for one in told(world, "fault") if one["what"] == "kill")
    after = [one for one in told(world, "call", "told", "end") if one["seq"] > killed["seq"]]
    assert after == []  # no goodbye: it gave nothing back, and its handler heard of nothing


def test_what_a_killed_process_had_sent_may_still_arrive() -> None:
    async def story(world: World) -> None:
        world.weather.begin(Spell("slow_store", 1e9, 1.0, 5.0, "n1", world.rng("slow")))
        node = world.start("n1")
        await trio.sleep(1)
        await world.client("c1").jobs.enqueue_keyed([NewJob("plain", LONG)])
        for _ in range(1000):
            if any(one.operation == "claim" for one in node.line.under_way.values()):
                break
            await trio.sleep(0.01)
        node.kill()
        await trio.sleep(20)

    world = live(quiet(), story)
    (killed,) = (one for one in told(world, "fault") if one["what"] == "kill")
    late = [one["id"] for one in told(world, "commit") if one["seq"] > killed["seq"]]
    sent = {one["id"] for one in told(world, "call") if one["who"] == "node:n1"}
    heard = {one["id"] for one in told(world, "reply") if one["seq"] > killed["seq"]}
    assert late
    assert set(late) <= sent
    assert not heard & sent


def test_a_frozen_process_stands_still_and_goes_on_where_it_was() -> None:
    async def story(world: World) -> None:
        node = await one_node(world)
        node.freeze()
        await trio.sleep(5)
        node.thaw()
        await trio.sleep(6)
        assert world.store.raw("select state, attempt from job_rows") == [("succeeded", 1)]

    world = live(quiet(), story)
    frozen, thawed = (one["t"] for one in told(world, "fault"))
    assert thawed - frozen == pytest.approx(5)
    mine = [one for one in told(world, "call", "effect") if one["who"] == "node:n1"]
    assert [one for one in mine if frozen < one["t"] < thawed] == []
    assert any(one["t"] == pytest.approx(thawed) for one in mine)  # what came up meanwhile


def test_a_lossy_failover_loses_what_was_committed_last_and_gives_its_id_away() -> None:
    async def story(world: World) -> None:
        client = world.client("c1")
        first = await client.jobs.enqueue_keyed([NewJob("plain", '{"n": 1}')])
        async with trio.open_nursery() as nursery:
            values = {"back": 1.0, "away": 0.0}
            nursery.start_soon(deeds.do, world, "lossy_failover", values)
            await trio.sleep(0.5)
            second = await client.jobs.enqueue_keyed([NewJob("plain", '{"n": 2}')])
        third = await client.jobs.enqueue_keyed([NewJob("plain", '{"n": 3}')])
        assert [one.id for one in (*first, *second, *third)] == [1, 2, 2]
        payloads = world.store.raw("select payload from job_rows order by id")
        assert payloads == [('{"n": 1}',), ('{"n": 3}',)]

    world = live(quiet(), story)
    (lossy,) = (one for one in told(world, "fault") if one["what"] == "failover")
    lost = [one for one in told(world, "commit") if lossy["lost_since"] < one["seq"] < lossy["seq"]]
    assert [one["job"] for one in lost] == [2]


def test_a_seeded_bug_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that goes on with what it may have lost."""

    def keep(desk: Desk, held: Held) -> None:
        del desk, held

    monkeypatch.setattr(Desk, "lose", keep)
    failed = next(one for seed in range(1, 100) if "S16" in (one := run(draw(seed))).violated)
    shrunk = shrink(failed, seconds=10)
    assert "S16" in shrunk.run.violated
    assert len(shrunk.run.scenario.deeds) < len(failed.scenario.deeds)
    again = run(shrunk.run.scenario)
    assert again.hash == shrunk.run.hash
    (violation, *_) = shrunk.run.judgement.violations
    assert set(violation.lines) <= set(relevant(shrunk.run.lines, violation))


def test_an_error_that_gets_out_of_a_node_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    async def break_down(_: Supervisor) -> None:
        await trio.sleep(1)
        raise ZeroDivisionError("a fault of the product")

    monkeypatch.setattr(Supervisor, "run", break_down)
    world = live(quiet(), one_node_for_a_while)
    (finding,) = world.findings
    assert finding.what == "crash"
    assert "a fault of the product" in finding.story


def test_time_that_does_not_go_on_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    async def turn(_: Supervisor) -> None:
        for _number in itertools.count():
            await trio.lowlevel.checkpoint()

    monkeypatch.setattr(Supervisor, "run", turn)
    world = live(quiet(), one_node_for_a_while)
    assert [one.what for one in world.findings] == ["stuck"]


async def one_node_for_a_while(world: World) -> None:
    await one_node(world)
    await trio.sleep(5)


def test_what_a_failure_does_not_need_is_left_out() -> None:
    scenario = quiet()
    all_deeds = tuple(Deed(float(number), "enqueue", {}) for number in range(40))

    @attrs.frozen
    class Fake:
        scenario: Scenario

        @property
        def violated(self) -> list[str]:
            at = {deed.at for deed in self.scenario.deeds}
            return ["S1"] if {7.0, 23.0} <= at else []

    failed: Any = Fake(attrs.evolve(scenario, deeds=all_deeds))
    fake: Any = Fake
    shrunk = shrink(failed, 1e9, carry_out=fake)
    assert [deed.at for deed in shrunk.run.scenario.deeds] == [7.0, 23.0]
    assert shrunk.left_out == frozenset(range(40)) - {7, 23}


def test_numbers_as_people_write_them() -> None:
    numbers = frozenset({0, 1, 2, 5, 9, 10})
    assert numbers_text(numbers) == "0-2,5,9-10"
    assert numbers_of(numbers_text(numbers)) == numbers
    assert numbers_of("") == frozenset()
