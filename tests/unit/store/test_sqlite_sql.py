"""The plans of the SQLite statements, and the pieces around them that are pure."""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from importlib.resources import files

import pytest

from musterd.store.errors import InputRefused, OutcomeUnknown, StoreMisconfigured, StoreUnavailable
from musterd.store.leases import ReapRule
from musterd.store.lifecycle import JobState
from musterd.store.sqlfiles import Migration, current_schema, found_in, load_statements, shipped
from musterd.store.sqlite import rows
from musterd.store.sqlite.database import PACKAGE, statements
from musterd.store.sqlite.errors import sort_error, sort_file_error
from musterd.store.sqlite.jobs import JOBS, LINE
from musterd.store.sqlite.leases import judge
from musterd.store.sqlite.retention import TO_DELETE, TO_MARK

SQL = load_statements(PACKAGE)


@pytest.fixture
def migrated() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    for migration in shipped(PACKAGE):
        connection.executescript(migration.sql)
    yield connection
    connection.close()


def plan_of(connection: sqlite3.Connection, sql: str) -> list[str]:
    """The steps that touch jobs or attempts."""
    nothing = dict.fromkeys(ALL_PARAMETERS)
    steps = [row[3] for row in connection.execute(f"explain query plan {sql}", nothing)]
    return [step for step in steps if "job_rows" in step or "attempts" in step]


def whole_plan(connection: sqlite3.Connection, sql: str) -> list[str]:
    nothing = dict.fromkeys(ALL_PARAMETERS)
    return [row[3] for row in connection.execute(f"explain query plan {sql}", nothing)]


ALL_PARAMETERS = [
    *("id", "job_id", "token", "now", "priority", "count", "worker", "node", "state", "result"),
    *("error", "reason", "outcome", "run_at", "started_at", "finished_at", "forgive", "attempt"),
    *("lease_expires_at", "before", "kind", "payload", "max_attempts", "by", "log", "spent"),
    *("action", "effect", "percent", "note", "request", "target", "reserved"),
    *("bound", "own_priority", "own_run_at", "phase", "phase_percent", "name", "place", "progress"),
    *("until", "after_at", "after_id", "ids", "workers", "seats", "whole"),
    *("first", "last", "floor", "text", "line", "key", "by_end", "span"),
    *("tokens", "starts", "ends", "sizes", "places", "results", "since"),
    "made_ahead",
]

TRIGGERS = {1: 6}

INDEX_OF = {
    "due_priorities": "job_rows_claim",
    "due_jobs": "job_rows_claim",
    "observe": "job_rows_claim",
    "next_due": "job_rows_claim",
    "not_yet_due": "job_rows_claim",
    "waiting_priorities": "job_rows_claim",
    "due_kinds": "job_rows_claim",
    "later_kinds": "job_rows_claim",
    "failed_kinds": "job_rows_ended",
    "last_ends": "job_rows_ended",
    "count_parked": "job_rows_parked",
    "parked_kinds": "job_rows_parked",
    "leased_kinds": "job_rows_active",
    "leased_of_target": "job_rows_one_a_target",
    "halting": "job_rows_halting",
    "behind": "job_rows_behind",
    "count_behind": "job_rows_behind",
    "why_leased": "job_rows_active",
    "why_line": "job_rows_claim",
    "claims_under": "job_rows_active",
    "reap": "job_rows_active",
    "expire_all": "job_rows_active",
}


@pytest.mark.parametrize("name", INDEX_OF)
def test_a_statement_reads_along_its_index(migrated: sqlite3.Connection, name: str) -> None:
    steps = plan_of(migrated, SQL[name])
    assert steps
    assert all(INDEX_OF[name] in step for step in steps), steps


@pytest.mark.parametrize(
    ("which", "index"), [(TO_MARK, "job_rows_ended"), (TO_DELETE, "job_rows_stale")]
)
@pytest.mark.parametrize("name", ["ended_kind", "ended_jobs"])
def test_retention_walks_along_its_indexes(
    migrated: sqlite3.Connection, name: str, which: str, index: str
) -> None:
    (step,) = plan_of(migrated, SQL[name].format(which=which))
    assert f"INDEX {index} (state=? AND kind" in step
    nothing = dict.fromkeys(ALL_PARAMETERS)
    sql = SQL[name].format(which=which)
    steps = [row[3] for row in migrated.execute(f"explain query plan {sql}", nothing)]
    assert not any("TEMP B-TREE" in each for each in steps)


