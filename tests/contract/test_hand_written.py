"""What people write into the tables by hand: it is kept consistent, or refused with a clear error.
After each test the places of all jobs are looked at.
"""

from __future__ import annotations

import psycopg
import pytest
import trio

from musterd.store.jobs import NewJob
from musterd.store.lifecycle import Action, JobState
from musterd.store.retention import RetentionTask
from tests.contract.job_tools import ending, ids, look, put, settle, state_of, take, take_one
from tests.contract.retention_tools import all_after, ids_left, task, walk
from tests.contract.rigs import SCHEMA, PostgresRig, check_violations, closing_engine
from tests.contract.target_tools import put_target, take_all

WAITING = "select 1 from pg_locks where not granted"
IN_HAND = "is in hand: its state, kind and target are its holder's"


@pytest.fixture
def rig(postgres_rig: PostgresRig) -> PostgresRig:
    return postgres_rig


def copy(rig: PostgresRig, columns: str, *lines: str) -> None:
    with psycopg.connect(rig.url, autocommit=True) as connection:
        command = f"copy {SCHEMA}.job_rows ({columns}) from stdin"
        with connection.cursor().copy(command.encode()) as stream:
            stream.write("".join(f"{line}\n" for line in lines))


def no_faults(rig: PostgresRig) -> None:
    assert rig.faults() == []


# -- made by hand


async def test_jobs_inserted_by_hand_are_claimed_in_order(rig: PostgresRig) -> None:
    rig.raw("insert into jobs (kind, priority) values ('a', 1), ('b', 5), ('a', 1), ('c', 1)")
    rig.raw("insert into job_rows (kind, priority) values ('a', 3)")
    no_faults(rig)
    assert ids(await take(rig.engine, workers=9)) == [2, 5, 1, 3, 4]


async def test_copied_jobs_are_claimed_in_order(rig: PostgresRig) -> None:
    at = "2020-01-01"
    few = [f"{n}\ta\t0\tqueued\t{at}" for n in (900, 11, 10, 12, 500)]
    copy(rig, "id, kind, priority, state, run_at", *few, f"13\tb\t0\tpending\t{at}")
    no_faults(rig)
    assert rig.raw("select first_id, last_id from ready order by first_id")[-1] == (900, 900)
    assert ids(await take(rig.engine, workers=9)) == [10, 11, 12, 500, 900]
    assert await state_of(rig.engine, 13) is JobState.PENDING


@pytest.mark.parametrize(
    "rows",
    [
        "(1, 'a', 0, now()), (2, 'a', 0, now() - interval '1 hour')",
        "(1, 'a', 0, now()), (2, 'a', 1, now())",
        "(1, 'a', 0, now()), (2, 'b', 0, now())",
        "(1, 'a', 0, now()), (3, 'a', 0, now())",
    ],
)
async def test_two_that_differ_share_no_stretch(rig: PostgresRig, rows: str) -> None:
    rig.raw(f"insert into job_rows (id, kind, priority, run_at) values {rows}")
    no_faults(rig)
    assert rig.raw("select count(*) from ready") == [(2,)]
    assert len(await take(rig.engine, workers=9)) == 2


async def test_many_of_one_insert_are_few_stretches(rig: PostgresRig) -> None:
    rig.raw("insert into jobs (kind) select 'a' from generate_series(1, 1000)")
    no_faults(rig)
    assert rig.raw("select count(*) from ready")[0][0] <= 17
    assert ids(await take(rig.engine, workers=3, ahead=200)) == list(range(1, 204))


async def test_an_insert_that_is_rolled_back_leaves_nothing(rig: PostgresRig) -> None:
    with psycopg.connect(rig.url) as connection:
        connection.execute(f"insert into {SCHEMA}.jobs (kind) values ('a')".encode())
        connection.rollback()
    assert rig.raw("select count(*) from ready") == [(0,)]
    assert await take(rig.engine) == []


# -- waiting jobs that are changed by hand


@pytest.mark.parametrize(
    ("change", "order"),
    [
        ("priority = 9", [4, 1, 2, 3, 5, 6]),
        ("priority = -1", [1, 2, 3, 5, 6, 4]),
        ("run_at = run_at - interval '1 hour'", [4, 1, 2, 3, 5, 6]),
        ("run_at = run_at + interval '1 hour'", [1, 2, 3, 5, 6]),
        ("kind = 'other'", [1, 2, 3, 4, 5, 6]),
        ("target = 't'", [1, 2, 3, 4, 5, 6]),
        ("payload = '[1]'", [1, 2, 3, 4, 5, 6]),
    ],
)
async def test_a_waiting_job_takes_its_new_place(
    rig: PostgresRig, change: str, order: list[int]
) -> None:
    rig.raw("insert into jobs (kind) select 'a' from generate_series(1, 6)")
    rig.raw(f"update job_rows set {change} where id = 4")
    no_faults(rig)
    assert ids(await take_all(rig.engine)) == order


