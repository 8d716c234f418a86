"""Nodes that share duties: one does each, another takes over, none is done twice at once."""

import logging
import random
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from uuid import UUID

import attrs
import pytest
import trio

from musterd.manager.duties.duty import RUN_LIMIT_SECONDS, Duty, DutyRun
from musterd.manager.duties.leadership import (
    REBALANCE_SECONDS,
    UNWANTED_SECONDS,
    Identity,
    Leadership,
    Pace,
    fair_share,
)
from musterd.store.sqlite.engine import SqliteEngine
from tests.support.beats import live_node
from tests.support.faulty_engine import Fault, FaultyEngine
from tests.support.stage import until

NAMES = ("events", "metrics", "reaping", "retention", "schedules", "statistics", "webhooks")
PACE = Pace(lease_seconds=10.0, heartbeat_seconds=2.0)
PAUSE_SECONDS = 3600.0  # between two signs of life: these nodes tell of theirs once
EPOCH = 1_800_000_000.0
QUIET = logging.getLogger("tests.duties")


@attrs.define(eq=False)
class Scene:
    """Nodes on one store. `doing` is who does what at this moment, `overlaps` what two did."""

    nursery: trio.Nursery
    engine: SqliteEngine
    doing: Counter[str] = attrs.field(factory=Counter[str])
    runs: Counter[str] = attrs.field(factory=Counter[str])
    pace: Pace = PACE
    overlaps: list[str] = attrs.field(factory=list[str])
    said: list[tuple[float, str, str, str]] = attrs.field(factory=list[tuple[float, str, str, str]])

    async def node(self, number: int) -> "Node":
        faulty = FaultyEngine(self.engine, self.nursery)
        node = Node(self, number, faulty)
        await live_node(
            self.engine, f"node{number}", node_id=UUID(int=number), pause_seconds=PAUSE_SECONDS
        )
        self.nursery.start_soon(node.run)
        return node


@attrs.define(eq=False)
class Node:
    scene: Scene
    number: int
    engine: FaultyEngine
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    asleep: bool = False  # its boot-time clock runs on, its tasks do nothing
    fails: set[str] = attrs.field(factory=set[str])
    stop_seconds: float = 0.0  # that its work takes to stop when it is cancelled
    hangs: set[str] = attrs.field(factory=set[str])
    leadership: Leadership = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        duties = {
            name: Duty(name, partial(self.work, name), lambda: 1.0, lambda: 100) for name in NAMES
        }
        me = Identity(f"node{self.number}", UUID(int=self.number), "default")
        self.leadership = Leadership(
            self.engine.duties, lambda: duties, me, lambda: self.scene.pace, trio.current_time,
            random.Random(self.number), self, QUIET,
        )  # fmt: skip

    async def run(self) -> None:
        with self.scope:
            await self.leadership.run()

    async def work(self, name: str) -> int:
        if name in self.fails:
            raise ZeroDivisionError("a fault of the program")
        if name in self.hangs:
            await trio.sleep_forever()
        scene = self.scene
        scene.doing[name] += 1
        if scene.doing[name] > 1:
            scene.overlaps.append(name)
        try:
            await trio.sleep(0.08)  # so little that it need not pause for longer
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(self.stop_seconds)
            scene.doing[name] -= 1
        scene.runs[name] += 1
        return 1

    def acquired(self, duties: Sequence[str]) -> None:
        self._note("acquired", duties)

    def released(self, duties: Sequence[str], why: str) -> None:
        self._note(why, duties)

    def _note(self, what: str, duties: Sequence[str]) -> None:
        now, name = trio.current_time(), f"node{self.number}"
        self.scene.said += [(now, name, what, duty) for duty in duties]

    def ran(self, duty: str, run: DutyRun) -> None:
        pass


@asynccontextmanager
async def on_a_store() -> AsyncGenerator[Scene]:
    engine = SqliteEngine(":memory:", lambda: EPOCH + trio.current_time(), busy_timeout_seconds=1.0)
    await engine.open()
    await engine.migrate()
    async with trio.open_nursery() as nursery:
        yield Scene(nursery, engine)
        nursery.cancel_scope.cancel()
    await engine.close()


@asynccontextmanager
async def two_on_a_store() -> AsyncGenerator[tuple[Scene, Node, Node]]:
    """Two nodes that have long had their duties."""
    async with on_a_store() as scene:
        first, second = await scene.node(1), await scene.node(2)
        await trio.sleep(10)
        yield scene, first, second


def all_held(*nodes: Node) -> list[str]:
    return sorted(duty for node in nodes for duty in node.leadership.held)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    QUIET.disabled = True
    yield
    QUIET.disabled = False


