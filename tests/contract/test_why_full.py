"""Why a job waits while as many run in the whole store as may."""

from musterd.store.nodes import KnownKind
from musterd.store.reasons import Code
from tests.contract.asking import ask, codes, first, put_one
from tests.contract.job_tools import ending, ids, put, settle, visit
from tests.contract.rigs import Rig
from tests.support.beats import live_node

MEASURED = {"report": KnownKind(None, None, 100, 10.0, 0.0)}


async def claim(rig: Rig, workers: int, most: int, node: str = "north") -> list[int]:
    return ids((await visit(rig.engine, workers, leased_max=most, node=node)).claims)


async def test_a_job_says_that_all_that_may_run_are_running_and_where(rig: Rig) -> None:
    await live_node(rig.engine, "north", kinds=MEASURED, busy=2, idle=2, max_running=3)
    await live_node(rig.engine, "south", kinds=MEASURED, busy=1, idle=0, max_running=3)
    *_, last = await put(rig.engine, *[0] * 5)
    assert len(await claim(rig, 2, 3)) == 2
    assert len(await claim(rig, 2, 3, "south")) == 1
    found = await ask(rig, last)
    (reason,) = found.reasons
    assert reason.code is Code.STORE_LIMIT
    assert reason.text == (
        "of all jobs 3 may run at once: 3 are in hand (2 on north, 1 on south), and 1 job before it"
    )
    assert reason.who == "north, south"
    assert reason.what == {
        "limit": 3, "in_hand": 3, "before": 1, "nodes": {"north": 2, "south": 1},
    }  # fmt: skip
    assert reason.do == "wait, or raise limits.max_running"
    assert found.position is not None
    assert found.position.number == 2
    assert found.start is not None
    assert 0 < found.start.earliest_seconds <= 10 < (found.start.latest_seconds or 0) < 15


async def test_where_workers_are_wanted_that_is_said(rig: Rig) -> None:
    """There is room for more, and nobody to use it."""
    await live_node(rig.engine, busy=1, idle=0, max_running=5)
    *_, last = await put(rig.engine, *[0] * 9)
    assert len(await claim(rig, 1, 5)) == 1
    assert await codes(rig, last) == ["workers_busy"]


async def test_both_are_said_where_both_stop_it(rig: Rig) -> None:
    await live_node(rig.engine, busy=2, idle=0, max_running=2)
    *_, last = await put(rig.engine, *[0] * 4)
    await claim(rig, 2, 2)
    assert await codes(rig, last) == ["store_limit", "workers_busy"]


async def test_a_job_whose_turn_comes_when_the_room_is_gone_says_so(rig: Rig) -> None:
    """Idle workers enough, and room for one of two."""
    await live_node(rig.engine, busy=1, idle=5, max_running=2)
    *_, before, last = await put(rig.engine, *[0] * 3)
    await claim(rig, 1, 2)
    assert await codes(rig, before) == ["next_up"]
    assert await codes(rig, last) == ["store_limit"]


async def test_a_lower_bound_than_what_runs_and_one_that_is_gone(rig: Rig) -> None:
    beat = await live_node(rig.engine, idle=4, max_running=1)
    made = await put(rig.engine, *[0] * 3)
    await claim(rig, 2, 2)
    reason = await first(rig, made[2])
    assert reason.text == "of all jobs 1 may run at once: 2 are in hand (2 on north)"
    await live_node(rig.engine, node_id=beat.id, idle=4)
    assert await codes(rig, made[2]) == ["next_up"]


async def test_of_bounds_that_differ_the_smallest_counts(rig: Rig) -> None:
    await live_node(rig.engine, "north", max_running=7)
    await live_node(rig.engine, "south", max_running=2)
    await live_node(rig.engine, "east")
    made = await put(rig.engine, *[0] * 3)
    await claim(rig, 2, 2)
    assert ((await first(rig, made[2])).what or {})["limit"] == 2


async def test_what_holds_a_job_back_by_itself_comes_first(rig: Rig) -> None:
    await live_node(rig.engine, max_running=1)
    await put(rig.engine, 0)
    await claim(rig, 1, 1)
    late = await put_one(rig.engine, delay_seconds=100)
    assert await codes(rig, late) == ["not_due", "store_limit"]


async def test_a_settlement_makes_room(rig: Rig) -> None:
    await live_node(rig.engine, max_running=1)
    _, waiting = await put(rig.engine, 0, 0)
    (held,) = (await visit(rig.engine, leased_max=1)).claims
    assert await codes(rig, waiting) == ["store_limit"]
    await settle(rig.engine, ending(held))
    assert await codes(rig, waiting) == ["next_up"]


async def test_more_are_in_hand_than_are_named(rig: Rig) -> None:
    """Beyond what is looked at the number is still exact."""
    await live_node(rig.engine, max_running=2_100)
    made = await put(rig.engine, *[0] * 2_101)
    assert len(await claim(rig, 2_000, 2_100)) + len(await claim(rig, 200, 2_100)) == 2_100
    seen = await rig.engine.jobs.why_facts(made[-1])
    assert seen is not None
    assert (len(seen.leased), seen.leased_total) == (2_000, 2_100)
    assert (await first(rig, made[-1])).code is Code.STORE_LIMIT