async def test_all_waiting_jobs_may_be_changed_at_once(rig: PostgresRig) -> None:
    rig.raw("insert into jobs (kind, priority) select 'a', n % 3 from generate_series(1, 300) n")
    rig.raw("update job_rows set priority = -priority, kind = 'b' where id % 2 = 0")
    no_faults(rig)
    claims = await take(rig.engine, workers=1, ahead=400)
    wanted = rig.raw("select id from job_rows order by priority desc, run_at, id")
    assert ids(claims) == [row[0] for row in wanted]


async def test_a_job_at_its_limit_may_be_changed(rig: PostgresRig) -> None:
    made = await put(rig.engine, 0, 0, 0)
    held = await take_all(rig.engine, caps=(("report", 1),))
    assert ids(held) == made[:1]
    rig.raw(f"update job_rows set priority = 5 where id = {made[2]}")
    rig.raw(f"update job_rows set kind = 'free' where id = {made[1]}")
    no_faults(rig)
    assert ids(await take_all(rig.engine, caps=(("report", 1),))) == [made[1]]
    await settle(rig.engine, ending(held[0]))
    assert ids(await take_all(rig.engine, caps=(("report", 1),))) == [made[2]]


async def test_a_job_behind_its_target_may_be_changed(rig: PostgresRig) -> None:
    first, second, third = await put_target(rig.engine, 0, 0, 0)
    (claim,) = await take_all(rig.engine)
    assert claim.id == first
    rig.raw(f"update job_rows set priority = 5 where id = {third}")
    rig.raw(f"update job_rows set target = 'other' where id = {second}")
    no_faults(rig)
    assert rig.raw("select id from live_jobs where behind") == [(third,)]
    (moved,) = await take_all(rig.engine)
    assert moved.id == second
    await settle(rig.engine, ending(claim), ending(moved))
    assert ids(await take_all(rig.engine)) == [third]


@pytest.mark.parametrize("state", ["paused", "canceled"])
async def test_a_waiting_job_may_be_put_aside(rig: PostgresRig, state: str) -> None:
    made = await put(rig.engine, 0, 0, 0)
    rig.raw(f"update job_rows set state = '{state}', finished_at = now() where id = {made[1]}")
    no_faults(rig)
    assert ids(await take(rig.engine, workers=9)) == [made[0], made[2]]
    if state == "canceled":
        rig.pass_time(60)
        assert await walk(rig.engine, "mark", task(30)) == 1


@pytest.mark.parametrize("state", ["pending", "paused"])
async def test_a_job_that_rests_may_be_let_go(rig: PostgresRig, state: str) -> None:
    (first,) = await rig.engine.jobs.enqueue([NewJob("a", hold=state == "pending")])
    if state == "paused":
        await rig.engine.control.apply(Action.PAUSE, first)
    assert await take(rig.engine) == []
    rig.raw(f"update job_rows set state = 'queued' where id = {first}")
    no_faults(rig)
    assert (await take_one(rig.engine)).id == first


# -- what is refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("state = 'succeeded', finished_at = now()", "job 1: queued cannot become succeeded"),
        ("state = 'failed', finished_at = now()", "job 1: queued cannot become failed"),
        ("state = 'pending'", "job 1: queued cannot become pending"),
        ("state = 'running'", "job_state_is_known"),
        ("request = 'cancel'", "job 1 is in nobody's hands: there is nobody to ask"),
    ],
)
async def test_what_a_waiting_job_refuses(rig: PostgresRig, change: str, message: str) -> None:
    await put(rig.engine, 0)
    with pytest.raises(psycopg.errors.CheckViolation, match=message):
        rig.raw(f"update job_rows set {change} where id = 1")
    no_faults(rig)


@pytest.mark.parametrize(
    "change",
    ["state = 'paused'", "state = 'canceled', finished_at = now()", "kind = 'b'", "target = 't'"],
)
async def test_what_a_job_in_hand_refuses(rig: PostgresRig, change: str) -> None:
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    with pytest.raises(psycopg.errors.CheckViolation, match=IN_HAND):
        rig.raw(f"update job_rows set {change} where id = {claim.id}")
    no_faults(rig)
    assert (await settle(rig.engine, ending(claim))).rejected == frozenset()


