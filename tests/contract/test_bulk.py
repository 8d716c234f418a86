"""Bulk actions: which jobs are meant, what becomes of them, and what others do meanwhile."""

import psycopg
import pytest
import trio

from musterd.store import bulk
from musterd.store.control import Selection, states_for
from musterd.store.jobs import NewJob
from musterd.store.lifecycle import Action, JobState
from tests.contract.job_tools import ending, put, settle, state_of, take
from tests.contract.rigs import PostgresRig, Rig
from tests.contract.target_tools import put_target, take_all
from tests.contract.test_laws import bring_to

WAITS = """
    select 1 from pg_stat_activity
    where wait_event_type = 'Lock' and datname = current_database()
"""
F, Q, R, Z, C = (
    JobState.FAILED, JobState.QUEUED, JobState.RUNNING, JobState.PAUSED, JobState.CANCELED,
)  # fmt: skip


async def matched(rig: Rig, which: Selection) -> list[int]:
    """Looked for in spans of two, so that each end of a span is met."""
    found: list[int] = []
    after: int | None = 0
    while after is not None:
        look = await rig.engine.control.select(which, after, 2)
        found += [one.id for one in look.fitting]
        after = look.through_id
    return found


async def failed(rig: Rig, count: int, kind: str = "a") -> list[int]:
    ids = await rig.engine.jobs.enqueue([NewJob(kind)] * count)
    claims = await take(rig.engine, workers=count)
    await settle(rig.engine, *(ending(claim, F) for claim in claims))
    return ids


async def do(rig: Rig, action: Action, which: Selection, limit: int | None = None) -> bulk.Tally:
    which = await bulk.pin(rig.engine, which)
    return await bulk.act(rig.engine, bulk.Order(action, which, limit, lambda _: True))


async def until_somebody_waits(rig: PostgresRig) -> None:
    with trio.fail_after(20):
        while not rig.raw(WAITS):  # noqa: ASYNC110 - only asking again tells
            await trio.sleep(0.005)


@pytest.mark.parametrize("state", JobState)
async def test_each_state_is_found_alone_and_among_all(rig: Rig, state: JobState) -> None:
    job_id = await bring_to(rig, state)
    others = tuple(one for one in JobState if one is not state)
    assert job_id in await matched(rig, Selection((state,)))
    assert job_id not in await matched(rig, Selection(others))
    assert job_id in await matched(rig, Selection(tuple(JobState)))


async def test_what_is_looked_for_must_fit_in_every_respect(rig: Rig) -> None:
    ids = await rig.engine.jobs.enqueue(
        [NewJob("a", priority=1), NewJob("b, \\ \"{c}'"), NewJob("b, \\ \"{c}'", priority=1)]
    )
    rig.raw(f"update job_rows set target = 'x,\"y' where id = {ids[2]}")
    odd = "b, \\ \"{c}'"
    assert await matched(rig, Selection((Q,))) == ids
    assert await matched(rig, Selection((Q,), kinds=(odd,))) == ids[1:]
    assert await matched(rig, Selection((Q,), kinds=(odd, "a"), priorities=(1, 7))) == [
        ids[0], ids[2],
    ]  # fmt: skip
    assert await matched(rig, Selection((Q,), targets=('x,"y', "z"))) == ids[2:]
    assert await matched(rig, Selection((Q,), targets=("z",))) == []
    assert await matched(rig, Selection((Q,), until_id=ids[0])) == ids[:1]


async def test_age_counts_from_the_end_or_from_the_creation(rig: Rig) -> None:
    await put(rig.engine, 0, 0)
    rig.pass_time(100)
    (claim,) = await take(rig.engine)
    await settle(rig.engine, ending(claim, F))  # it has failed one second ago
    old = Selection((F, Q), older_seconds=50)
    assert await matched(rig, old) == [claim.id + 1]
    rig.pass_time(100)
    assert await matched(rig, old) == [claim.id, claim.id + 1]
    assert await matched(rig, Selection((F, Q), older_seconds=150)) == [claim.id + 1]


async def test_cleared_jobs_are_never_meant(rig: Rig) -> None:
    first, second = await failed(rig, 2)
    await rig.engine.control.apply(Action.CLEAR, first)
    assert await matched(rig, Selection((F,))) == [second]
    assert (await do(rig, Action.CLEAR, Selection((F,)))).done == 1
    assert await matched(rig, Selection((F,))) == []


async def test_all_that_fit_are_done_and_counted(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "BATCH", 3)
    monkeypatch.setattr(bulk, "LOOK_ROWS", 5)
    ids = await failed(rig, 11)
    others = await failed(rig, 2, kind="b")
    which = Selection((F,), kinds=("a",))
    found = await bulk.survey(rig.engine, which, None)
    assert (found.matched, found.whole) == (11, True)
    assert [(one.state, one.kind, one.count, one.ids) for one in found.groups] == [
        (F, "a", 11, ids[:5])
    ]
    assert (await bulk.survey(rig.engine, which, 4)).matched == 4
    assert (await do(rig, Action.RESUME, which, limit=4)).done == 4
    tally = await do(rig, Action.RESUME, which)
    assert (tally.done, tally.skipped, tally.stopped) == (7, 0, False)
    assert {await state_of(rig.engine, one) for one in ids} == {Q}
    assert {await state_of(rig.engine, one) for one in others} == {F}
    counts = (await rig.engine.queue.counts()).by_state
    assert (counts[Q], counts[F]) == (11, 2)


