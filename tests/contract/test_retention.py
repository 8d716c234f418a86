"""Jobs that have ended go stale and are deleted when their time has come, and not before."""

from musterd.store.jobs import NewJob
from musterd.store.lifecycle import Action, JobState
from musterd.store.report import job_object
from musterd.store.retention import Ages, RetentionTask
from tests.contract.job_tools import ending, put, settle, take_one
from tests.contract.retention_tools import (
    HOUR,
    NEVER,
    C,
    F,
    S,
    end,
    ids_left,
    message,
    stale_ids,
    task,
    told,
    walk,
)
from tests.contract.rigs import START, PostgresRig, Rig, SqliteRig, closing_engine

HOOK = "https://hooks.example/retention"


async def test_a_job_goes_stale_when_its_time_has_come(rig: Rig) -> None:
    job_id = await end(rig.engine)
    rig.pass_time(HOUR - 60)
    assert await walk(rig.engine, "mark", task()) == 0
    rig.pass_time(60)
    assert await walk(rig.engine, "mark", task()) == 1
    record = await rig.engine.jobs.get(job_id)
    assert record is not None
    assert record.stale_at is not None
    assert record.finished_at is not None
    assert (record.stale_at - record.finished_at).total_seconds() >= HOUR
    assert await told(rig.engine, "job.stale") == [(job_id, {"state": "succeeded"})]
    assert job_object(record, "default", None)["stale_at"] is not None


async def test_nothing_is_told_twice(rig: Rig) -> None:
    await end(rig.engine)
    rig.pass_time(HOUR)
    assert [await walk(rig.engine, "mark", task()) for _ in range(3)] == [1, 0, 0]
    assert len(await told(rig.engine, "job.stale")) == 1


async def test_the_moment_is_exact(unopened_sqlite: SqliteRig) -> None:
    rig = unopened_sqlite
    async with closing_engine(rig.engine) as engine:
        await engine.open()
        await engine.migrate()
        await end(engine)  # at START
        rig.now = START + HOUR - 0.000_001
        assert await walk(engine, "mark", task()) == 0
        rig.now += 0.000_001
        assert await walk(engine, "mark", task()) == 1
        rig.now = START + 2 * HOUR - 0.000_001
        assert await walk(engine, "delete", task(2 * HOUR)) == 0
        rig.now += 0.000_001
        assert await walk(engine, "delete", task(2 * HOUR)) == 1


async def test_only_stale_jobs_are_deleted(rig: Rig) -> None:
    job_id = await end(rig.engine)
    rig.pass_time(HOUR)
    assert await walk(rig.engine, "delete", task()) == 0
    await walk(rig.engine, "mark", task())
    assert await walk(rig.engine, "delete", task()) == 1
    assert await rig.engine.jobs.get(job_id) is None
    assert await told(rig.engine, "job.deleted") == [(job_id, {"state": "succeeded"})]


async def test_each_state_and_kind_has_an_age_of_its_own(rig: Rig) -> None:
    made = {
        (kind, state): await end(rig.engine, state, kind=kind)
        for kind in ("a", "b", "c")
        for state in (S, F, C)
    }
    ages = Ages(
        {S: HOUR, F: 3 * HOUR, C: None},
        {"b": {S: 2 * HOUR, F: None, C: HOUR}, "unheard": NEVER},
    )
    gone: dict[int, list[tuple[str, JobState]]] = {}
    for hour in (1, 2, 3):
        rig.pass_time(HOUR)
        before = stale_ids(rig)
        await walk(rig.engine, "mark", RetentionTask(ages, 2))
        fresh = set(stale_ids(rig)) - set(before)
        gone[hour] = sorted(key for key, job_id in made.items() if job_id in fresh)
    assert gone == {
        1: [("a", S), ("b", C), ("c", S)],
        2: [("b", S)],
        3: [("a", F), ("c", F)],
    }


async def test_what_has_not_ended_is_left_alone(rig: Rig) -> None:
    engine = rig.engine
    await put(engine, 0, 0, 0)
    (held,) = await engine.jobs.enqueue([NewJob("report", hold=True)])
    running = await take_one(engine)
    (paused,) = [row[0] for row in rig.raw("select max(id) from job_rows where state = 'queued'")]
    await engine.control.apply(Action.PAUSE, paused)
    rig.pass_time(1000 * HOUR)
    assert await walk(engine, "mark", task(0.001)) == 0
    rig.raw(f"update job_rows set stale_at = created_at where id in ({held}, {running.id})")
    assert await walk(engine, "delete", task(0.001)) == 0
    assert len(ids_left(rig)) == 4


async def test_batches_are_bounded_and_a_walk_ends(rig: Rig) -> None:
    ids = [await end(rig.engine, kind=kind) for kind in "abbbcc"]
    rig.pass_time(HOUR)
    place, seen = None, list[int]()
    for _ in range(4):
        result = await rig.engine.retention.mark(task(batch=2), place)
        place = result.further
        seen.append(result.done)
    assert seen == [2, 2, 2, 0]
    assert place is None
    assert stale_ids(rig) == ids
    assert [await walk(rig.engine, "delete", task(batch=4))] == [6]