async def test_a_job_in_hand_may_have_another_priority_when_it_comes_back(rig: PostgresRig) -> None:
    first, second = await put(rig.engine, 0, 0)
    claim = await take_one(rig.engine)
    rig.raw(f"update job_rows set priority = -1 where id = {first}")
    no_faults(rig)
    await settle(rig.engine, ending(claim, JobState.QUEUED, delay_seconds=0))
    assert ids(await take(rig.engine, workers=2)) == [second, first]


async def test_the_holder_may_be_asked_by_hand(rig: PostgresRig) -> None:
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)
    rig.raw(f"update job_rows set request = 'cancel', requested_at = now() where id = {claim.id}")
    await settle(rig.engine, ending(claim, JobState.QUEUED, delay_seconds=0))
    assert await state_of(rig.engine, claim.id) is JobState.CANCELED


# -- what is deleted


async def test_waiting_jobs_may_be_deleted(rig: PostgresRig) -> None:
    rig.raw("insert into jobs (kind) select 'a' from generate_series(1, 100)")
    await put_target(rig.engine, 0, 0)
    rig.raw("delete from job_rows where id % 3 = 0")
    no_faults(rig)
    assert ids(await take(rig.engine, workers=9, ahead=200))[:3] == [1, 2, 4]


async def test_a_job_in_hand_may_be_deleted(rig: PostgresRig) -> None:
    await put(rig.engine, 0, 0, 0)
    first, second, third = await take(rig.engine, workers=3)
    rig.raw(f"delete from job_rows where id = {second.id}")
    no_faults(rig)
    settled = await settle(rig.engine, ending(first), ending(second), ending(third))
    assert settled.rejected == {second.id}
    assert await state_of(rig.engine, third.id) is JobState.SUCCEEDED


async def test_ended_jobs_may_be_deleted_and_retention_goes_on(rig: PostgresRig) -> None:
    await put(rig.engine, 0, 0, 0)
    claims = await take(rig.engine, workers=3)
    await settle(rig.engine, *[ending(claim) for claim in claims])
    rig.raw(f"delete from job_rows where id = {claims[1].id}")
    no_faults(rig)
    rig.pass_time(60)
    assert await walk(rig.engine, "mark", task(30)) == 2
    rig.raw(f"delete from job_rows where id = {claims[0].id}")
    assert await walk(rig.engine, "delete", task(30)) == 1
    assert ids_left(rig) == []
    assert rig.raw("select count(*) from endings") == [(0,)]


async def test_all_jobs_may_be_truncated(rig: PostgresRig) -> None:
    await put(rig.engine, 0, 0, 0)
    await put_target(rig.engine, 0, 0)
    claim = await take_one(rig.engine)
    rig.raw("truncate job_rows")
    no_faults(rig)
    assert (await settle(rig.engine, ending(claim))).rejected == {claim.id}
    assert await take(rig.engine, workers=9) == []
    (job_id,) = await put(rig.engine, 0)
    assert (await take_one(rig.engine)).id == job_id


# -- ended jobs that are changed by hand


async def test_an_ended_job_of_another_kind_is_still_found_by_retention(rig: PostgresRig) -> None:
    await put(rig.engine, 0)
    await settle(rig.engine, ending(await take_one(rig.engine)))
    rig.raw("update job_rows set kind = 'renamed'")
    no_faults(rig)
    rig.pass_time(60)
    kept_longer = RetentionTask(all_after(30, renamed=90), 100)
    assert await walk(rig.engine, "mark", kept_longer) == 0
    assert await walk(rig.engine, "mark", task(30)) == 1


async def test_a_failed_job_that_loses_its_target_is_found_by_retention(rig: PostgresRig) -> None:
    await put_target(rig.engine, 0)
    (claim,) = await take_all(rig.engine)
    await settle(rig.engine, ending(claim, JobState.FAILED))
    rig.pass_time(60)
    assert await walk(rig.engine, "mark", task(30)) == 0
    rig.raw("update job_rows set target = null")
    no_faults(rig)
    assert await walk(rig.engine, "mark", task(30)) == 1


async def test_an_ended_job_that_is_changed_otherwise_is_named_once(rig: PostgresRig) -> None:
    await put(rig.engine, 0)
    await settle(rig.engine, ending(await take_one(rig.engine)))
    rig.raw("update job_rows set priority = 3")
    assert rig.raw("select count(*) from endings") == [(1,)]


