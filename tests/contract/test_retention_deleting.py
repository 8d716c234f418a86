"""What is left of jobs that were deleted: nothing, or what was asked for."""

import json
from collections.abc import Sequence

import pytest
import trio

from musterd.store.engine import Engine
from musterd.store.errors import StoreError
from musterd.store.jobs import JobRecord, NewJob
from musterd.store.lifecycle import JobState
from musterd.store.report import job_object
from musterd.store.retention import MESSAGES_KEPT_SECONDS, Ages, Kept, RetentionTask
from tests.contract.job_tools import put
from tests.contract.retention_tools import (
    HOUR,
    C,
    F,
    S,
    end,
    ids_left,
    message,
    recounted,
    task,
    told,
    walk,
)
from tests.contract.rigs import Rig, SqliteRig, closing_engine

HOOK = "https://hooks.example/retention"


async def test_nothing_of_a_deleted_job_is_left(rig: Rig) -> None:
    job_id = await end(rig.engine, attempts=3, dedup_key="k")
    kept = await end(rig.engine, attempts=2, dedup_key="l")
    phases = "insert into job_phases (job_id, place, name) values ({}, 0, 'first')"
    for one in (job_id, kept):
        rig.raw(phases.format(one))
        message(rig, one, "failed")
    rig.pass_time(HOUR)
    message(rig, kept, "waiting")
    await walk(rig.engine, "mark", task(batch=1))
    rig.raw("update webhooks set state = 'failed'")
    await walk(rig.engine, "delete", task(batch=1))
    left = {
        table: sorted({row[0] for row in rig.raw(f"select job_id from {table}")})
        for table in ("attempts", "job_phases", "webhooks", "dedup_keys")
    }
    assert left == {table: [kept] for table in left}


@pytest.mark.parametrize("scope", ["until_finished", 0.5 * HOUR, 2 * HOUR, "forever"])
async def test_a_key_outlives_its_job_as_long_as_was_asked_for(
    rig: Rig, scope: str | float
) -> None:
    job_id = await end(rig.engine, dedup_key="k", dedup_scope=scope)
    rig.pass_time(HOUR)
    await walk(rig.engine, "mark", task())
    await walk(rig.engine, "delete", task())
    again = NewJob("report", dedup_key="k")
    holds = scope in (2 * HOUR, "forever")
    assert rig.raw("select count(*) from dedup_keys") == [(int(holds),)]
    assert (await rig.engine.jobs.enqueue([again]) == [job_id]) == holds
    if scope == 2 * HOUR:
        assert await rig.engine.retention.forget_leftovers(10) == 0
        rig.pass_time(HOUR)
        assert await rig.engine.retention.forget_leftovers(10) == 1
    assert await rig.engine.retention.forget_leftovers(10) == 0


async def test_counts_stay_exact(rig: Rig) -> None:
    for state in (S, S, F, C):
        await end(rig.engine, state)
    await put(rig.engine, 0, 0)
    rig.pass_time(HOUR)
    await walk(rig.engine, "mark", task())
    await walk(rig.engine, "delete", RetentionTask(Ages({S: HOUR, F: None, C: 0}, {}), 1))
    counts = await rig.engine.queue.counts()
    assert {s.value: n for s, n in counts.by_state.items() if n} == recounted(rig)
    assert (counts.by_state[S], counts.by_state[F], counts.by_state[C]) == (0, 1, 0)
    assert counts.enqueued_total == 6


async def test_the_hook_is_told_in_the_same_transaction(rig: Rig) -> None:
    job_id = await end(rig.engine, attempts=2)
    rig.pass_time(HOUR)
    await walk(rig.engine, "mark", task(hook=HOOK))
    asked = "select job_id, url, type, attempt, body from webhooks order by id"
    assert rig.raw(asked) == [(job_id, HOOK, "job.stale", 2, None)]
    assert await walk(rig.engine, "delete", task()) == 0  # it waits
    rig.raw("update webhooks set state = 'delivered', ended_at = created_at")
    await walk(rig.engine, "delete", task(hook=HOOK, keeper=keep))
    ((told_of, url, type_, attempt, body),) = rig.raw(asked)
    assert (told_of, url, type_, attempt) == (job_id, HOOK, "job.deleted", 2)
    assert (json.loads(body) if isinstance(body, str) else body)["id"] == job_id