async def test_jobs_that_end_one_by_one_are_soon_named_together(postgres_rig: PostgresRig) -> None:
    """And none of them earlier, nor much later, than by itself."""
    rig = postgres_rig
    made = [await end(rig.engine, state) for state in (S, S, F, S, S, F)]
    other = await end(rig.engine, kind="other")
    assert rig.raw("select count(*) from endings") == [(7,)]
    rig.pass_time(HOUR - 120)
    assert await walk(rig.engine, "mark", task()) == 0
    assert rig.raw("select count(*) from endings")[0][0] <= 6, "they may be in two minutes"
    assert rig.faults() == []
    rig.pass_time(300)
    assert await walk(rig.engine, "mark", task(batch=2)) == 7
    assert stale_ids(rig) == [*made, other]
    assert await walk(rig.engine, "delete", task(batch=3)) == 7
    assert rig.raw("select count(*) from endings") == [(0,)]


async def test_a_job_with_a_message_that_waits_is_passed_by(rig: Rig) -> None:
    first, second, third = [await end(rig.engine) for _ in range(3)]
    message(rig, second, "waiting")
    message(rig, third, "delivered")
    rig.pass_time(HOUR)
    assert await walk(rig.engine, "mark", task(batch=1)) == 2
    assert stale_ids(rig) == [first, third]
    rig.raw("update webhooks set state = 'failed'")
    assert await walk(rig.engine, "mark", task()) == 1
    rig.raw(f"update webhooks set state = 'waiting' where job_id = {second}")
    assert await walk(rig.engine, "delete", task(batch=1)) == 2
    assert ids_left(rig) == [second]
    rig.raw("update webhooks set state = 'delivered'")
    assert await walk(rig.engine, "delete", task()) == 1
    assert rig.raw("select count(*) from webhooks") == [(0,)]


async def test_a_failed_job_that_halts_its_target_is_left_alone_until_it_is_cleared(
    rig: Rig,
) -> None:
    engine = rig.engine
    halting = await end(engine, F, target="t")
    rig.pass_time(HOUR)
    assert await walk(engine, "mark", task()) == 0
    rig.raw("update job_rows set stale_at = finished_at")  # nobody does; it would halt all the same
    assert await walk(engine, "delete", task()) == 0
    rig.raw("update job_rows set stale_at = null")
    await engine.control.apply(Action.CLEAR, halting)
    assert await walk(engine, "mark", task()) == 1
    assert await walk(engine, "delete", task()) == 1
    (behind,) = await engine.jobs.enqueue([NewJob("report", target="t")])
    assert (await take_one(engine)).id == behind


async def test_a_resumed_job_is_stale_no_longer(rig: Rig) -> None:
    job_id = await end(rig.engine, F)
    rig.pass_time(HOUR)
    await walk(rig.engine, "mark", task())
    await rig.engine.control.apply(Action.RESUME, job_id)
    record = await rig.engine.jobs.get(job_id)
    assert record is not None
    assert record.stale_at is None
    assert await walk(rig.engine, "delete", task(0)) == 0


async def test_a_job_that_went_on_is_kept_from_its_last_end(rig: Rig) -> None:
    """Whatever is left of an earlier one."""
    job_id = await end(rig.engine, F)
    rig.pass_time(HOUR)
    await rig.engine.control.apply(Action.RESUME, job_id)
    assert await walk(rig.engine, "mark", task()) == 0
    await settle(rig.engine, ending(await take_one(rig.engine), F))
    assert await walk(rig.engine, "mark", task()) == 0
    rig.pass_time(HOUR)
    assert await walk(rig.engine, "mark", task()) == 1


async def test_an_end_before_a_resume_does_not_count(rig: Rig) -> None:
    job_id = await end(rig.engine, F)
    await rig.engine.control.apply(Action.RESUME, job_id)
    rig.pass_time(HOUR / 2)
    await settle(rig.engine, ending(await take_one(rig.engine), F))
    rig.pass_time(HOUR / 2 + 60)
    assert await walk(rig.engine, "mark", task()) == 0


async def test_what_is_passed_by_is_met_once_in_a_walk(rig: Rig) -> None:
    """Else every other batch would be of such jobs."""
    for _ in range(2):
        await end(rig.engine, kind="a", webhook=HOOK)
    due = [await end(rig.engine, kind="b") for _ in range(3)]
    rig.pass_time(HOUR)
    place, marked = None, list[int]()
    for _ in range(3):
        done, place = await rig.engine.retention.mark(task(batch=2), place)
        marked.append(done)
    assert (marked, place) == ([0, 2, 1], None)
    assert stale_ids(rig) == due
