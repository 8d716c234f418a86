"""Deleting a job on request: what goes, what stays and why, what is told."""

import json

import psycopg
import pytest
import trio

from musterd.store.control import Deletion, Obstacle
from musterd.store.jobs import NewJob
from musterd.store.lifecycle import Action, JobState
from musterd.store.retention import DeleteRequest, Kept
from tests.contract.event_tools import everything
from tests.contract.job_tools import ending, put, settle, take_one
from tests.contract.retention_tools import C, F, S, end, message, recounted, task, walk
from tests.contract.rigs import SCHEMA, PostgresRig, Rig
from tests.contract.test_laws import bring_to

BY = DeleteRequest("ops")
HOOK = "https://hooks.example/gone"
WAITING = "select 1 from pg_locks where not granted"


@pytest.mark.parametrize("state", [S, F, C])
async def test_nothing_of_a_deleted_job_is_left(rig: Rig, state: JobState) -> None:
    job_id = await end(rig.engine, state, attempts=3, dedup_key="k")
    kept = await end(rig.engine, state, attempts=2, dedup_key="l")
    for one in (job_id, kept):
        rig.raw(f"insert into job_phases (job_id, place, name) values ({one}, 0, 'first')")
        message(rig, one, "delivered")
    assert await rig.engine.retention.delete_one(job_id, BY) == Deletion(state)
    assert await rig.engine.jobs.get(job_id) is None
    left = {
        table: sorted({row[0] for row in rig.raw(f"select job_id from {table}")})
        for table in ("attempts", "job_phases", "webhooks", "dedup_keys")
    }
    assert left == {table: [kept] for table in left}
    counts = await rig.engine.queue.counts()
    assert {one.value: n for one, n in counts.by_state.items() if n} == recounted(rig)
    assert rig.faults() == []
    assert await rig.engine.retention.delete_one(job_id, BY) == Deletion(None)


@pytest.mark.parametrize("state", [one for one in JobState if one not in (S, F, C)])
async def test_a_job_that_has_not_ended_stays(rig: Rig, state: JobState) -> None:
    job_id = await bring_to(rig, state)
    refused = Deletion(state, None, Obstacle.UNFINISHED)
    assert await rig.engine.retention.delete_one(job_id, BY) == refused
    record = await rig.engine.jobs.get(job_id)
    assert record is not None
    assert record.state == state


async def test_a_failed_job_that_halts_its_target_stays_until_it_is_cleared(rig: Rig) -> None:
    job_id = await end(rig.engine, F, target="t")
    (behind,) = await rig.engine.jobs.enqueue([NewJob("report", target="t")])
    refused = Deletion(F, "t", Obstacle.HALTS)
    assert await rig.engine.retention.delete_one(job_id, BY) == refused
    await rig.engine.control.apply(Action.CLEAR, job_id)
    assert (await rig.engine.retention.delete_one(job_id, BY)).is_done
    assert (await take_one(rig.engine)).id == behind


async def test_a_job_whose_end_is_still_to_be_told_stays(rig: Rig) -> None:
    job_id = await end(rig.engine)
    message(rig, job_id, "waiting")
    refused = Deletion(S, None, Obstacle.UNTOLD)
    assert await rig.engine.retention.delete_one(job_id, BY) == refused
    rig.raw("update webhooks set state = 'failed'")
    assert (await rig.engine.retention.delete_one(job_id, BY)).is_done


@pytest.mark.parametrize("job_id", [0, -1, 7, 2**63 - 1, 2**63, 10**40])
async def test_there_is_no_such_job(rig: Rig, job_id: int) -> None:
    found = await rig.engine.retention.delete_one(job_id, BY)
    assert (found, found.is_done) == (Deletion(None), False)


@pytest.mark.parametrize("is_stale", [False, True])
async def test_retention_goes_on_with_the_others(rig: Rig, is_stale: bool) -> None:
    """Also where one ending names them all."""
    await put(rig.engine, *[0] * 5)
    await settle(rig.engine, *[ending(await take_one(rig.engine)) for _ in range(5)])
    rig.pass_time(7_200)
    if is_stale:
        assert await walk(rig.engine, "mark", task()) == 5
    assert (await rig.engine.retention.delete_one(3, BY)).is_done
    assert rig.faults() == []
    assert await walk(rig.engine, "mark", task()) == (0 if is_stale else 4)
    assert await walk(rig.engine, "delete", task()) == 4
    assert rig.faults() == []


@pytest.mark.parametrize("is_kept", [False, True])
async def test_its_event_says_who_wanted_it(rig: Rig, is_kept: bool) -> None:
    def keep(jobs: object) -> list[Kept]:
        return [Kept(json.dumps({"id": 1}), '{"type": "gone"}')]

    request = DeleteRequest("ann@shop", HOOK, keep) if is_kept else DeleteRequest("ann@shop")
    job_id = await end(rig.engine, F)
    assert (await rig.engine.retention.delete_one(job_id, request)).is_done
    last = (await everything(rig.engine))[-1]
    assert (last.type, last.job_id, last.kind) == ("job.deleted", job_id, "report")
    assert last.data == {"state": "failed", "by": "ann@shop"}
    archived = rig.raw("select id from job_archive")
    told = rig.raw("select url, type from webhooks")
    assert archived == [(job_id,)] * is_kept
    assert told == [(HOOK, "job.deleted")] * is_kept


async def test_what_cannot_be_kept_stays(rig: Rig) -> None:
    def fail(jobs: object) -> list[Kept]:
        raise OSError("no space left")

    job_id = await end(rig.engine)
    with pytest.raises(OSError, match="no space left"):
        await rig.engine.retention.delete_one(job_id, DeleteRequest("ops", None, fail))
    assert await rig.engine.jobs.get(job_id) is not None
    assert (await rig.engine.retention.delete_one(job_id, BY)).is_done


async def test_a_job_that_is_resumed_meanwhile_stays(postgres_rig: PostgresRig) -> None:
    """Who deletes it waits, and then sees it as it is, and not as it was."""
    rig = postgres_rig
    job_id = await end(rig.engine, F)
    found: list[Deletion] = []

    async def delete() -> None:
        found.append(await rig.engine.retention.delete_one(job_id, BY))

    with psycopg.connect(rig.url) as resuming:
        resuming.execute(f"select {SCHEMA}.resume({job_id})".encode())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(delete)
            while not rig.raw(WAITING):  # noqa: ASYNC110 - only asking again tells
                await trio.sleep(0.01)
            resuming.commit()
    assert found == [Deletion(JobState.QUEUED, None, Obstacle.UNFINISHED)]
    assert (await take_one(rig.engine)).id == job_id
    assert rig.faults() == []