@pytest.mark.parametrize("name", ["due_jobs"])
def test_the_claim_sorts_nothing(migrated: sqlite3.Connection, name: str) -> None:
    nothing = dict.fromkeys(ALL_PARAMETERS)
    steps = [row[3] for row in migrated.execute(f"explain query plan {SQL[name]}", nothing)]
    assert not any("TEMP B-TREE" in step for step in steps), steps


@pytest.mark.parametrize(
    "name",
    [
        *("claim", "settle", "requeue", "record_attempt", "renew", "settled_already", "attempts"),
        *(
            "held",
            "note_progress",
            "note_log",
            "log_head",
            "past_logs",
            "stand_of",
            "control",
            "ask_holder",
            "clear",
        ),
        *("keep_attempt", "park", "mark_running", "move_on", "settle_plain", "held_many"),
    ],
)
def test_a_statement_about_one_job_goes_straight_to_it(
    migrated: sqlite3.Connection, name: str
) -> None:
    steps = plan_of(migrated, SQL[name])
    assert steps
    assert all("PRIMARY KEY" in step for step in steps), steps


def test_the_first_parked_jobs_of_a_kind_are_found_along_their_index(
    migrated: sqlite3.Connection,
) -> None:
    steps = plan_of(migrated, SQL["unpark"])
    assert any("job_rows_parked (kind=?)" in step for step in steps), steps
    assert not any("SCAN job_rows" in step for step in steps), steps


@pytest.mark.parametrize("state", ["pending", "paused", "failed", "canceled"])
def test_jobs_at_rest_are_listed_along_their_index(
    migrated: sqlite3.Connection, state: str
) -> None:
    sql = SQL["look_through"].format(source=JOBS, which=f"state = '{state}'", states="true")
    steps = whole_plan(migrated, sql)
    (step,) = [step for step in steps if "job_rows" in step]
    assert "INDEX job_rows_resting (state=? AND id>? AND id<?)" in step
    assert not any("TEMP B-TREE" in step for step in steps), steps


@pytest.mark.parametrize(("source", "which"), LINE)
def test_a_short_line_is_read_along_its_indexes(
    migrated: sqlite3.Connection, source: str, which: str
) -> None:
    steps = whole_plan(
        migrated, SQL["look_through"].format(source=source, which=which, states="true")
    )
    (step,) = [step for step in steps if "job_rows" in step]
    assert source.rpartition(" ")[2] in step


@pytest.mark.parametrize("states", ["true", "(state = 'queued' or state = 'failed')"])
def test_jobs_are_walked_through_along_the_key_newest_first(
    migrated: sqlite3.Connection, states: str
) -> None:
    sql = SQL["look_through"].format(source=JOBS, which="true", states=states)
    steps = whole_plan(migrated, sql)
    (step,) = [step for step in steps if "job_rows" in step]
    assert "USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)" in step
    assert not any("TEMP B-TREE" in step for step in steps), steps


@pytest.mark.parametrize("migration", shipped(PACKAGE), ids=lambda migration: migration.name)
def test_a_migration_is_cut_into_all_of_its_statements(migration: Migration) -> None:
    parts = list(statements(migration.sql))
    assert "".join(parts).strip() == migration.sql.strip()
    assert len([part for part in parts if "create trigger" in part]) == TRIGGERS[migration.number]