async def test_messages_of_deleted_jobs_are_forgotten_in_the_end(rig: Rig) -> None:
    await end(rig.engine)
    rig.pass_time(HOUR)
    await walk(rig.engine, "mark", task())
    await walk(rig.engine, "delete", task(hook=HOOK))
    assert await rig.engine.retention.forget_leftovers(10) == 0
    record_end = (
        f"update webhooks set state = 'failed', ended_at = created_at - {MESSAGES_KEPT_SECONDS}"
    )
    seconds = " * interval '1 s'" if not isinstance(rig, SqliteRig) else " * 1000000"
    rig.raw(record_end + seconds)
    assert await rig.engine.retention.forget_leftovers(10) == 1
    assert rig.raw("select count(*) from webhooks") == [(0,)]


async def test_the_archive_holds_what_was_shown(rig: Rig) -> None:
    job_id = await end(rig.engine, F, attempts=2, payload='{"a": [1, "é"]}', target=None)
    shown = await rig.engine.jobs.get(job_id)
    assert shown is not None
    rig.pass_time(HOUR)
    await walk(rig.engine, "mark", task())
    await walk(rig.engine, "delete", task(keeper=keep))
    ((archived_id, job),) = rig.raw("select id, job from job_archive")
    found = json.loads(job) if isinstance(job, str) else job
    assert archived_id == job_id
    assert found["payload"] == {"a": [1, "é"]}
    assert [one["outcome"] for one in found["attempts"]] == ["retrying", "failed"]
    assert found["stale_at"] is not None
    assert found["error"] == {"type": "E", "message": "m"}


async def test_what_cannot_be_kept_is_not_deleted(rig: Rig) -> None:
    ids = [await end(rig.engine) for _ in range(2)]
    rig.pass_time(HOUR)
    await walk(rig.engine, "mark", task())

    def refuse(_jobs: Sequence[JobRecord]) -> Sequence[Kept]:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        await rig.engine.retention.delete(task(keeper=refuse), None)
    assert ids_left(rig) == ids
    assert await told(rig.engine, "job.deleted") == []
    assert await walk(rig.engine, "delete", task(keeper=keep)) == 2


async def test_a_crash_after_the_archive_leaves_the_job_to_be_archived_again(shared: Rig) -> None:
    job_id = await end(shared.engine)
    shared.pass_time(HOUR)
    await walk(shared.engine, "mark", task())
    lines: list[int] = []

    class Crash(Exception):
        pass

    def crash(jobs: Sequence[JobRecord]) -> Sequence[Kept]:
        lines.extend(job.id for job in jobs)
        raise Crash

    with pytest.raises(Crash):
        await shared.engine.retention.delete(task(keeper=crash), None)
    async with closing_engine(shared.another()) as other:
        await other.open()
        assert await walk(other, "delete", task(keeper=keep)) == 1
    assert lines == [job_id]
    assert shared.raw("select id from job_archive") == [(job_id,)]


async def test_two_walks_at_once_share_the_work(shared: Rig) -> None:
    ids = [await end(shared.engine, (S, F, C)[n % 3], dedup_key=str(n)) for n in range(60)]
    shared.pass_time(HOUR)
    done: list[int] = []

    async def both(other: bool) -> None:
        async with closing_engine(shared.another()) as engine:
            await engine.open()
            for what in ("mark", "delete") * 4:
                with trio.move_on_after(20):
                    done.append(await tolerant(engine, what))
                await trio.sleep(0.001 * other)

    async def tolerant(engine: Engine, what: str) -> int:
        try:
            return await walk(engine, what, task(batch=7, hook=None))
        except StoreError:
            return 0

    async with trio.open_nursery() as nursery:
        nursery.start_soon(both, False)
        nursery.start_soon(both, True)
    assert sum(done) == 2 * len(ids)
    assert ids_left(shared) == []
    assert sorted(one for one, _ in await told(shared.engine, "job.deleted") if one) == ids
    assert (await shared.engine.queue.counts()).by_state == dict.fromkeys(JobState, 0)


def keep(jobs: Sequence[JobRecord]) -> Sequence[Kept]:
    texts = [json.dumps(job_object(job, "default", None)) for job in jobs]
    return [Kept(text, text) for text in texts]
