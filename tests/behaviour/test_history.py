"""What nodes add to the history of a queue: exact counts of what they ran, and nothing at rest."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
import trio

from musterd import __version__
from musterd.manager.duties.duty import STATISTICS
from musterd.manager.metrics.history import LOOK_SECONDS_LISTENING, LOOK_SECONDS_RESTING
from musterd.store.history import ALL, KINDS_NAMED, STEP_SECONDS, Past
from tests.behaviour.test_idleness import Hearing
from tests.support.faulty_engine import Fault
from tests.support.stage import Stage, kind, open_stage, until

WRITTEN_SECONDS = 2.0 * STEP_SECONDS + 2  # whatever has happened is in the store by then


@pytest.fixture
async def hearing() -> AsyncGenerator[Hearing]:
    async with open_stage(Hearing) as opened:
        yield opened


async def past_of(stage: Stage, step: int = 600) -> Past:
    now = await stage.store.engine.health.now()
    return await stage.store.engine.history.read(step, now - 50 * 3600, now + 1)


def ended(past: Past, *, named: bool = True) -> dict[str, tuple[int, int, int, int]]:
    """By kind, or of all together: succeeded, failed, canceled, retried."""
    found: dict[str, tuple[int, int, int, int]] = {}
    for row in past.kinds:
        if (row.ended.kind != ALL) is not named:
            continue
        before = found.get(row.ended.kind, (0, 0, 0, 0))
        one, two, three, four = (a + b for a, b in zip(before, row.ended[1:5], strict=True))
        found[row.ended.kind] = (one, two, three, four)
    return found


async def test_every_end_of_every_node_is_counted_once(stage: Stage) -> None:
    for name in ("north", "south"):
        await stage.start(name)
    await stage.put("brief", 200)
    await stage.put("broken", 7)
    await stage.put("flaky", 5)  # fails twice, then succeeds
    await stage.put("declined", 3)
    await stage.all_ended()
    await trio.sleep(WRITTEN_SECONDS)
    past = await past_of(stage)
    assert ended(past) == {
        "brief": (200, 0, 0, 0), "broken": (0, 7, 0, 0), "flaky": (5, 0, 0, 10),
        "declined": (0, 0, 3, 0),
    }  # fmt: skip
    assert ended(past, named=False) == {ALL: (205, 7, 3, 10)}
    for rows in (
        [row.ended for row in past.kinds if row.ended.kind],
        [row.ended for row in past.kinds if row.ended.kind == ALL],
    ):
        waits = sum(sum(row.waits) for row in rows)
        runs = sum(sum(row.runs) for row in rows)
        assert waits == runs == 200 + 7 + 15 + 3


async def test_the_queue_and_the_crew_are_seen_at_their_highest(stage: Stage) -> None:
    await stage.start(workers__max_count=6)
    await trio.sleep(STEP_SECONDS)
    await stage.put("report", 60)
    await stage.all_ended()
    await trio.sleep(WRITTEN_SECONDS)
    looks = [row.look for row in (await past_of(stage)).queue]
    assert max(look.crew for look in looks) == 6
    assert max(look.max_count for look in looks) == 6
    assert max(look.depth for look in looks) >= 7  # which the next look found gone
    assert max(look.wish for look in looks) > 6


async def test_what_happens_to_a_node_is_marked(stage: Stage) -> None:
    node = await stage.start("north")
    await trio.sleep(WRITTEN_SECONDS)
    await node.stop()
    marks = [row.mark for row in (await past_of(stage)).marks]
    assert [(one.what, one.node, one.said) for one in marks] == [
        (f"node.{what}", "north", __version__) for what in ("started", "draining", "stopped")
    ]


async def test_what_a_node_ran_just_before_it_left_is_there(stage: Stage) -> None:
    node = await stage.start()
    await stage.put("brief", 9)
    await stage.all_ended()
    await node.stop()
    assert ended(await past_of(stage)) == {"brief": (9, 0, 0, 0)}


async def test_while_the_store_is_away_counting_goes_on(stage: Stage) -> None:
    await stage.start()
    await stage.put("brief", 4)
    await stage.all_ended()
    stage.store.broken.add("history_add")
    await trio.sleep(3 * STEP_SECONDS)
    await stage.put("brief", 3)
    await trio.sleep(3 * STEP_SECONDS)
    assert ended(await past_of(stage)) == {}
    stage.store.broken.clear()
    await trio.sleep(WRITTEN_SECONDS)
    assert ended(await past_of(stage)) == {"brief": (7, 0, 0, 0)}


async def test_what_may_have_been_written_is_not_counted_twice(stage: Stage) -> None:
    await stage.start()
    await trio.sleep(WRITTEN_SECONDS)
    stage.store.faults["history_add"].append(Fault("reply_lost"))
    await stage.put("brief", 4)
    await stage.all_ended()
    await trio.sleep(3 * WRITTEN_SECONDS)
    assert ended(await past_of(stage)) == {"brief": (4, 0, 0, 0)}


async def test_kinds_beyond_the_bound_are_counted_together(stage: Stage) -> None:
    names = [f"kind-{place:03}" for place in range(KINDS_NAMED + 9)]
    stage.kinds |= {name: kind(name) for name in names}
    await stage.start()
    await trio.sleep(STEP_SECONDS)
    for name in names:
        await stage.put(name, 1)
    await stage.all_ended()
    await trio.sleep(WRITTEN_SECONDS)
    past = await past_of(stage)
    assert ended(past, named=False) == {ALL: (len(names), 0, 0, 0)}
    assert set(ended(past).values()) == {(1, 0, 0, 0)}
    assert len(ended(past)) == KINDS_NAMED


async def test_a_node_at_rest_looks_seldom_and_writes_nothing(hearing: Hearing) -> None:
    node, calls = await hearing.start(), hearing.store.calls
    await until(lambda: node.tenancy().duties.holds(STATISTICS))
    await trio.sleep(180)

    async def looks_in(seconds: float) -> int:
        looks, adds = calls["history_look"], calls["history_add"]
        await trio.sleep(seconds)
        assert calls["history_add"] == adds
        return calls["history_look"] - looks

    assert await looks_in(600) <= 600 / (0.8 * LOOK_SECONDS_LISTENING) + 1
    node.tenancy().idleness.begin_scan(lambda: None)
    await trio.sleep(120)
    assert await looks_in(3 * LOOK_SECONDS_RESTING) <= 4
    looks = calls["history_look"]
    node.tenancy().end_scan()  # a rest ends at once
    await hearing.put("long")
    await trio.sleep(STEP_SECONDS)
    assert calls["history_look"] > looks


async def test_after_a_burst_the_queue_is_seen_empty_before_looks_are_rare(
    hearing: Hearing,
) -> None:
    node = await hearing.start(workers__max_count=6)
    await until(lambda: node.tenancy().duties.holds(STATISTICS))
    await hearing.put("report", 60)
    await hearing.all_ended()
    await trio.sleep(600)
    for step in (15, 60):
        last = (await past_of(hearing, step)).queue[-1].look
        assert (last.depth, last.wish, last.crew) == (0, 0, 2)
        calm = [row.look for row in (await past_of(hearing, step)).queue if row.look.depth == 0]
        assert calm
        busy = [row.look for row in (await past_of(hearing, step)).queue if row.look.depth > 0]
        assert all(look.stands_seconds < LOOK_SECONDS_LISTENING for look in busy)
