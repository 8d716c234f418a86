"""Leases: renewed by those who hold them, given back when their daemon is gone."""

from uuid import uuid4

import pytest

from musterd.store.errors import StoreMisconfigured
from musterd.store.leases import Claim, Hold, Reaped
from musterd.store.lifecycle import JobState
from tests.contract.job_tools import (
    ending,
    ids,
    moment_of,
    put,
    reap_by,
    settle,
    state_of,
    take,
    take_one,
)
from tests.contract.rigs import LEASE_SECONDS, Rig

REQUEUE = reap_by("requeue", 10, 100)


def hold(claim: Claim, worker: int | None = None, started_epoch: float | None = None) -> Hold:
    return Hold(claim.id, claim.token, worker, started_epoch)


async def lease_left(rig: Rig, job_id: int) -> float:
    record = await rig.engine.jobs.get(job_id)
    assert record is not None
    assert record.lease_expires_at is not None
    assert record.heartbeat_at is not None
    return (record.lease_expires_at - record.heartbeat_at).total_seconds()


async def test_a_renewal_extends_the_lease_from_now(rig: Rig) -> None:
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    for _ in range(3):
        rig.pass_time(25)
        assert (await rig.engine.leases.renew([hold(claim)], 30)).kept == {claim.id}
        assert await rig.engine.leases.reap(REQUEUE) == []
    assert await lease_left(rig, claim.id) == 30


async def test_a_renewal_of_nothing_is_nothing(rig: Rig) -> None:
    assert (await rig.engine.leases.renew([], 30)).kept == frozenset()


async def test_a_renewal_marks_what_has_started(rig: Rig) -> None:
    await put(rig.engine, 0, 0)
    started, waiting = await take(rig.engine, workers=0, ahead=2)
    rig.pass_time(10)
    held = [hold(started, 7, started.claimed_epoch + 4), hold(waiting)]
    renewal = await rig.engine.leases.renew(held, 30)
    assert renewal.kept == {started.id, waiting.id}
    record = await rig.engine.jobs.get(started.id)
    assert record is not None
    assert (record.state, record.worker) == (JobState.RUNNING, 7)
    assert record.started_at == moment_of(started.claimed_epoch + 4)
    assert record.heartbeat_at == moment_of(renewal.now_epoch)
    assert await state_of(rig.engine, waiting.id) is JobState.ASSIGNED


async def test_a_later_renewal_leaves_start_and_worker_alone(rig: Rig) -> None:
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    before = await rig.engine.jobs.get(claim.id)
    await rig.engine.leases.renew([hold(claim, None, claim.claimed_epoch + 500)], 30)
    after = await rig.engine.jobs.get(claim.id)
    assert before is not None
    assert after is not None
    assert (after.started_at, after.worker) == (before.started_at, before.worker)


async def test_a_lease_that_ran_out_but_was_not_reaped_still_lets_its_job_end(rig: Rig) -> None:
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    rig.pass_time(500)
    assert (await rig.engine.leases.renew([hold(claim)], 30)).kept == frozenset()
    assert (await settle(rig.engine, ending(claim))).rejected == frozenset()
    assert await rig.engine.leases.reap(REQUEUE) == []


async def test_a_renewal_loses_exactly_what_is_no_longer_held(rig: Rig) -> None:
    await put(rig.engine, *[0] * 6)
    claims = await take(rig.engine, workers=6)
    reaped, ended, given_back, claimed_again, stranger, kept = claims
    await settle(
        rig.engine,
        ending(ended),
        ending(given_back, JobState.QUEUED, delay_seconds=999),
        ending(claimed_again, JobState.QUEUED),
    )
    await take_one(rig.engine)
    rig.pass_time(20)
    await rig.engine.leases.renew([hold(claim) for claim in claims[3:]], 30)
    rig.pass_time(15)
    # Of those not renewed only `reaped` was still leased; the new claim has its own token and time.
    assert reaped.id in {one.id for one in await rig.engine.leases.reap(REQUEUE)}
    held = [hold(claim) for claim in claims if claim is not stranger]
    held += [hold(stranger._replace(token=uuid4())), hold(kept._replace(id=999_999))]
    assert (await rig.engine.leases.renew(held, 30)).kept == {kept.id}