# -- at the same time


async def test_whoever_changes_a_job_waits_for_the_claim_that_has_it(rig: PostgresRig) -> None:
    """The claim is not yet committed: the job may come back, or be in hand."""
    first, second = await put(rig.engine, 0, 0)
    async with closing_engine(rig.another()) as other:
        await other.open()
        with psycopg.connect(rig.url) as claiming:
            claiming.execute(f"delete from {SCHEMA}.ready returning 1".encode())
            async with trio.open_nursery() as nursery:
                nursery.start_soon(other.control.apply, Action.CANCEL, second)
                await trio.sleep(0.1)
                assert await state_of(rig.engine, second) is JobState.QUEUED
                claiming.rollback()
    assert await state_of(rig.engine, second) is JobState.CANCELED
    assert ids(await take(rig.engine, workers=2)) == [first]


# -- what the design rests on


async def test_a_success_writes_one_version_of_the_row_and_no_index(rig: PostgresRig) -> None:
    """Of each index that named a column that a success changes, it would have to write an entry."""
    made = 2_000
    payload = '{"n": 1}'
    rig.raw(
        f"insert into jobs (kind, payload) select 'a', '{payload}' from generate_series(1, {made})"
    )
    for _ in range(made // 200):
        claims = await take(rig.engine, workers=9, ahead=191)
        await settle(rig.engine, *[ending(claim, result='{"a": 1}') for claim in claims])
    assert (await look(rig, made)).state is JobState.SUCCEEDED
    asked = f"""
        select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables
        where schemaname = '{SCHEMA}' and relname = 'job_rows'
    """
    # A session tells what it counted at the end of a transaction, once a second at most; idle, it
    # does so after ten seconds, and before PostgreSQL 15 never.
    with trio.fail_after(30):
        while (counted := rig.raw(asked)[0])[0] < made:
            await trio.sleep(0.1)
            assert await take(rig.engine) == []
    assert counted[0] == made, "one for each job"
    assert counted[1] >= 0.99 * made, "those that found no room in their page are few"


# -- times that no client could read


@pytest.mark.parametrize("at", ["-infinity", "infinity", "4000-01-01 BC", "20000-01-01"])
async def test_a_time_that_no_client_can_read_is_refused(rig: PostgresRig, at: str) -> None:
    """One such row stopped all claims."""
    wanted = "wanted a time of the years 1 to 9999"
    check_violations(
        rig,
        wanted,
        f"insert into {SCHEMA}.jobs (kind, run_at) values ('a', '{at}')",
        f"insert into {SCHEMA}.job_rows (kind, run_at) values ('a', '{at}')",
        f"select {SCHEMA}.enqueue('a', run_at => '{at}')",
    )
    await put(rig.engine, 0)
    check_violations(rig, wanted, f"update {SCHEMA}.job_rows set run_at = '{at}'")
    assert len(await take(rig.engine)) == 1


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+00", "9999-12-31T23:59:59.999999+00"])
async def test_the_first_and_the_last_time_that_a_client_can_read_are_taken(
    rig: PostgresRig, at: str
) -> None:
    ((job_id,),) = rig.raw(f"select {SCHEMA}.enqueue('a', run_at => '{at}')")
    job = await rig.engine.jobs.get(job_id)
    assert job is not None
    assert job.run_at.isoformat().startswith(at[:19])


TIMES = ("created_at", "started_at", "finished_at", "requested_at", "cleared_at", "stale_at",
         "changed_at", "scheduled_for")  # fmt: skip


@pytest.mark.parametrize("column", TIMES)
@pytest.mark.parametrize("at", ["-infinity", "infinity", "20000-01-01"])
async def test_no_time_of_a_job_is_one_that_no_client_can_read(
    rig: PostgresRig, column: str, at: str
) -> None:
    """A slot without end stopped all claims, any other one each list that it stood in."""
    wanted = f"{column} is .*, wanted a time of the years 1 to 9999"
    with psycopg.connect(rig.url, autocommit=True) as connection:
        await put(rig.engine, 0)
        for statement in (
            f"insert into {SCHEMA}.job_rows (kind, {column}) values ('a', '{at}')",
            f"update {SCHEMA}.job_rows set {column} = '{at}'",
        ):
            with pytest.raises(psycopg.errors.CheckViolation, match=wanted):
                connection.execute(statement.encode())
        with pytest.raises(psycopg.errors.CheckViolation, match=wanted):
            copy(rig, f"kind, {column}", f"a\t{at}")
    assert len(await take(rig.engine)) == 1


NESTED = "(repeat('[', 300) || repeat(']', 300))::jsonb"


@pytest.mark.parametrize("payload", [NESTED, "'1e400'", "to_jsonb(repeat('x', 1048577))"])
async def test_a_payload_is_bounded_when_it_is_changed_too(rig: PostgresRig, payload: str) -> None:
    await put(rig.engine, 0)
    with psycopg.connect(rig.url, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.CheckViolation, match="the payload "):
            connection.execute(f"update {SCHEMA}.job_rows set payload = {payload}".encode())
        connection.execute(f"update {SCHEMA}.job_rows set payload = '[1]'".encode())
    assert (await take_one(rig.engine)).payload == "[1]"


async def test_a_payload_from_a_table_is_measured_as_it_is_not_as_it_is_packed(  # noqa: ASYNC124 - its fixture waits
    rig: PostgresRig,
) -> None:
    """What compresses well came in at any size."""
    with psycopg.connect(rig.url, autocommit=True) as connection:
        connection.execute(b"create table packed (payload jsonb)")
        connection.execute(b"insert into packed select to_jsonb(repeat('x', 5000000))")
        for statement in (
            f"insert into {SCHEMA}.jobs (kind, payload) select 'a', payload from packed",
            f"insert into {SCHEMA}.jobs (kind, payload) select 'a', payload from packed limit 1",
        ):
            with pytest.raises(psycopg.errors.CheckViolation, match="at most 1048576 are allowed"):
                connection.execute(statement.encode())


@pytest.mark.parametrize("counter", ["attempt", "forgiven"])
@pytest.mark.parametrize("number", [-1, 2**31 - 1])
async def test_a_counter_has_room_for_what_is_counted(
    rig: PostgresRig, counter: str, number: int
) -> None:
    """One at its end stopped all claims: it cannot be counted up."""
    await put(rig.engine, 0)
    with psycopg.connect(rig.url, autocommit=True) as connection:
        for statement in (
            f"insert into {SCHEMA}.job_rows (kind, {counter}) values ('a', {number})",
            f"update {SCHEMA}.job_rows set {counter} = {number}",
        ):
            with pytest.raises(psycopg.errors.CheckViolation, match="attempt"):
                connection.execute(statement.encode())
    assert len(await take(rig.engine)) == 1


@pytest.mark.parametrize(("column", "value"), [("payload", "'1e400'"), ("run_at", "'infinity'")])
async def test_a_role_that_only_inserts_is_told_why_it_is_refused(  # noqa: ASYNC124 - its fixture waits
    rig: PostgresRig, column: str, value: str
) -> None:
    line = f"insert into {SCHEMA}.jobs (kind, {column}) values ('a', {value})"
    with psycopg.connect(rig.url) as connection:  # whose end takes the role with it
        connection.execute(b"create role shop_of_hand_written")
        connection.execute(f"grant usage on schema {SCHEMA} to shop_of_hand_written".encode())
        right = f"grant insert, select on {SCHEMA}.jobs to shop_of_hand_written"
        connection.execute(right.encode())
        connection.execute(b"set role shop_of_hand_written")
        with pytest.raises(psycopg.errors.CheckViolation):
            connection.execute(line.encode())
        connection.rollback()


async def test_a_settlement_that_meets_the_delete_of_its_job_changes_nothing(
    rig: PostgresRig,
) -> None:
    """One has the lease and wants the row, the other the reverse: the server ends one of them."""
    await put(rig.engine, 0)
    claim = await take_one(rig.engine)

    def delete() -> None:
        with psycopg.connect(rig.url, autocommit=True) as deleting:
            deleting.execute(f"delete from {SCHEMA}.job_rows".encode())

    with psycopg.connect(rig.url) as settling:
        settling.execute("set deadlock_timeout = '50 ms'")
        settling.execute(f"select from {SCHEMA}.leases for update".encode())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, delete)
            while not rig.raw(WAITING):  # noqa: ASYNC110 - only asking again tells
                await trio.sleep(0.01)
            with pytest.raises(psycopg.errors.DeadlockDetected):
                settling.execute(f"update {SCHEMA}.job_rows set node = 'south'".encode())
            settling.rollback()
    no_faults(rig)
    assert (await settle(rig.engine, ending(claim))).rejected == {claim.id}
    assert rig.raw("select count(*) from leases") == [(0,)]
