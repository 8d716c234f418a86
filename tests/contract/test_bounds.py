"""What the database itself keeps within bounds, of attempts, phases and payloads."""

import sqlite3
from collections.abc import AsyncGenerator
from pathlib import Path

import psycopg
import pytest

from tests.contract.job_tools import put, take
from tests.contract.rigs import SCHEMA, PostgresRig, SqliteRig, check_violations, closing_engine

ATTEMPT = "insert into attempts (job_id, attempt, outcome, started_at, finished_at) values"
PHASE = "insert into job_phases (job_id, place, name, attempts, started_at, finished_at) values"


@pytest.mark.parametrize(
    "statement",
    [
        f"{ATTEMPT} (1, 1, 'failed', now(), 'infinity')",
        f"{ATTEMPT} (1, 1, 'failed', '-infinity', now())",
        f"{ATTEMPT} (1, 1, 'failed', '12026-01-01', now())",
        f"{ATTEMPT} (1, -1, 'failed', now(), now())",
        f"{PHASE} (1, 1, 'a', 0, '0044-03-15 BC', null)",
        f"{PHASE} (1, 1, 'a', 0, null, 'infinity')",
        f"{PHASE} (1, 1, 'a', -1, null, null)",
        f"{PHASE} (1, 1, '', 0, null, null)",
        "update attempts set finished_at = 'infinity'",
        "update job_phases set started_at = '-infinity'",
    ],
)
async def test_what_no_client_could_read_of_an_attempt_or_a_phase_is_refused(
    postgres_rig: PostgresRig, statement: str
) -> None:
    """Even where triggers are switched off."""
    rig = postgres_rig
    await put(rig.engine, 0)
    rig.raw(f"{ATTEMPT} (1, 7, 'failed', null, now())")
    rig.raw(f"{PHASE} (1, 7, 'whole', 0, null, null)")
    with pytest.raises(psycopg.errors.CheckViolation, match=r"1_to_9999|counted|has_a_name"):
        rig.raw(f"set session_replication_role = replica; {statement}")
    job = await rig.engine.jobs.get(1)
    assert job is not None
    assert [one.attempt for one in job.attempts] == [7]


@pytest.fixture
async def file_rig(tmp_path: Path) -> AsyncGenerator[SqliteRig]:
    """A store in a file, with one job."""
    rig = SqliteRig(str(tmp_path / "musterd.db"))
    async with closing_engine(rig.engine):
        await rig.engine.open()
        await rig.engine.migrate()
        await put(rig.engine, 0)
        yield rig


OUT_OF_WALKS = [0, -5, 2**63 - 1]


@pytest.mark.parametrize("job_id", OUT_OF_WALKS)
async def test_an_id_that_walks_over_all_jobs_would_leave_out_is_refused(  # noqa: ASYNC124 - its fixture waits
    postgres_rig: PostgresRig, job_id: int
) -> None:
    for table in ("job_rows", "jobs"):
        with pytest.raises(psycopg.errors.CheckViolation, match=r"the id is .*, wanted 1 to"):
            postgres_rig.raw(f"insert into {table} (id, kind) values ({job_id}, 'a')")


@pytest.mark.parametrize("job_id", OUT_OF_WALKS)
async def test_so_is_one_in_a_file(file_rig: SqliteRig, job_id: int) -> None:
    made = f"insert into job_rows (id, kind, created_at, run_at) values ({job_id}, 'a', 1, 1)"
    with pytest.raises(sqlite3.IntegrityError, match="id_is_in_walks"):
        file_rig.raw(made)
    assert await put(file_rig.engine, 0) == [2]


YEAR_10000 = 253_402_300_800_000_000


@pytest.mark.parametrize(
    "statement",
    [
        f"{ATTEMPT} (1, 1, 'failed', 0, {YEAR_10000})",
        f"{ATTEMPT} (1, 1, 'failed', -{YEAR_10000}, 0)",
        f"{ATTEMPT} (1, 1, 'failed', 0, 'soon')",
        f"{ATTEMPT} (1, 1, 'failed', 1.5, 0)",
        f"{ATTEMPT} (1, -1, 'failed', 0, 0)",
        f"{ATTEMPT} (1, 2000000001, 'failed', 0, 0)",
        f"{PHASE} (1, 1, 'a', 0, -{YEAR_10000}, null)",
        f"{PHASE} (1, 1, 'a', 0, null, {YEAR_10000})",
        f"{PHASE} (1, 1, 'a', -1, null, null)",
        f"{PHASE} (1, 1, '', 0, null, null)",
        f"{PHASE} (1, 1, x'61', 0, null, null)",
        f"update attempts set finished_at = {YEAR_10000}",
        "update job_phases set started_at = 'soon'",
        "update job_phases set in_attempt = -1",
    ],
)
async def test_nor_is_it_kept_in_a_file(file_rig: SqliteRig, statement: str) -> None:
    rig = file_rig
    rig.raw(f"{ATTEMPT} (1, 7, 'failed', null, 0)")
    rig.raw(f"{PHASE} (1, 7, 'whole', 0, null, null)")
    with pytest.raises(sqlite3.IntegrityError, match=r"microseconds|counted|has_a_name"):
        rig.raw(statement)
    job = await rig.engine.jobs.get(1)
    assert job is not None
    assert [one.attempt for one in job.attempts] == [7]