async def test_a_count_ends_above_its_bound(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "COUNT_MAX", 7)
    monkeypatch.setattr(bulk, "LOOK_ROWS", 7)
    await put(rig.engine, *[0] * 8)
    found = await bulk.survey(rig.engine, Selection((Q,)), None)
    assert (found.matched, found.whole) == (7, False)


async def test_jobs_that_come_later_are_not_meant(rig: Rig) -> None:
    (first,) = await put(rig.engine, 0)
    which = await bulk.pin(rig.engine, Selection((Q,)))
    (later,) = await put(rig.engine, 0)
    await bulk.act(rig.engine, bulk.Order(Action.CANCEL, which, None, lambda _: True))
    assert await state_of(rig.engine, first) is C
    assert await state_of(rig.engine, later) is Q
    nothing = await bulk.pin(rig.engine, Selection((Z,)))
    assert (await do(rig, Action.CANCEL, nothing)).done == 0


async def test_holders_are_asked_and_a_pause_takes_back_no_cancel(rig: Rig) -> None:
    ids = await put(rig.engine, 0, 0)
    await take(rig.engine, workers=2)
    await rig.engine.control.apply(Action.CANCEL, ids[0])
    tally = await do(rig, Action.PAUSE, Selection(states_for(Action.PAUSE)))
    assert (tally.done, tally.requested, tally.refused) == (1, 1, 1)
    requests = [(await rig.engine.jobs.get(one)) for one in ids]
    assert [one.request for one in requests if one] == ["cancel", "pause"]


async def test_a_job_that_changed_meanwhile_is_left_out(rig: Rig) -> None:
    first, second = await failed(rig, 2)
    await rig.engine.control.apply(Action.RESUME, first)
    step = await rig.engine.control.apply_many(
        Action.CANCEL, [first, second, 999], Selection((F, Z))
    )
    assert (list(step.done), list(step.refused), list(step.busy)) == ([], [second], [])
    assert await state_of(rig.engine, first) is Q  # a cancel would be allowed, but it has changed


async def test_a_job_that_was_claimed_meanwhile_is_left_out(rig: Rig) -> None:
    first, second = await put(rig.engine, 0, 0)
    assert [claim.id for claim in await take(rig.engine)] == [first]
    step = await rig.engine.control.apply_many(Action.CANCEL, [first, second], Selection((Q,)))
    assert (list(step.done), list(step.requested), list(step.refused)) == ([second], [], [])
    assert await state_of(rig.engine, first) is R


async def test_it_stops_between_two_batches(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "BATCH", 3)
    await put(rig.engine, *[0] * 10)
    tally = await bulk.act(
        rig.engine, bulk.Order(Action.CANCEL, Selection((Q,)), None, lambda t: t.done < 6)
    )
    assert (tally.done, tally.stopped) == (6, True)
    assert (await rig.engine.queue.counts()).by_state[C] == 6


async def test_many_of_a_target_are_done_at_once(rig: Rig) -> None:
    """Each that is canceled passes the target on to the next of them."""
    ids = await put_target(rig.engine, 0, 0, 0)
    (claim,) = await take_all(rig.engine)
    await settle(rig.engine, ending(claim, Q))
    which = Selection(states_for(Action.CANCEL))
    step = await rig.engine.control.apply_many(Action.CANCEL, ids, which)
    assert (step.done, step.busy) == (frozenset(ids), frozenset())


async def test_a_job_that_somebody_writes_to_is_tried_again_and_then_left(
    postgres_rig: PostgresRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "PAUSE_SECONDS", 0.001)
    rig = postgres_rig
    first, second = await put(rig.engine, 0, 0)
    with psycopg.connect(rig.url) as holder:
        holder.execute("select from musterd.job_rows where id = %s for update", (first,))
        tally = await do(rig, Action.CANCEL, Selection((Q,)))
    assert (tally.done, tally.busy, tally.changed) == (1, 1, 0)
    assert await state_of(rig.engine, first) is Q
    assert await state_of(rig.engine, second) is C
    assert (await do(rig, Action.CANCEL, Selection((Q,)))).done == 1


async def test_it_holds_no_job_while_it_waits_for_a_target(postgres_rig: PostgresRig) -> None:
    """Whoever passes the target on wants that job next: each would wait for the other."""
    rig = postgres_rig
    _first, behind, _last = await put_target(rig.engine, 0, 0, 0)
    await take_all(rig.engine)
    with psycopg.connect(rig.url) as passing_on:
        passing_on.execute("select from musterd.target_holders for update")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                rig.engine.control.apply_many, Action.CANCEL, [behind], Selection((Q,))
            )
            await until_somebody_waits(rig)
            take_it = "select from musterd.job_rows where id = %s for update nowait"
            passing_on.execute(take_it, (behind,))
            passing_on.commit()
    assert await state_of(rig.engine, behind) is C


async def test_it_waits_for_no_targets_but_those_of_its_jobs(postgres_rig: PostgresRig) -> None:
    rig = postgres_rig
    (mine,) = await put_target(rig.engine, 0, target="mine")
    await put_target(rig.engine, 0, target="other")
    assert len(await take_all(rig.engine)) == 2
    with psycopg.connect(rig.url) as passing_on:
        passing_on.execute("select from musterd.target_holders where target = 'other' for update")
        step = await rig.engine.control.apply_many(Action.CANCEL, [mine], Selection((R,)))
    assert step.requested == {mine}
