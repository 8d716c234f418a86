"""As long as somebody holds a snapshot, entries of jobs that have gone stay in the indexes. What is
read is counted, not time.
"""

from collections.abc import AsyncGenerator, Callable

import attrs
import pytest
import trio

from musterd.store.jobs import NewJob
from musterd.store.leases import Claim, ClaimRequest, Ends, ReapRequest, ReapRule, Settlement
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.postgres.claiming import ALL_SECONDS, WALKED_MAX
from tests.contract.rigs import PostgresRig
from tests.contract.test_idle_check import listening
from tests.unit.store.plan_session import (
    BATCH,
    GONE,
    PAGES_A_JOB,
    READY,
    Session,
    a_request,
    held_snapshot,
    unvacuumed,
)

MANY = 10_000
TOUCHED_MAX = MANY // 50  # with what was done in the last quarter of a second
WALKS = ("claim_with_limits", "claim_targets", "observe", "next_due", "not_yet_due")
CAPS = (("capped", 1),)
REAP = ReapRequest({}, ReapRule("requeue", 9), 10)


@pytest.fixture
async def rig(fresh_database: Callable[[], str]) -> AsyncGenerator[PostgresRig]:
    async with unvacuumed(fresh_database()) as ready:
        with held_snapshot(ready):
            ready.raw(f"{GONE.format(many=MANY)}; {READY}")
            ready.raw("analyze job_rows, ready")
            yield ready


@pytest.mark.parametrize("form", WALKS)
async def test_what_walks_begins_behind_what_nobody_can_remove_yet(
    rig: PostgresRig, form: str
) -> None:
    await trio.lowlevel.checkpoint()
    session = Session(rig)
    with session.conn:
        claiming = form if form.startswith("claim") else "claim"
        looks = [session.look(claiming) for _ in range(3)]  # the third one takes from both
        assert all(look.walked > WALKED_MAX for look in looks)
        assert sorted(mark.priority for mark in looks[2].firsts) == [0, 1]
        assert session.watched(form)[1] > MANY // 3
        touched, pages = session.watched(form, looks[2].firsts)
    assert touched <= TOUCHED_MAX
    assert pages <= PAGES_A_JOB * BATCH


async def test_a_claim_under_a_limit_comes_by_what_was_in_hand_of_its_kind_only(
    rig: PostgresRig,
) -> None:
    await trio.lowlevel.checkpoint()
    rig.raw("insert into job_rows (kind, priority) select 'capped', 1 from generate_series(1, 5)")
    session = Session(rig)
    with session.conn:
        marks = session.look("claim").firsts
        touched, pages = session.watched("claim_with_limits", marks, CAPS)
    assert touched <= TOUCHED_MAX
    assert pages <= PAGES_A_JOB * BATCH


async def test_what_is_put_before_a_mark_is_found_a_moment_later(rig: PostgresRig) -> None:
    await _claimed(rig, BATCH)
    rig.raw(
        "insert into job_rows (kind, priority, run_at) values ('early', 1, '2001-01-01');"
        "insert into job_rows (kind, priority) values ('urgent', 9)"
    )
    kinds = [one.kind for one in await _claimed(rig, BATCH)]
    assert kinds[:2] == ["urgent", "next"]
    assert "early" not in kinds
    await trio.sleep(ALL_SECONDS)
    assert (await rig.engine.queue.observe(5000)).due > 0  # the supervisor looks at all
    assert (await _claimed(rig, BATCH))[0].kind == "early"


async def test_a_job_that_is_committed_a_little_late_is_found_at_once(rig: PostgresRig) -> None:
    await _claimed(rig, BATCH)
    rig.raw(
        "insert into job_rows (kind, priority, run_at)"
        " select 'late', 1, min(run_at) - interval '0.2 s' from job_rows where kind = 'next'"
    )
    assert (await _claimed(rig, BATCH))[0].kind == "late"


async def test_the_next_job_of_a_target_is_claimed_though_its_place_is_old(
    rig: PostgresRig,
) -> None:
    """It stood behind the one that has ended, and every claim begins further on."""
    await rig.engine.jobs.enqueue([NewJob("one", target="t", priority=9)] * 2)
    rig.raw("update job_rows set run_at = run_at - interval '1 hour' where target = 't'")
    both = [one for one in await _claimed(rig, 2) if one.target == "t"]
    await _claimed(rig, 30)
    await rig.engine.jobs.enqueue([NewJob("other", priority=9)] * 40)
    await _claimed(rig, 10)  # the mark of that priority is among these now
    visit = await rig.engine.leases.exchange(Ends([_end(both[0])]), _request(1))
    assert visit.parked > 0  # it asks again
    (found,) = (await rig.engine.leases.exchange(Ends(), _request(1))).claims
    assert found.target == "t"


async def test_a_job_that_a_limit_lets_go_on_is_claimed_though_its_place_is_old(
    rig: PostgresRig,
) -> None:
    await rig.engine.jobs.enqueue([NewJob("capped", priority=9)] * 2)
    rig.raw("update job_rows set run_at = run_at - interval '1 hour' where kind = 'capped'")
    request = attrs.evolve(_request(2), caps=CAPS)
    first = (await rig.engine.leases.exchange(Ends(), request)).claims
    assert [one.kind for one in first].count("capped") == 1
    await rig.engine.jobs.enqueue([NewJob("other", priority=9)] * 40)
    await rig.engine.leases.exchange(Ends(), attrs.evolve(_request(10), caps=CAPS))
    ended = next(one for one in first if one.kind == "capped")
    visit = await rig.engine.leases.exchange(
        Ends([_end(ended)]), attrs.evolve(_request(1), caps=CAPS)
    )
    assert visit.parked > 0
    again = await rig.engine.leases.exchange(Ends(), attrs.evolve(_request(1), caps=CAPS))
    assert [one.kind for one in again.claims] == ["capped"]


async def test_a_job_whose_lease_ran_out_is_looked_for_at_once(rig: PostgresRig) -> None:
    await rig.engine.jobs.enqueue([NewJob("lost", priority=9)])
    rig.raw("update job_rows set run_at = run_at - interval '1 hour' where kind = 'lost'")
    (lost,) = await _claimed(rig, 1)
    await rig.engine.jobs.enqueue([NewJob("other", priority=9)] * 40)
    await _claimed(rig, 10)
    rig.expire(lost.id)
    assert [one.id for one in await rig.engine.leases.reap(REAP)] == [lost.id]
    assert [one.id for one in await _claimed(rig, 1)] == [lost.id]


async def test_nobody_rests_while_all_is_looked_at_seldom(rig: PostgresRig) -> None:
    """What is hidden by marks would not be found."""
    async with listening(rig.engine) as me:
        assert await rig.engine.idle.check(me) is not None
        await _claimed(rig, 1)
        assert await rig.engine.idle.check(me) is None


def _request(workers: int) -> ClaimRequest:
    return attrs.evolve(a_request(), workers=tuple(range(workers)))


async def _claimed(rig: PostgresRig, workers: int) -> list[Claim]:
    return (await rig.engine.leases.exchange(Ends(), _request(workers))).claims


def _end(claim: Claim) -> Settlement:
    state, outcome = JobState.SUCCEEDED, AttemptOutcome.SUCCEEDED
    return Settlement(
        claim.id, claim.token, claim.attempt, claim.worker, 0.5, 0.9, state, outcome,
        target=claim.target,
    )  # fmt: skip