async def test_a_payload_from_a_table_is_searched_for_depth_however_small_it_is_packed(  # noqa: ASYNC124 - its fixture waits
    postgres_rig: PostgresRig,
) -> None:
    with psycopg.connect(postgres_rig.url, autocommit=True) as connection:
        connection.execute(b"create table packed (payload jsonb, beside text)")
        connection.execute(b"alter table packed alter beside set storage plain")  # not packed first
        nested = "repeat('[', 75) || repeat(']', 75)"
        connection.execute(
            f"insert into packed select ({nested})::jsonb, repeat('x', 3000)".encode()
        )
        packed = connection.execute(b"select pg_column_size(payload) < 400 from packed").fetchone()
        assert packed == (True,)
        connection.execute(f"insert into {SCHEMA}.jobs (kind) values ('a')".encode())
    check_violations(
        postgres_rig,
        "nested more than 64 deep",
        f"insert into {SCHEMA}.jobs (kind, payload) select 'a', payload from packed",
        f"update {SCHEMA}.job_rows set payload = packed.payload from packed",
    )


async def test_a_job_is_not_made_in_a_year(postgres_rig: PostgresRig) -> None:
    """No start is before its job was made, nor before an earlier start of its node: one such row
    put off all that followed.
    """
    rig = postgres_rig
    await put(rig.engine, 0)
    later, wanted = "now() + interval '1 year'", "created_at is .*, which is yet to come"
    check_violations(
        rig,
        wanted,
        f"insert into {SCHEMA}.job_rows (kind, created_at) values ('a', {later})",
        f"insert into {SCHEMA}.jobs (kind, created_at) values ('a', {later})",
        f"update {SCHEMA}.job_rows set created_at = {later}",
    )
    assert len(await take(rig.engine)) == 1


LONG = {
    "node": ("repeat('n', 1601)", 401),
    "schedule": ("repeat('s', 801)", 201),
    "last_outcome": ("repeat('o', 21)", 21),
    "reason": ("repeat('r', 2097153)", 2_097_153),
    "progress_note": ("repeat('p', 4001)", 1001),
    "log": ("repeat('l', 67108865)", 67_108_865),
    "error": ("to_jsonb(repeat('e', 8388608))", 8_388_609),
    "spent": ("to_jsonb(repeat('s', 524288))", 524_289),
}


@pytest.mark.parametrize("column", LONG)
async def test_no_value_of_a_job_is_without_bound(postgres_rig: PostgresRig, column: str) -> None:
    """Whoever may insert jobs could keep any amount in one, and all who read it had to hold it."""
    value, _ = LONG[column]
    await put(postgres_rig.engine, 0)
    check_violations(
        postgres_rig,
        f"{column} takes [0-9]+ bytes, at most [0-9]+ are allowed",
        f"insert into {SCHEMA}.job_rows (kind, {column}) values ('a', {value})",
        f"update {SCHEMA}.job_rows set {column} = {value}",
    )
    assert len(await take(postgres_rig.engine)) == 1


@pytest.mark.parametrize("column", [*LONG, "result"])
async def test_nor_is_one_in_a_file(file_rig: SqliteRig, column: str) -> None:
    length = LONG[column][1] if column in LONG else 104_857_601
    blank = f"printf('%.*c', {length - 2}, 'x')"
    value = (
        f"'\"' || {blank} || '\"'" if column in {"error", "spent", "result"} else blank + " || 'xx'"
    )
    with pytest.raises(sqlite3.IntegrityError, match=r"short|slot"):
        file_rig.raw(f"update job_rows set {column} = {value}")
    assert len(await take(file_rig.engine)) == 1


@pytest.mark.parametrize("change", ["worker = 'me'", "claim_token = 'x'", "node = x'61'"])
async def test_nor_is_one_of_another_type(file_rig: SqliteRig, change: str) -> None:  # noqa: ASYNC124 - its fixture waits
    with pytest.raises(sqlite3.IntegrityError, match="short"):
        file_rig.raw(f"update job_rows set {change}")