def made_by(*scripts: str) -> list[tuple[str, str, str]]:
    """What a file has after these scripts: its tables, indexes, triggers and views."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for script in scripts:
            connection.executescript(script)
        return connection.execute("select type, name, sql from sqlite_master").fetchall()


def test_the_schema_is_what_all_migrations_make() -> None:
    package = files(PACKAGE)
    migrated = made_by(*(migration.sql for migration in found_in(package)))
    assert migrated
    assert sorted(migrated, key=str) == sorted(made_by(current_schema(package)), key=str)


def test_the_view_for_people_shows_times_as_text(migrated: sqlite3.Connection) -> None:
    migrated.execute("insert into job_rows (kind, created_at, run_at) values ('a', 0, 1500000)")
    (row,) = migrated.execute("select created_at, run_at, state from jobs")
    assert row == ("1970-01-01T00:00:00.000Z", "1970-01-01T00:00:01.500Z", "queued")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_only_finite_times_are_times(value: float) -> None:
    with pytest.raises(InputRefused):
        rows.microseconds(value)


@pytest.mark.parametrize("at", [0, 1, -1, 1_800_000_000_123_456, 253402300799999999])
def test_a_moment_is_exact_to_the_microsecond(at: int) -> None:
    moment = rows.moment(at)
    assert moment is not None
    assert moment.tzinfo is UTC
    assert (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) == at


@pytest.mark.parametrize(
    ("rule", "attempt", "max_attempts", "forgiven", "state"),
    [
        (ReapRule("requeue", 3), 2, None, 0, JobState.QUEUED),
        (ReapRule("requeue", 3), 3, None, 0, JobState.FAILED),
        (ReapRule("requeue", 3), 3, None, 1, JobState.QUEUED),
        (ReapRule("requeue", 3), 4, 9, 0, JobState.QUEUED),
        (ReapRule("pause", 3), 1, 1, 5, JobState.FAILED),
        (ReapRule("pause", 3), 1, None, 0, JobState.PAUSED),
        (ReapRule("fail", 3), 1, 9, 0, JobState.FAILED),
    ],
)
def test_a_lost_lease_is_judged_by_rule_and_budget(
    rule: ReapRule, attempt: int, max_attempts: int | None, forgiven: int, state: JobState
) -> None:
    assert judge(rule, attempt, max_attempts, forgiven) is state


def error_with(code: int, text: str = "trouble") -> sqlite3.Error:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("code", "trouble"),
    [
        (sqlite3.SQLITE_BUSY, "timeout"),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, "timeout"),
        (sqlite3.SQLITE_FULL, "disk_full"),
        (sqlite3.SQLITE_READONLY_DBMOVED, "read_only"),
        (sqlite3.SQLITE_IOERR_READ, "unreachable"),
    ],
)
def test_weather_is_told_by_its_word(code: int, trouble: str) -> None:
    sorted_out = sort_error(error_with(code), "enqueue", "here", committing=False)
    assert type(sorted_out) is StoreUnavailable
    assert sorted_out.trouble == trouble
    assert str(sorted_out) == "enqueue: here: trouble"


def test_a_commit_that_broke_may_have_been_carried_out() -> None:
    broken = error_with(sqlite3.SQLITE_IOERR_FSYNC)
    assert type(sort_error(broken, "x", "y", committing=True)) is OutcomeUnknown
    full = error_with(sqlite3.SQLITE_FULL)
    assert type(sort_error(full, "x", "y", committing=True)) is StoreUnavailable


@pytest.mark.parametrize(
    "code", [sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CANTOPEN]
)
def test_what_waiting_does_not_help_is_misconfigured(code: int) -> None:
    assert type(sort_error(error_with(code), "x", "y")) is StoreMisconfigured


def test_a_bug_of_ours_is_no_error_of_the_store() -> None:
    assert sort_error(error_with(sqlite3.SQLITE_ERROR, "syntax error"), "x", "y") is None
    assert sort_error(error_with(sqlite3.SQLITE_MISUSE), "x", "y") is None
    assert sort_error(sqlite3.ProgrammingError("wrong thread"), "x", "y") is None


def test_files_have_weather_too() -> None:
    full = sort_file_error(OSError(errno.ENOSPC, "No space left"), "x", "y")
    assert isinstance(full, StoreUnavailable)
    assert full.trouble == "disk_full"
    denied = sort_file_error(PermissionError(errno.EACCES, "Permission denied"), "x", "y")
    assert isinstance(denied, StoreMisconfigured)