async def test_one_node_does_all_at_once() -> None:
    async with on_a_store() as scene:
        node = await scene.node(1)
        await trio.sleep(1)
        assert all_held(node) == sorted(NAMES)
        await trio.sleep(20)
        assert all(scene.runs[name] >= 14 for name in NAMES)
        records = await scene.engine.duties.duties()
        assert all(one.node == "node1" and one.runs >= 10 and one.items >= 10 for one in records)


async def test_nodes_that_start_together_share() -> None:
    async with on_a_store() as scene:
        nodes = [await scene.node(number) for number in (1, 2, 3, 4, 5)]
        await trio.sleep(30)
        assert all_held(*nodes) == sorted(NAMES)
        assert max(len(node.leadership.held) for node in nodes) <= fair_share(len(NAMES), 5)
        assert not scene.overlaps


async def test_a_node_that_joins_gets_its_share() -> None:
    async with on_a_store() as scene:
        first = await scene.node(1)
        await trio.sleep(30)
        second = await scene.node(2)
        await trio.sleep(60)
        assert all_held(first, second) == sorted(NAMES)
        assert len(second.leadership.held) >= len(NAMES) // 2
        assert not scene.overlaps


async def test_a_duty_whose_reply_comes_after_its_lease_is_not_done() -> None:
    async with on_a_store() as scene:
        first = await scene.node(1)
        first.engine.faults["duties_take"].append(Fault("slow_reply", 25))
        await trio.sleep(5)
        second = await scene.node(2)
        await trio.sleep(60)
        assert not scene.overlaps
        assert all_held(first, second) == sorted(NAMES)


async def test_trust_in_a_duty_counts_from_when_it_was_asked_for_not_from_the_reply() -> None:
    async with on_a_store() as scene:
        node = await scene.node(1)
        node.engine.faults["duties_take"].append(Fault("slow_reply", 7))
        await until(lambda: not node.engine.faults["duties_take"])
        sent = trio.current_time()
        node.engine.faults["duties_renew"] += [Fault("slow_request", 60)]
        await until(lambda: node.leadership.held)
        await until(lambda: not node.leadership.held)
        assert trio.current_time() - sent <= 9.3


async def test_trust_in_a_duty_counts_from_when_its_renewal_was_sent() -> None:
    async with on_a_store() as scene:
        scene.pace = attrs.evolve(PACE, heartbeat_seconds=10 / 3)
        node = await scene.node(1)
        node.engine.faults["duties_renew"] += [Fault("slow_reply", 3), Fault("slow_request", 60)]
        await until(lambda: len(node.engine.faults["duties_renew"]) == 1)
        sent = trio.current_time()
        await until(lambda: not node.leadership.held)
        assert trio.current_time() - sent <= 9.3


@pytest.mark.parametrize("drains", [True, False])
@pytest.mark.parametrize("stop_seconds", [0.5, 6.0])  # after 6.0 its lease has run out
async def test_a_duty_is_not_released_before_its_work_has_ended(
    stop_seconds: float, drains: bool
) -> None:
    async with on_a_store() as scene:
        first = await scene.node(1)
        first.stop_seconds = stop_seconds
        await trio.sleep(10)
        second = await scene.node(2)
        if drains:
            await trio.sleep(1)
            first.scope.cancel()
        for _ in range(400):  # as the hint of a release does, and sooner
            await trio.sleep(0.1)
            second.leadership.wake()
        assert second.leadership.held
        assert not scene.overlaps


async def test_what_a_draining_node_did_others_do_soon() -> None:
    async with two_on_a_store() as (scene, first, second):
        first.scope.cancel()
        await scene.engine.nodes.leave(UUID(int=1))
        second.leadership.wake()  # as the hint does
        await trio.sleep(1)
        assert all_held(second) == sorted(NAMES)
        assert not scene.overlaps


async def test_a_dead_nodes_duties_are_taken_within_its_lease_and_a_little() -> None:
    async with two_on_a_store() as (scene, first, second):
        mine = first.leadership.held
        assert mine
        first.engine.away = True  # nothing of it reaches the store any more: as good as dead
        died = trio.current_time()
        while all_held(second) != sorted(NAMES):
            await trio.sleep(0.1)
            assert trio.current_time() - died < 10 + 2.5 + 2.5
        assert not scene.overlaps
        ended = [at for at, node, why, _ in scene.said if node == "node1" and why != "acquired"]
        taken = [at for at, node, what, _ in scene.said if node == "node2" and what == "acquired"]
        assert max(ended) < max(taken)