async def test_a_write_after_the_reap_is_fenced(rig: Rig) -> None:
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    rig.pass_time(31)
    assert ids_of_reaped(await rig.engine.leases.reap(REQUEUE)) == [claim.id]
    assert (await settle(rig.engine, ending(claim))).rejected == {claim.id}
    assert await rig.engine.leases.settled_already([ending(claim)]) == frozenset()
    assert (await rig.engine.leases.renew([hold(claim)], 30)).kept == frozenset()
    again = await take_one(rig.engine)
    assert (again.id, again.attempt) == (claim.id, 2)
    assert (await settle(rig.engine, ending(claim))).rejected == {claim.id}
    assert (await rig.engine.leases.renew([hold(claim)], 30)).kept == frozenset()
    assert await state_of(rig.engine, claim.id) is JobState.RUNNING


def ids_of_reaped(reaped: list[Reaped]) -> list[int]:
    return [one.id for one in reaped]


async def test_a_daemon_that_starts_on_an_empty_store_finds_nothing(rig: Rig) -> None:
    assert await rig.engine.start_node("north") == 0
    assert await rig.engine.start_node("north") == 0


async def test_starting_again_takes_no_lease_from_a_living_daemon(shared: Rig) -> None:
    await shared.engine.start_node("north")
    await put(shared.engine, 0)
    claim = await take_one(shared.engine)
    assert await shared.engine.start_node("north") == 0
    assert await shared.engine.leases.reap(REQUEUE) == []
    assert (await shared.engine.leases.renew([hold(claim)], 30)).kept == {claim.id}


class TestOneDaemonAFile:
    """What only the embedded engine promises."""

    @pytest.fixture
    def unopened_shared(self, unopened_sqlite: Rig) -> Rig:
        return unopened_sqlite

    async def test_leases_of_a_dead_daemon_come_back_at_once(self, shared: Rig) -> None:
        await put(shared.engine, 0, 0, 0)
        await shared.engine.start_node("old")
        running, assigned = await take(shared.engine, workers=1, ahead=1, node="old")
        await shared.engine.close()
        await shared.engine.open()
        assert await shared.engine.start_node("new") == 2
        assert ids_of_reaped(await shared.engine.leases.reap(REQUEUE)) == [running.id, assigned.id]
        claims = await take(shared.engine, workers=3, node="new")
        assert ids(claims) == [running.id, assigned.id, running.id + 2]
        assert [claim.attempt for claim in claims] == [2, 2, 1]
        assert [claim.forgiven for claim in claims] == [0, 0, 0]

    async def test_a_job_that_kills_its_daemon_ends(self, shared: Rig) -> None:
        (job_id,) = await put(shared.engine, 0)
        rules = reap_by("requeue", 2, 100)
        for _ in range(2):
            await shared.engine.start_node("north")
            await take_one(shared.engine)
            await shared.engine.close()
            await shared.engine.open()
            await shared.engine.start_node("north")
            await shared.engine.leases.reap(rules)
        assert await state_of(shared.engine, job_id) is JobState.FAILED

    async def test_a_second_daemon_is_refused_and_told_who_runs(self, shared: Rig) -> None:
        await shared.engine.start_node("north")
        await put(shared.engine, 0)
        claim = await take_one(shared.engine)
        second = shared.another()
        await second.open()
        with pytest.raises(StoreMisconfigured, match=r"process \d+\) runs on this file"):
            await second.start_node("south")
        assert await second.jobs.get(claim.id) is not None
        assert await shared.engine.leases.reap(REQUEUE) == []
        await shared.engine.close()
        assert await second.start_node("south") == 1
        await second.close()


async def test_a_lease_that_has_run_out_is_not_renewed(rig: Rig) -> None:
    await put(rig.engine, 0, 0)
    gone, kept = await take_one(rig.engine), await take_one(rig.engine)
    rig.expire(gone.id)
    holds = [hold(gone, 1, gone.claimed_epoch), hold(kept, 1, kept.claimed_epoch)]
    heard = await rig.engine.leases.renew(holds, None)
    assert heard.kept == {gone.id, kept.id}  # it stands until it is reaped, and is told of requests
    renewal = await rig.engine.leases.renew(holds, LEASE_SECONDS)
    assert renewal.kept == {kept.id}
    reaped = await rig.engine.leases.reap(REQUEUE)
    assert [one.id for one in reaped] == [gone.id]
