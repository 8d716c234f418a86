"""What a claim costs while many jobs stand behind their targets, beside a queue without targets."""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from random import Random

import psycopg
import trio

from musterd.config.load import load
from musterd.store.engine import Engine
from musterd.store.jobs import NewJob
from musterd.store.leases import ClaimRequest, Ends
from musterd.store.opening import make_engine
from musterd.store.postgres.engine import PostgresEngine
from musterd.store.postgres.setup import StoreOptions
from tests.support.postgres_server import PostgresServer

BATCH = 10
CLAIMS = 200
OPTIONS = StoreOptions(2, 5, 600, 5, 600, 0.1, 1, "")

# Put there past triggers: one job of a target has failed, and so many stand behind it.
HALTED = """
set session_replication_role = replica;
with failed as (
    insert into musterd.job_rows (kind, target, state, attempt, finished_at, last_outcome)
    values ('noop', 'halted', 'failed', 1, now(), 'failed') returning target, id)
insert into musterd.target_holders (target, job_id) select target, id from failed;
with made as (
    insert into musterd.job_rows (kind, target)
    select 'noop', 'halted' from generate_series(1, {count}) returning id, run_at)
insert into musterd.waiting (room, name, priority, run_at, first_id, last_id, kind, target)
    select 'behind', 'halted', 0, run_at, id, id, 'noop', 'halted' from made;
"""
EMBEDDED_HALTED = """
insert into job_rows (kind, target, created_at, run_at) values ('noop', 'halted', {now}, {now});
insert into job_rows (kind, target, created_at, run_at, behind)
    with recursive n (i) as (select 1 union all select i + 1 from n where i < {count})
    select 'noop', 'halted', {now}, {now}, 1 from n;
insert into target_holders (target, job_id, reserved)
    select target, min(id), 0 from job_rows where target is not null and not behind group by target;
update job_rows set state = 'running', attempt = 1, node = 'n', claim_token = randomblob(16),
    started_at = {now}, lease_expires_at = {now}, heartbeat_at = {now}
    where target is not null and not behind;
update job_rows set state = 'failed', finished_at = {now}, lease_expires_at = null,
    heartbeat_at = null where state = 'running';
"""
# So many targets have a job that runs and one that stands behind it.
BUSY = """
set session_replication_role = replica;
with running as (
    insert into musterd.job_rows (kind, target)
    select 'noop', 'busy ' || i from generate_series(1, {count}) i returning target, id),
held as (insert into musterd.target_holders (target, job_id) select target, id from running)
insert into musterd.leases (token, kind, target, node, claimed_at, expires_at, heartbeat_at, jobs,
        span)
    select gen_random_uuid(), 'noop', target, 'n', now(), now() + interval '1 day', now(),
           int8multirange(int8range(id, id, '[]')), int8range(id, id, '[]') from running;
with made as (
    insert into musterd.job_rows (kind, target)
    select 'noop', 'busy ' || i from generate_series(1, {count}) i returning id, run_at, target)
insert into musterd.waiting (room, name, priority, run_at, first_id, last_id, kind, target)
    select 'behind', target, 0, run_at, id, id, 'noop', target from made;
"""
EMBEDDED_BUSY = """
insert into job_rows (kind, target, created_at, run_at)
    with recursive n (i) as (select 1 union all select i + 1 from n where i < {count})
    select 'noop', 'busy ' || i, {now}, {now} from n;
insert into target_holders (target, job_id, reserved) select target, id, 0 from job_rows;
update job_rows set state = 'running', attempt = 1, node = 'n', claim_token = randomblob(16),
    started_at = {now}, lease_expires_at = {now} + 86400000000, heartbeat_at = {now};
insert into job_rows (kind, target, created_at, run_at, behind)
    select kind, target, created_at, run_at, 1 from job_rows;
"""
NOW = 1_700_000_000_000_000  # on the clock of the embedded engine
SCENES = {
    "no targets": ("", "", 0),
    "{count:,} behind one halted target": (HALTED, EMBEDDED_HALTED, 1_000_000),
    "{count:,} targets, each with a busy job and one behind": (BUSY, EMBEDDED_BUSY, 100_000),
}


def claims(server: PostgresServer, share: int) -> dict[str, dict[str, float]]:
    """By engine and scene: the median of what a claim of some jobs takes, in milliseconds."""
    found: dict[str, dict[str, float]] = {"PostgreSQL": {}, "embedded": {}}
    for name, (sql, embedded, number) in SCENES.items():
        count = number // share
        scene = name.format(count=count)
        found["PostgreSQL"][scene] = _on_postgres(server, sql, count)
        found["embedded"][scene] = _on_sqlite(embedded, count)
    return found


def _on_postgres(server: PostgresServer, sql: str, count: int) -> float:
    dsn = server.create_database("targets")

    def prepare() -> None:
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute(sql.format(count=count).encode())
            conn.execute("vacuum analyze")
            conn.execute("checkpoint")

    engine = PostgresEngine(dsn, "musterd", OPTIONS, Random(1))
    found = trio.run(_measured, engine, prepare if sql else None)
    server.drop_database("targets")
    return found


def _on_sqlite(sql: str, count: int) -> float:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        path = Path(folder) / "bench.db"

        def prepare() -> None:
            with sqlite3.connect(path) as conn:
                conn.executescript(sql.format(count=count, now=NOW))

        settings = load(None, {}, []).settings
        engine = make_engine(f"sqlite:///{path}", settings, lambda: 1_700_000_100.0)
        return trio.run(_measured, engine, prepare if sql else None)


async def _measured(engine: Engine, prepare: Callable[[], None] | None) -> float:
    await engine.open()
    await engine.migrate()
    if prepare is not None:
        await trio.to_thread.run_sync(prepare)
    await engine.jobs.enqueue([NewJob("noop")] * (CLAIMS * BATCH))
    seconds: list[float] = []
    for _ in range(CLAIMS):
        request = ClaimRequest(uuid.uuid4(), "bench", tuple(range(BATCH)), 0, 3600.0)
        started = time.perf_counter()
        exchange = await engine.leases.exchange(Ends(), request)
        seconds.append(time.perf_counter() - started)
        assert len(exchange.claims) == BATCH
    await engine.close()
    return statistics.median(seconds) * 1000
