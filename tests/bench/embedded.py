"""What a daemon does on the embedded engine, measured from the outside."""

from __future__ import annotations

import sqlite3
import tempfile

import trio

from musterd.config.load import load
from musterd.store.jobs import NewJob
from musterd.store.opening import make_engine
from tests.bench.running import daemon, wait_until

BATCH = 1_000


def drain(rows: int) -> float:
    """Jobs a second with one daemon of 100 workers, from the first start to the last settlement."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        path = f"{folder}/bench.db"
        trio.run(_fill, f"sqlite:///{path}", rows)
        sets = ("workers.default_count=100", "workers.max_count=100")
        with daemon(f"sqlite:///{path}", sets), sqlite3.connect(path) as conn:
            wait_until(lambda: _done(conn) == rows)
            first, last = conn.execute(
                "select min(started_at), max(finished_at) from job_rows"
            ).fetchone()
        return rows / ((float(last) - float(first)) / 1e6)


async def _fill(url: str, rows: int) -> None:
    engine = make_engine(url, load(None, {}, []).settings, lambda: 1_700_000_000.0)
    await engine.open()
    await engine.migrate()
    for first in range(0, rows, BATCH):
        await engine.jobs.enqueue([NewJob("noop") for _ in range(min(BATCH, rows - first))])
    await engine.close()


def _done(conn: sqlite3.Connection) -> int:
    row = conn.execute("select count(*) from job_rows where state = 'succeeded'").fetchone()
    return int(row[0])
