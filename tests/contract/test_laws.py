"""What the database itself refuses, whoever writes to it."""

import sqlite3

import psycopg
import pytest

from musterd.store.lifecycle import INITIAL, LEASED, TRANSITIONS, JobState
from tests.contract.job_tools import ending, put, settle, state_of, take, take_one
from tests.contract.rigs import PostgresRig, Rig, SqliteRig, opened

REFUSALS = (sqlite3.IntegrityError, psycopg.IntegrityError, psycopg.DataError)


async def bring_to(rig: Rig, state: JobState) -> int:
    """A job in this state, by legal steps."""
    (job_id,) = await put(rig.engine, 0)
    if state is JobState.PENDING:
        rig.raw(
            "insert into job_rows (kind, state, created_at, run_at)"
            f" select kind, 'pending', created_at, run_at from job_rows where id = {job_id}"
        )
        return job_id + 1
    if state is JobState.ASSIGNED:
        await take(rig.engine, workers=0, ahead=1)
    elif state is not JobState.QUEUED:
        claim = await take_one(rig.engine)
        if state is not JobState.RUNNING:
            await settle(rig.engine, ending(claim, state))
    return job_id


def becoming(rig: Rig, before: JobState, after: JobState) -> str:
    """Sets all that the state needs, so that nothing but the transition can be refused."""
    change = f"state = '{after.value}', started_at = run_at, finished_at = run_at"
    if isinstance(rig, PostgresRig):  # its leases are elsewhere; an end counts the attempt
        return f"{change}, attempt = attempt + 1" if before in LEASED else change
    token = "claim_token = coalesce(claim_token, (select claim_token from job_rows where id = 1))"
    leased = f"{token}, node = 'n', lease_expires_at = run_at, heartbeat_at = run_at, attempt = 1"
    free = "lease_expires_at = null, heartbeat_at = null"
    return f"{change}, {leased if after in LEASED else free}"


def may_be_written(rig: Rig, before: JobState, after: JobState) -> bool:
    """On PostgreSQL no row says that a job is in hand: a lease does."""
    if isinstance(rig, PostgresRig) and after in LEASED:
        return False
    return (before, after) in TRANSITIONS


@pytest.mark.parametrize("before", JobState)
async def test_the_database_allows_exactly_the_transitions_of_the_table(
    rig: Rig, before: JobState
) -> None:
    await put(rig.engine, 0)
    await settle(rig.engine, ending(await take_one(rig.engine)))  # job 1: the one with a token
    for after in set(JobState) - {before}:
        job_id = await bring_to(rig, before)
        change = f"update job_rows set {becoming(rig, before, after)} where id = {job_id}"
        if may_be_written(rig, before, after):
            if isinstance(rig, PostgresRig):
                rig.raw("delete from leases")
            rig.raw(change)
            assert await state_of(rig.engine, job_id) is after
        else:
            with pytest.raises(REFUSALS):
                rig.raw(change)
            assert await state_of(rig.engine, job_id) is before
        # Out of the way of the next claim.
        rig.raw(f"delete from job_rows where id >= {job_id}")


@pytest.mark.parametrize("state", JobState)
async def test_a_state_may_follow_itself(rig: Rig, state: JobState) -> None:
    job_id = await bring_to(rig, state)
    rig.raw(f"update job_rows set state = state where id = {job_id}")
    assert await state_of(rig.engine, job_id) is state


@pytest.mark.parametrize("state", JobState)
async def test_a_new_row_is_pending_or_queued(rig: Rig, state: JobState) -> None:
    await put(rig.engine, 0)
    statement = (
        "insert into job_rows (kind, state, finished_at, created_at, run_at)"
        f" select kind, '{state.value}', run_at, created_at, run_at from job_rows"
    )
    if state in INITIAL:
        rig.raw(statement)
        return
    with pytest.raises(REFUSALS):
        rig.raw(statement)


BAD_ROWS = {
    "kind": ["''", "null"],
    "payload": ["'{'", "''", "null", "'[1,]'"],
    "priority": ["32768", "-32769"],
    "state": ["'waiting'", "''", "null", "'pending queued'", "'QUEUED'"],
    "attempt": ["1", "-1", "null"],
    "max_attempts": ["0", "-1"],
    "result": ["'{'"],
    "error": ["'oops'"],
    "created_at": ["null"],
    "run_at": ["null"],
}
BAD_VALUES = [(column, value) for column, values in BAD_ROWS.items() for value in values]


