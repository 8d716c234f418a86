"""What a daemon does on PostgreSQL, measured from the outside."""

from __future__ import annotations

import re
import statistics
import time
from typing import Any, NamedTuple

import psycopg

from tests.bench.running import daemon, used, wait_until
from tests.support.postgres_server import PostgresServer

FILL = """
insert into musterd.job_rows (kind, payload)
select 'noop', jsonb_build_object('i', i) from generate_series(1, %s) i
"""
SPAN = """
select extract(epoch from max(finished_at) - min(started_at))::float8
from musterd.job_rows where state = 'succeeded'
"""
CREW_100 = ("workers.default_count=100", "workers.max_count=100")


class Drain(NamedTuple):
    jobs_a_second: float
    cpu_microseconds_a_job: float
    resident_mib: float
    wal_bytes_a_job: float


class Idle(NamedTuple):
    core_percent: float
    statements_a_second: float
    resident_mib: float


def prepared(server: PostgresServer, name: str, rows: int) -> str:
    """A database with the schema and so many queued no-op jobs in it."""
    dsn = server.create_database(name)
    with daemon(dsn), psycopg.connect(dsn, autocommit=True) as conn:
        wait_until(lambda: _value(conn, "select to_regclass('musterd.job_rows') is not null"))
    with psycopg.connect(dsn, autocommit=True) as conn:
        if rows:
            conn.execute(FILL, [rows])
        conn.execute("vacuum analyze")
        conn.execute("checkpoint")
    return dsn


def drain(server: PostgresServer, rows: int, queued: int | None = None) -> Drain:
    """Drains `rows` of `queued` jobs (all of them by default) with one daemon of 100 workers;
    acknowledged jobs count.
    """
    dsn = prepared(server, "drain", queued or rows)
    with psycopg.connect(dsn, autocommit=True) as conn:
        wal_before = _value(conn, "select pg_current_wal_lsn() - '0/0'::pg_lsn")
        with daemon(dsn, CREW_100) as process_id:
            wait_until(lambda: succeeded(conn) >= rows)
            conn.execute("update musterd.queue_state set paused_at = now()")
            usage = used(process_id)
        wal = _value(conn, "select pg_current_wal_lsn() - '0/0'::pg_lsn") - wal_before
        done, seconds = succeeded(conn), _value(conn, SPAN)
    server.drop_database("drain")
    return Drain(
        done / seconds, usage.cpu_seconds / done * 1e6, usage.resident_mib, float(wal) / done
    )


def pickups(server: PostgresServer, jobs: int = 200, gap_seconds: float = 0.03) -> list[float]:
    """Milliseconds from a job's commit to the end of its (no-op) run, on an idle daemon; sorted."""
    dsn = prepared(server, "pickup", 0)
    committed: dict[int, float] = {}
    with daemon(dsn), psycopg.connect(dsn, autocommit=True) as conn:
        time.sleep(1.5)
        for _ in range(jobs):
            job_id = _value(conn, "insert into musterd.jobs (kind) values ('noop') returning id")
            committed[job_id] = time.time()
            time.sleep(gap_seconds)
        wait_until(lambda: succeeded(conn) == jobs)
        ends = conn.execute("select id, extract(epoch from finished_at)::float8 from musterd.jobs")
        late = sorted((end - committed[job_id]) * 1000 for job_id, end in ends.fetchall())
    server.drop_database("pickup")
    return late


def idle(server: PostgresServer, seconds: float = 15.0) -> Idle:
    """What a daemon with nothing to do uses."""
    dsn = prepared(server, "idle", 0)
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("alter database idle set log_min_duration_statement = 0")
    with daemon(dsn) as process_id:
        time.sleep(3)
        before, said_before = used(process_id), len(server.log)
        time.sleep(seconds)
        after, said = used(process_id), server.log[said_before:]
    server.drop_database("idle")
    return Idle(
        (after.cpu_seconds - before.cpu_seconds) / seconds * 100,
        len(re.findall(r"duration: [0-9.]+ ms  (?:execute|statement)", said)) / seconds,
        after.resident_mib,
    )


def percentile(sorted_values: list[float], share: float) -> float:
    return statistics.quantiles(sorted_values, n=1000, method="inclusive")[round(share * 1000) - 1]


def succeeded(conn: psycopg.Connection[Any]) -> int:
    return int(_value(conn, "select succeeded from musterd.kept_counts"))


def _value(conn: psycopg.Connection[Any], statement: str) -> Any:
    row = conn.execute(statement.encode()).fetchone()
    assert row is not None
    return row[0]
