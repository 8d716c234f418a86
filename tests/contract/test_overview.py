"""The board: jobs for a screen, narrow and bounded, in an order that people expect."""

import pytest

from musterd.store.jobs import NewJob
from musterd.store.lifecycle import Action, AttemptOutcome, JobState
from musterd.store.overview import (
    ENDS_LOOKED,
    FAILING_KINDS_MAX,
    FAILING_SECONDS,
    KindEnds,
    OverviewFilter,
)
from tests.contract.job_tools import ending, put, settle, take, take_one
from tests.contract.rigs import Rig

ERROR = '{"type": "Boom", "message": "no \\u001b[2J luck"}'
ALL = tuple(JobState)


async def ids(rig: Rig, which: OverviewFilter | None = None) -> list[int]:
    return [job.id for job in (await rig.engine.overview.jobs(which or OverviewFilter())).jobs]


async def test_an_empty_store_has_an_empty_board(rig: Rig) -> None:
    view = await rig.engine.overview.jobs(OverviewFilter(states=ALL))
    assert view.jobs == ()
    assert view.now.utcoffset() is not None


async def test_in_hand_comes_first_then_the_line_in_the_order_of_claims(rig: Rig) -> None:
    first, low, high = await put(rig.engine, 5, 0, 9)
    (late,) = await rig.engine.jobs.enqueue([NewJob("report", priority=9, delay_seconds=60)])
    claim = await take_one(rig.engine)
    assert claim.id == high
    await settle(rig.engine, ending(claim, JobState.FAILED, error=ERROR))
    held = await take_one(rig.engine)
    assert held.id == first
    assert await ids(rig) == [first, late, low, high]
    view = await rig.engine.overview.jobs(OverviewFilter())
    assert [job.state.value for job in view.jobs] == ["running", "queued", "queued", "failed"]
    assert (view.jobs[0].node, view.jobs[0].worker) == ("north", 1)
    assert view.jobs[-1].remark == "Boom: no \\x1b[2J luck"
    assert view.jobs[0].created_at <= view.now


async def test_each_sort_is_bounded_and_the_newest_of_those_at_rest_come_first(rig: Rig) -> None:
    made = await rig.engine.jobs.enqueue([NewJob("a", hold=True) for _ in range(6)])
    waiting = await put(rig.engine, *[0] * 6)
    found = await ids(rig, OverviewFilter((JobState.QUEUED, JobState.PENDING), bound=2, span=2))
    assert found == [*waiting[:2], *reversed(made[-2:])]


async def test_a_filter_looks_through_a_span_of_each_sort_and_no_further(rig: Rig) -> None:
    many = await put(rig.engine, *[0] * 5)
    (rare,) = await put(rig.engine, 0, kind="rare")
    assert await ids(rig, OverviewFilter(kind="rare", span=6)) == [rare]
    assert await ids(rig, OverviewFilter(kind="rare", span=5)) == []
    assert await ids(rig, OverviewFilter(kind="report", bound=2, span=6)) == many[:2]


async def test_states_and_targets_are_filtered(rig: Rig) -> None:
    one, two, three = await rig.engine.jobs.enqueue(
        [NewJob("a", target=t) for t in ("x", "x", "y")]
    )
    await rig.engine.control.apply(Action.CANCEL, three)
    assert await ids(rig, OverviewFilter((JobState.CANCELED,))) == [three]
    assert await ids(rig, OverviewFilter(target="x")) == [one, two]
    claim = await take_one(rig.engine)
    await settle(rig.engine, ending(claim))
    assert await ids(rig, OverviewFilter((JobState.SUCCEEDED,))) == [claim.id]
    assert sorted(await ids(rig, OverviewFilter(ALL))) == [one, two, three]


async def test_who_waits_behind_another_says_so(rig: Rig) -> None:
    first, second = await rig.engine.jobs.enqueue(
        [NewJob("a", target="x"), NewJob("a", target="x")]
    )
    claims = await take(rig.engine, workers=2)
    assert [claim.id for claim in claims] == [first]
    found = {job.id: job for job in (await rig.engine.overview.jobs(OverviewFilter())).jobs}
    assert (found[first].behind, found[second].behind) == (False, True)


async def test_no_payload_is_read(rig: Rig) -> None:
    await rig.engine.jobs.enqueue([NewJob("a", '{"secret": 1}')])
    (job,) = (await rig.engine.overview.jobs(OverviewFilter())).jobs
    assert "secret" not in repr(job)


async def test_troubles_of_a_quiet_store_are_none(rig: Rig) -> None:
    found = await rig.engine.overview.troubles()
    assert (found.halted_targets, found.halted_first, found.oldest_id) == (0, (), None)
    assert found.leases_overdue == 0


