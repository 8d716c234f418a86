"""The past of the queue: what nodes tell is added up in the rows of its step, and kept a while."""

from random import Random

import pytest
import trio

from musterd.store.history import (
    ALL,
    BOUNDS_SECONDS,
    KEPT_SECONDS,
    STEP_SECONDS,
    STEPS_SECONDS,
    EndedJobs,
    Mark,
    Past,
    QueueLook,
    counted,
    quantile,
)
from tests.contract.rigs import Rig

HOURS_48 = 48 * 3600.0
QUIET = QueueLook(0, 0.0, 2, 0, 8, 40.0)


async def all_of(rig: Rig, step: int) -> Past:
    now = await rig.engine.health.now()
    return await rig.engine.history.read(step, now - HOURS_48, now + 1)


def age_all(rig: Rig, seconds: float) -> None:
    """As if it had been told so long ago."""
    for table in ("history_queue", "history_kinds", "history_marks"):
        rig.raw(f"update {table} set at_seconds = at_seconds - {seconds:g}")


async def test_what_nodes_tell_of_a_step_is_one_row_for_each_kind_and_length(rig: Rig) -> None:
    add = rig.engine.history.add
    await add([EndedJobs("a", 3, 1, 0, 2, [1, 2], [0, 0, 4]), EndedJobs("b", 1)], [])
    await add([EndedJobs("a", 2, 0, 1, 0, [5], [1, 1, 1, 1])], [])
    for step in STEPS_SECONDS:
        found = [one.ended for one in (await all_of(rig, step)).kinds]
        if len(found) == 2:  # else the clock has passed a boundary between the two
            assert found == [
                EndedJobs("a", 5, 1, 1, 2, [6, 2], [1, 1, 5, 1]),
                EndedJobs("b", 1, waits=[], runs=[]),
            ]
        assert sum(one.succeeded for one in found) == 6
        assert sum(sum(one.runs) for one in found) == 8


async def test_rows_begin_where_their_steps_do(rig: Rig) -> None:
    at = await rig.engine.history.add([EndedJobs("a", 1)], [])
    await rig.engine.history.look(QUIET)
    for step in STEPS_SECONDS:
        past = await all_of(rig, step)
        assert [past.queue[0].at % step, past.kinds[0].at % step] == [0, 0]
        moment = at - STEP_SECONDS / 2  # a step is told of when it is over
        assert 0 <= moment - past.kinds[0].at < step
        assert -1 <= at - past.queue[0].at < step + 1


async def test_a_row_has_the_highest_of_what_was_seen(rig: Rig) -> None:
    await rig.engine.history.look(QueueLook(7, 1.5, 2, 9, 8, 40.0))
    await rig.engine.history.look(QueueLook(3, 2.5, 4, 3, 8, 660.0))
    past = await all_of(rig, 600)
    if len(past.queue) == 1:
        assert past.queue[0].look == QueueLook(7, 2.5, 4, 9, 8, 660.0)
    assert max(one.look.depth for one in past.queue) == 7


async def test_all_kinds_together_can_be_read_alone(rig: Rig) -> None:
    await rig.engine.history.add([EndedJobs("a", 1), EndedJobs(ALL, 3)], [])
    now = await rig.engine.health.now()
    past = await rig.engine.history.read(15, now - 60, now + 1, by_kind=False)
    assert [one.ended.succeeded for one in past.kinds] == [3]


async def test_marks_are_kept_as_they_were_written(rig: Rig) -> None:
    marks = [Mark("node.started", "north", "1.2"), Mark("config.reloaded", "north", "applied")]
    at = await rig.engine.history.add([], marks)
    found = (await all_of(rig, 15)).marks
    assert sorted(one.mark for one in found) == sorted(marks)
    assert [one.at for one in found] == pytest.approx([at, at], abs=0.001)