@pytest.mark.parametrize(("column", "value"), BAD_VALUES)
async def test_a_bad_row_is_refused(rig: Rig, column: str, value: str) -> None:
    await put(rig.engine, 0)
    row = {"kind": "kind", "created_at": "created_at", "run_at": "run_at", column: value}
    columns, values = ", ".join(row), ", ".join(row.values())
    with pytest.raises(REFUSALS):
        rig.raw(f"insert into job_rows ({columns}) select {values} from job_rows")
    assert (await rig.engine.queue.counts()).enqueued_total == 1


BAD_CHANGES = [
    ("succeeded", "finished_at = null"),
    ("failed", "finished_at = null"),
    ("canceled", "finished_at = null"),
    ("queued", "max_attempts = 0"),
    ("queued", "request = 'cancel'"),
    ("running", "request = 'stop'"),
    ("running", "progress = 101"),
    ("queued", "dedup_key = ''"),
]


@pytest.mark.parametrize(("state", "change"), BAD_CHANGES)
async def test_a_row_that_does_not_fit_its_state_is_refused(
    rig: Rig, state: str, change: str
) -> None:
    await check_refused(rig, state, change)


BAD_LEASES = [
    *[("queued", f"{column} = run_at") for column in ("lease_expires_at", "heartbeat_at")],
    *[("running", f"{column} = null") for column in ("claim_token", "lease_expires_at", "node")],
    ("assigned", "claim_token = null"),
    ("paused", "lease_expires_at = run_at"),
]


@pytest.mark.parametrize(("state", "change"), BAD_LEASES)
async def test_a_row_is_leased_altogether_or_not_at_all(
    unopened_sqlite: SqliteRig, state: str, change: str
) -> None:
    async with opened(unopened_sqlite) as rig:
        await check_refused(rig, state, change)


async def check_refused(rig: Rig, state: str, change: str) -> None:
    """So is this change of a job in that state."""
    job_id = await bring_to(rig, JobState(state))
    with pytest.raises(REFUSALS):
        rig.raw(f"update job_rows set {change} where id = {job_id}")


BAD_CHANGES_OF_LEASES = [
    *("token = null", "node = null", "expires_at = null", "heartbeat_at = null", "jobs = null"),
    *("started = '{}'", "workers = '{1, 2}'", "started_at = '{}'"),
]


@pytest.mark.parametrize("change", BAD_CHANGES_OF_LEASES)
async def test_a_lease_says_all_of_itself(postgres_rig: PostgresRig, change: str) -> None:
    await bring_to(postgres_rig, JobState.RUNNING)
    with pytest.raises(REFUSALS):
        postgres_rig.raw(f"update leases set {change}")


@pytest.mark.parametrize("state", ["assigned", "running"])
@pytest.mark.parametrize(
    "change", ["state = 'paused'", "state = 'canceled', finished_at = now()", "kind = 'other'"]
)
async def test_a_job_in_hand_is_its_holders(
    postgres_rig: PostgresRig, state: str, change: str
) -> None:
    job_id = await bring_to(postgres_rig, JobState(state))
    with pytest.raises(psycopg.errors.CheckViolation, match=f"job {job_id} is in hand"):
        postgres_rig.raw(f"update job_rows set {change} where id = {job_id}")


BAD_STRETCHES = [
    "insert into ready values (0, now(), 7, 6, 'a')",
    "insert into ready values (0, now(), 100, 164, 'a')",
    "insert into ready values (0, now(), 7, 8, 'a', 'a target')",
    "insert into ready select * from ready",
    "insert into waiting values ('hall', 'a', 0, now(), 7, 7, 'a')",
    "insert into waiting values ('parked', 'b', 0, now(), 7, 7, 'a')",
    "insert into waiting values ('behind', 'a', 0, now(), 7, 7, 'a', 'b')",
    "insert into waiting values ('parked', 'a', 0, now(), 7, 71, 'a')",
    "insert into waiting values ('parked', 'a', 0, now(), 7, 6, 'a')",
    "insert into waiting values ('behind', 'b', 0, now(), 7, 8, 'a', 'b')",
]


@pytest.mark.parametrize("statement", BAD_STRETCHES)
async def test_a_stretch_is_short_and_stands_in_its_room(
    postgres_rig: PostgresRig, statement: str
) -> None:
    await put(postgres_rig.engine, 0)
    with pytest.raises(REFUSALS):
        postgres_rig.raw(statement)


async def test_an_attempt_is_in_the_history_once(rig: Rig) -> None:
    await put(rig.engine, 0)
    await settle(rig.engine, ending(await take_one(rig.engine), JobState.QUEUED))
    with pytest.raises(REFUSALS):
        rig.raw(
            "insert into attempts (job_id, attempt, finished_at, outcome)"
            " select job_id, attempt, finished_at, outcome from attempts"
        )
