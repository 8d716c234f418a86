"""Duties: one holder at a time, by the store's clock and a term that fences."""

from random import Random
from uuid import UUID, uuid4

import pytest
import trio

from musterd.store.duties import DutyRecord, DutyReport, Holder
from musterd.store.nodes import LIVE_SECONDS
from tests.contract.rigs import PostgresRig, Rig, closing_engine
from tests.support.beats import live_node

LEASE_SECONDS = 10.0
BOTH = ("reaping", "retention")


def holder(node: str = "north", node_id: UUID | None = None) -> Holder:
    return Holder(node, node_id or uuid4(), uuid4(), LEASE_SECONDS)


async def record(rig: Rig, duty: str = "reaping") -> DutyRecord:
    (found,) = [one for one in await rig.engine.duties.duties() if one.duty == duty]
    return found


async def test_a_free_duty_is_taken_once(rig: Rig) -> None:
    duties, first = rig.engine.duties, holder()
    assert (await duties.look(BOTH)).free == BOTH
    assert await duties.take(BOTH, first) == frozenset(BOTH)
    assert await duties.take(BOTH, holder("south")) == frozenset()
    assert await duties.take(BOTH, first) == frozenset()
    held = await record(rig)
    assert (held.node, held.node_id, held.hand_overs) == ("north", first.node_id, 0)
    assert held.lease_seconds_left is not None
    assert LEASE_SECONDS - 5 < held.lease_seconds_left <= LEASE_SECONDS


async def test_a_duty_is_free_when_its_lease_has_run_out(rig: Rig) -> None:
    duties, first, second = rig.engine.duties, holder(), holder("south")
    await duties.take(("reaping",), first)
    rig.pass_time(LEASE_SECONDS + 1)
    assert (await duties.look(BOTH)).free == BOTH
    assert (await record(rig)).node is None
    assert await duties.take(BOTH, second) == frozenset(BOTH)
    found = await record(rig)
    assert (found.node, found.hand_overs) == ("south", 1)
    # The first one comes back, and is told that it is no longer meant.
    assert await duties.renew([DutyReport("reaping", first.term)], LEASE_SECONDS) == frozenset()
    assert (await record(rig)).node == "south"


async def test_a_renewal_extends_and_notes_what_was_done(rig: Rig) -> None:
    duties, first = rig.engine.duties, holder()
    await duties.take(BOTH, first)
    rig.pass_time(7)
    done = DutyReport("reaping", first.term, runs=3, items=41, errors=1, last_error="no disk")
    assert await duties.renew([done], LEASE_SECONDS) == {"reaping"}
    rig.pass_time(7)
    assert (await duties.look(BOTH)).free == ("retention",)
    again = DutyReport("reaping", first.term, runs=1, items=1)
    assert await duties.renew([again], LEASE_SECONDS) == {"reaping"}
    found = await record(rig)
    said = (found.runs, found.items, found.errors, found.last_error)
    assert said == (4, 42, 1, "no disk")
    assert found.last_run_at is not None
    assert (await record(rig, "retention")).last_run_at is None


async def test_a_lease_that_ran_out_but_was_taken_by_nobody_is_still_its_holders(rig: Rig) -> None:
    duties, first = rig.engine.duties, holder()
    await duties.take(("reaping",), first)
    rig.pass_time(LEASE_SECONDS + 1)
    assert await duties.renew([DutyReport("reaping", first.term)], LEASE_SECONDS) == {"reaping"}
    assert await duties.take(("reaping",), holder("south")) == frozenset()


async def test_a_duty_that_is_given_up_is_free_at_once(rig: Rig) -> None:
    duties, first = rig.engine.duties, holder()
    await duties.take(BOTH, first)
    await duties.release([DutyReport("reaping", first.term, runs=1, items=5)])
    assert (await duties.look(BOTH)).free == ("reaping",)
    found = await record(rig)
    assert (found.node, found.items) == (None, 5)
    await duties.release([DutyReport("reaping", first.term)])  # no harm
    second = holder("south")
    assert await duties.take(BOTH, second) == {"reaping"}
    await duties.release([DutyReport("reaping", first.term)])  # too late: another's now
    assert (await record(rig)).node == "south"


async def test_the_same_node_taking_its_own_duty_again_is_no_hand_over(rig: Rig) -> None:
    node_id = uuid4()
    await rig.engine.duties.take(("reaping",), holder("north", node_id))
    rig.pass_time(LEASE_SECONDS + 1)
    await rig.engine.duties.take(("reaping",), holder("north", node_id))
    assert (await record(rig)).hand_overs == 0


async def test_a_look_tells_when_the_next_runs_out_and_how_many_nodes_live(rig: Rig) -> None:
    for name in ("north", "south", "east"):
        await live_node(rig.engine, name)
    await rig.engine.duties.take(("reaping",), holder())
    rig.pass_time(4)
    await rig.engine.duties.take(("retention",), holder())
    news = await rig.engine.duties.look(BOTH)
    assert (news.free, news.live_nodes) == ((), 3)
    assert news.seconds_until_free is not None
    assert 1 < news.seconds_until_free <= 6
    rig.pass_time(LIVE_SECONDS)
    assert (await rig.engine.duties.look(BOTH)).live_nodes == 0


async def test_nobody_has_a_duty_that_nobody_took(rig: Rig) -> None:
    assert await rig.engine.duties.duties() == []
    news = await rig.engine.duties.look(BOTH)
    assert (news.seconds_until_free, news.live_nodes) == (None, 0)


@pytest.mark.parametrize("seed", range(3))
async def test_of_many_at_once_one_gets_each(shared: Rig, seed: int) -> None:
    """Takers, renewers and those who give up, all at once, on two engines: never two holders."""
    rng = Random(seed)
    holders: dict[str, int] = dict.fromkeys(BOTH, 0)

    async def contend(number: int) -> None:
        duties = engines[number % 2].duties
        for _ in range(12):
            me = holder(f"node{number}")
            mine = await duties.take(BOTH, me)
            for duty in mine:
                holders[duty] += 1
                assert holders[duty] == 1
            await trio.sleep(rng.random() / 200)
            reports = [DutyReport(duty, me.term) for duty in sorted(mine)]
            assert await duties.renew(reports, LEASE_SECONDS) == mine
            for duty in mine:
                holders[duty] -= 1
            await duties.release(reports)

    another = shared.another()
    async with closing_engine(another):
        await another.open()
        engines = (shared.engine, another)
        async with trio.open_nursery() as nursery:
            for number in range(6):
                nursery.start_soon(contend, number)
    assert holders == dict.fromkeys(BOTH, 0)


async def test_giving_up_wakes_those_who_wait(postgres_rig: PostgresRig) -> None:
    rig, me = postgres_rig, holder()
    await rig.engine.duties.take(BOTH, me)
    another = rig.another()
    async with closing_engine(another):
        await another.open()
        await another.queue.wait_for_hint()  # what may have been missed before
        with trio.fail_after(5):
            await rig.engine.duties.release([DutyReport(BOTH[0], me.term)])
            while not (await another.queue.wait_for_hint()).duties:
                pass