async def test_halted_targets_the_oldest_job_and_late_leases_are_troubles(rig: Rig) -> None:
    targets = ("d", "c", "b", "a", None)
    await rig.engine.jobs.enqueue([NewJob("a", target=target) for target in targets])
    claims = await take(rig.engine, workers=5)
    for claim in claims[:4]:
        await settle(rig.engine, ending(claim, JobState.FAILED, AttemptOutcome.FAILED, error=ERROR))
    rig.pass_time(100)
    found = await rig.engine.overview.troubles()
    assert (found.halted_targets, found.halted_first) == (4, ("a", "b", "c"))
    assert (found.oldest_id, found.oldest_kind) == (claims[4].id, "a")
    assert found.oldest_seconds == pytest.approx(100, abs=5)
    assert found.leases_overdue == 1
    await rig.engine.control.apply(Action.CLEAR, claims[0].id)
    assert (await rig.engine.overview.troubles()).halted_targets == 3


async def end(rig: Rig, kind: str, *states: JobState) -> list[int]:
    """Jobs of a kind that end one after the other."""
    ended: list[int] = []
    for state in states:
        await put(rig.engine, 0, kind=kind)
        claim = await take_one(rig.engine)
        error = ERROR if state is JobState.FAILED else None
        await settle(rig.engine, ending(claim, state, error=error))
        ended.append(claim.id)
        rig.pass_time(1)
    return ended


FAILED, SUCCEEDED = JobState.FAILED, JobState.SUCCEEDED


async def test_the_last_ends_of_kinds_that_fail_are_troubles(rig: Rig) -> None:
    await end(rig, "mail", SUCCEEDED, FAILED, FAILED, SUCCEEDED, FAILED)
    await end(rig, "report", SUCCEEDED)
    await end(rig, "zip", FAILED)
    found = await rig.engine.overview.troubles()
    assert found.failing == (KindEnds("mail", 3, 5), KindEnds("zip", 1, 1))


async def test_only_the_latest_ends_of_a_kind_are_looked_at(rig: Rig) -> None:
    await end(rig, "mail", FAILED, FAILED, *[SUCCEEDED] * (ENDS_LOOKED - 1))
    assert (await rig.engine.overview.troubles()).failing == (KindEnds("mail", 1, ENDS_LOOKED),)
    await end(rig, "mail", SUCCEEDED)
    assert (await rig.engine.overview.troubles()).failing == ()


async def test_kinds_that_never_fail_are_not_among_those_that_are_looked_at(rig: Rig) -> None:
    """So many are at most, and these would leave no room for the others."""
    fine = [NewJob(f"fine-{number}") for number in range(FAILING_KINDS_MAX)]
    await end(rig, "a", FAILED)
    await rig.engine.jobs.enqueue(fine)
    claims = await take(rig.engine, workers=len(fine))
    await settle(rig.engine, *(ending(claim) for claim in claims))
    await end(rig, "zip", FAILED)
    found = await rig.engine.overview.troubles()
    assert found.failing == (KindEnds("a", 1, 1), KindEnds("zip", 1, 1))


async def test_failures_that_were_dealt_with_or_are_old_are_no_troubles(rig: Rig) -> None:
    cleared, resumed, _ = await end(rig, "mail", FAILED, FAILED, FAILED)
    await rig.engine.control.apply(Action.CLEAR, cleared)
    await rig.engine.control.apply(Action.RESUME, resumed)
    assert (await rig.engine.overview.troubles()).failing == (KindEnds("mail", 1, 1),)
    rig.pass_time(FAILING_SECONDS)
    assert (await rig.engine.overview.troubles()).failing == ()


async def test_kinds_that_wait_are_told_those_that_are_due_and_those_that_are_not_yet(
    rig: Rig,
) -> None:
    assert await rig.engine.queue.waiting_kinds(10) == {}
    await put(rig.engine, 0, 5, 0, kind="report")
    await put(rig.engine, 0, kind="reprot")
    await rig.engine.jobs.enqueue([NewJob("mail", delay_seconds=60), NewJob("held", hold=True)])
    assert await rig.engine.queue.waiting_kinds(10) == {"report": 3, "reprot": 1, "mail": 1}
    await take(rig.engine, workers=3)
    assert await rig.engine.queue.waiting_kinds(10) == {"reprot": 1, "mail": 1}


async def test_no_more_than_the_first_that_wait_are_looked_at(rig: Rig) -> None:
    for kind in ("a", "b", "c"):
        await put(rig.engine, 0, kind=kind)
        await rig.engine.jobs.enqueue([NewJob(f"later-{kind}", delay_seconds=60)])
    found = await rig.engine.queue.waiting_kinds(2)
    assert found == {"a": 1, "b": 1, "later-a": 1, "later-b": 1}