@pytest.mark.parametrize("seconds", [UNWANTED_SECONDS / 2, UNWANTED_SECONDS - 5])
async def test_a_survivor_offers_nothing_to_a_dead_node_that_counts_as_alive(
    seconds: float,
) -> None:
    """One that said it was resting may be silent for longer before it counts as dead."""
    async with two_on_a_store() as (scene, first, second):
        first.engine.away = True
        await until(lambda: all_held(second) == sorted(NAMES), 15)
        since = trio.current_time()
        await trio.sleep(seconds)
        assert [one for one in scene.said if one[0] > since and one[1] == "node2"] == []
        third = await scene.node(3)  # which is alive
        await until(lambda: bool(third.leadership.held), REBALANCE_SECONDS + 5)
        assert not scene.overlaps


async def test_a_survivor_keeps_its_duties_though_they_should_take_turns() -> None:
    async with two_on_a_store() as (scene, first, second):
        scene.pace = attrs.evolve(PACE, rotate_seconds=20.0)
        first.engine.away = True
        await until(lambda: all_held(second) == sorted(NAMES), 40)
        since = trio.current_time()
        await trio.sleep(UNWANTED_SECONDS - 5)
        assert [one for one in scene.said if one[0] > since and one[1] == "node2"] == []


async def test_a_renewal_whose_reply_is_lost_ends_the_term() -> None:
    async with on_a_store() as scene:
        node = await scene.node(1)
        await trio.sleep(3)
        node.engine.broken.add("duties_renew")
        await trio.sleep(3)
        assert ("its lease could not be renewed", "reaping") in {one[2:] for one in scene.said}
        node.engine.broken.clear()
        await trio.sleep(3)  # its own lease is not waited for: it has said that it is over
        assert all_held(node) == sorted(NAMES)
        assert not scene.overlaps


async def test_a_duty_that_fails_harms_no_other() -> None:
    async with on_a_store() as scene:
        node = await scene.node(1)
        node.fails.add("retention")
        await trio.sleep(60)
        found = {one.duty: one for one in await scene.engine.duties.duties()}
        assert found["retention"].last_error == "ZeroDivisionError: a fault of the program"
        assert 3 <= found["retention"].errors <= 20  # later each time
        assert scene.runs["reaping"] >= 40
        assert found["reaping"].errors == 0
        node.fails.clear()
        await trio.sleep(70)
        assert scene.runs["retention"] >= 1


async def test_many_nodes_ask_the_store_seldom() -> None:
    async with on_a_store() as scene:
        nodes = [await scene.node(number) for number in range(1, 51)]
        await trio.sleep(60)
        for node in nodes:
            node.engine.calls.clear()
        await trio.sleep(60)
        calls = sum(
            count
            for node in nodes
            for name, count in node.engine.calls.items()
            if name.startswith("duties_")
        )
        assert calls / 60 <= 5
        assert all_held(*nodes) == sorted(NAMES)
        assert not scene.overlaps


async def test_a_run_that_hangs_is_given_up_and_another_node_does_it() -> None:
    async with two_on_a_store() as (scene, first, second):
        (name, *_) = sorted(first.leadership.held)
        first.hangs.add(name)
        await trio.sleep(RUN_LIMIT_SECONDS / 2)
        found = {one.duty: one for one in await scene.engine.duties.duties()}
        assert (found[name].running_seconds or 0.0) > RUN_LIMIT_SECONDS / 4
        await trio.sleep(RUN_LIMIT_SECONDS / 2 + 10)
        assert name in second.leadership.held
        found = {one.duty: one for one in await scene.engine.duties.duties()}
        said = f"a run took longer than {RUN_LIMIT_SECONDS:g} s ([duties] run_limit_seconds)"
        assert found[name].last_error == said
        assert found[name].node == "node2"
        assert (said, name) in {one[2:] for one in scene.said}
        assert all_held(first, second) == sorted(NAMES), "the others stay where they are"
        assert not scene.overlaps


async def test_a_node_alone_takes_a_duty_back_that_it_gave_up() -> None:
    async with on_a_store() as scene:
        node = await scene.node(1)
        await trio.sleep(10)
        node.hangs.add("retention")
        await trio.sleep(RUN_LIMIT_SECONDS + 5)
        node.hangs.clear()
        runs = scene.runs["retention"]
        await trio.sleep(RUN_LIMIT_SECONDS)
        assert scene.runs["retention"] > runs
        assert all_held(node) == sorted(NAMES)


async def test_duties_take_turns_where_that_is_wanted() -> None:
    async with on_a_store() as scene:
        scene.pace = attrs.evolve(PACE, rotate_seconds=60.0)
        second, first = await scene.node(2), await scene.node(1)
        held: set[tuple[str, str]] = set()
        for _ in range(300):
            await trio.sleep(1)
            held |= {("node1", name) for name in first.leadership.held}
            held |= {("node2", name) for name in second.leadership.held}
        assert len(held) == 2 * len(NAMES)
        assert not scene.overlaps
        moved = [one for one in scene.said if one[2] == "it is the next node's turn"]
        assert len(moved) <= len(NAMES) * 300 / 60