async def test_only_the_span_that_was_asked_for_is_read_the_oldest_first(rig: Rig) -> None:
    for _ in range(4):
        await rig.engine.history.look(QUIET)
        await rig.engine.history.add([EndedJobs("a", 1)], [])
        age_all(rig, 60)
    past = await all_of(rig, 15)
    assert [one.at for one in past.queue] == sorted({one.at for one in past.queue})
    since, until = past.queue[1].at, past.queue[3].at
    found = await rig.engine.history.read(15, since, until)
    assert [one.at for one in found.queue] == [one.at for one in past.queue[1:3]]
    assert all(since <= one.at < until for one in found.kinds)


async def test_rows_go_when_their_time_is_over_and_not_before(rig: Rig) -> None:
    history = rig.engine.history

    async def lengths() -> list[int]:
        now = await rig.engine.health.now()
        pasts = [await history.read(step, now - 10 * HOURS_48, now + 1) for step in STEPS_SECONDS]
        return [len(past.queue) + len(past.kinds) for past in pasts]

    await history.look(QUIET)
    await history.add([EndedJobs("a", 1)], [Mark("node.started", "north")])
    assert await history.trim(HOURS_48, 100) == 0
    assert await lengths() == [2, 2, 2]
    age_all(rig, KEPT_SECONDS[0] + 60)
    assert await history.trim(HOURS_48, 100) == 2
    assert await lengths() == [0, 2, 2]
    age_all(rig, KEPT_SECONDS[1])
    assert await history.trim(HOURS_48, 100) == 2
    assert await lengths() == [0, 0, 2]
    age_all(rig, HOURS_48)
    assert await history.trim(HOURS_48, 100) == 3  # with the mark
    assert await lengths() == [0, 0, 0]


async def test_a_short_history_is_short_in_all_lengths(rig: Rig) -> None:
    await rig.engine.history.look(QUIET)
    age_all(rig, 1300)
    assert await rig.engine.history.trim(600, 100) == 3


async def test_trimming_goes_by_batches(rig: Rig) -> None:
    await rig.engine.history.add([EndedJobs(f"kind {place}", 1) for place in range(5)], [])
    age_all(rig, 2 * HOURS_48)
    assert await rig.engine.history.trim(HOURS_48, 2) == 6  # two of each length
    assert await rig.engine.history.trim(HOURS_48, 2) == 6
    assert await rig.engine.history.trim(HOURS_48, 2) == 3
    assert await rig.engine.history.trim(HOURS_48, 2) == 0


async def test_any_name_and_any_number_comes_back(rig: Rig) -> None:
    ended = EndedJobs("", 2**40, 0, 0, 0, counted([0.0, 1e9]), counted([3.0] * 5))
    odd = EndedJobs("ключ \"'{},\\", 1, waits=[], runs=[])
    await rig.engine.history.add([ended, odd], [])
    found = {one.ended.kind: one.ended for one in (await all_of(rig, 600)).kinds}
    assert found == {"": ended, odd.kind: odd}


async def test_the_past_outlives_whoever_wrote_it(shared: Rig) -> None:
    await shared.engine.history.add([EndedJobs("a", 4)], [Mark("node.stopped", "north")])
    other = shared.another()
    await other.open()
    try:
        now = await other.health.now()
        past = await other.history.read(15, now - 3600, now + 1)
    finally:
        with trio.move_on_after(10, shield=True):
            await other.close()
    assert [one.ended.succeeded for one in past.kinds] == [4]
    assert [one.mark.what for one in past.marks] == ["node.stopped"]


def test_quantiles_from_counts_are_near_the_true_ones() -> None:
    dice = Random(4)
    values = sorted(dice.lognormvariate(-1, 1.5) for _ in range(2000))
    counts = counted(values)
    assert sum(counts) == 2000
    for share in (0.5, 0.95, 0.99):
        found, true = quantile(counts, share), values[int(share * 2000) - 1]
        assert found is not None
        assert true / 1.42 <= found <= true * 1.42


def test_quantiles_at_the_edges() -> None:
    assert quantile([], 0.5) is None
    assert quantile([0, 0], 0.5) is None
    assert quantile(counted([0.0]), 0.5) == pytest.approx(0.0005)
    assert quantile(counted([10 * BOUNDS_SECONDS[-1]]), 0.95) == BOUNDS_SECONDS[-1]
