"""The ceiling: claims and completions by pgbench, and COPY, without a queue around them."""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg

from tests.support.postgres_server import PostgresServer

TABLE = """
drop table if exists bare;
create table bare (id bigint generated always as identity primary key, state smallint not null
default 0, run_at timestamptz not null default now(), lease_until timestamptz, worker text, payload
jsonb); insert into bare (payload) select '{"i": 1}' from generate_series(1, %(rows)s); create index
on bare (run_at, id) where state = 0;
"""
COPIED = """
create table bare (id bigint primary key, kind text not null, payload jsonb not null, priority
smallint not null, state text not null, run_at timestamptz not null default now());
create index on bare (priority desc, run_at, id) where state = 'queued';
"""
COPY = "copy bare (id, kind, payload, priority, state) from stdin"
SCRIPT = """
with c as (select id from bare where state = 0 order by run_at, id limit BATCH
           for update skip locked),
u as (update bare b set state = 1, lease_until = now() + interval '30s', worker = 'w'
      from c where b.id = c.id returning b.id, b.payload)
select coalesce(array_agg(id)::text, '{}') as ids, max(payload::text) as p from u \\gset
update bare set state = 2, lease_until = null where id = any(:ids::bigint[]);
"""


def claim_and_complete(server: PostgresServer, batch: int = 100, batches: int = 600) -> float:
    """Jobs a second: one client claims `batch` and completes them, in two transactions, again and
    again.
    """
    dsn = server.create_database("ceiling")
    rows = batch * (batches + 10)
    with psycopg.connect(dsn, autocommit=True) as conn:
        for statement in (TABLE % {"rows": rows}).split(";\n"):
            if statement.strip():
                conn.execute(statement.encode())
        conn.execute("vacuum analyze bare")
        conn.execute("checkpoint")
    rate = _pgbench(server, dsn, SCRIPT.replace("BATCH", str(batch)), batches) * batch
    server.drop_database("ceiling")
    return rate


def copy(server: PostgresServer, rows: int, batch: int) -> float:
    """Rows a second: COPY of ready-made text into a table with a primary key and a partial index,
    a transaction for each batch.
    """
    dsn = server.create_database("copied")
    seconds = 0.0
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(COPIED.encode())
        conn.execute("checkpoint")
        for first in range(0, rows, batch):
            numbers = range(first, first + batch)
            text = "".join([f'{i}\tnoop\t{{"i": {i}}}\t0\tqueued\n' for i in numbers])
            started = time.perf_counter()
            with conn.cursor() as cursor, cursor.copy(COPY) as copying:
                copying.write(text)
            seconds += time.perf_counter() - started
    server.drop_database("copied")
    return rows / seconds


def _pgbench(server: PostgresServer, dsn: str, script: str, transactions: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "script.sql"
        path.write_text(script)
        done = subprocess.run(
            [
                *(server.binaries / "pgbench", "--no-vacuum", "--protocol=prepared"),
                *("--client=1", f"--transactions={transactions}", f"--file={path}", dsn),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    found = re.search(r"tps = ([\d.]+) \(without", done.stdout)
    if done.returncode or not found:
        raise RuntimeError(f"pgbench: {done.stdout}{done.stderr}")
    return float(found[1])
