"""What a daemon does on the embedded engine, measured from the outside."""

from __future__ import annotations

import json
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import trio

from musterd.config.load import load
from musterd.store.jobs import NewJob
from musterd.store.opening import make_engine
from musterd.store.sqlite.database import connect
from musterd.store.sqlite.hints import Hints
from musterd.store.sqlite.jobs import enqueue
from tests.bench.growth.draining import RECORD, workshop
from tests.bench.growth.embedded import file
from tests.bench.running import daemon, wait_until

BATCH = 1_000
BUSY_SECONDS = 5.0


def drain(rows: int) -> float:
    """Jobs a second with one daemon of 100 workers."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        sets = ("workers.default_count=100", "workers.max_count=100")
        return drained(Path(folder) / "bench.db", "noop", rows, sets)


def pickups(jobs: int = 200, gap_seconds: float = 0.03) -> list[float]:
    """Milliseconds from the commit of a job that this process enqueues to its handler's first line,
    in an idle daemon; sorted.
    """
    committed: list[float] = []
    with file("pickup") as made, workshop() as shop, daemon(made.url, shop.sets(100)):
        database = connect(str(made.path), made.url, time.time, BUSY_SECONDS)
        hints = Hints(made.path.with_name(f"{made.path.name}.wake"))
        time.sleep(1.5)
        for number in range(jobs):
            enqueue(database, [NewJob("note", json.dumps({"i": number}))])
            committed.append(time.time())
            hints.ring()
            time.sleep(gap_seconds)
        wait_until(lambda: shop.done() == jobs)
        database.connection.close()
        records = RECORD.iter_unpack(shop.records.read_bytes())
        begun: list[tuple[int, float]] = [each[:2] for each in records]
    return sorted((began - committed[number]) * 1000 for number, began in begun)


def drained(path: Path, kind: str, rows: int, sets: Sequence[str]) -> float:
    """Jobs a second of a daemon, from the first start to the last settlement."""
    url = f"sqlite:///{path}"
    trio.run(_fill, url, kind, rows)
    with daemon(url, sets), sqlite3.connect(path) as conn:
        wait_until(lambda: _done(conn) == rows)
        span = "select min(started_at), max(finished_at) from job_rows"
        first, last = conn.execute(span).fetchone()
    return rows / ((float(last) - float(first)) / 1e6)


async def _fill(url: str, kind: str, rows: int) -> None:
    engine = make_engine(url, load(None, {}, []).settings, lambda: 1_700_000_000.0)
    await engine.open()
    await engine.migrate()
    for first in range(0, rows, BATCH):
        await engine.jobs.enqueue([NewJob(kind) for _ in range(min(BATCH, rows - first))])
    await engine.close()


def _done(conn: sqlite3.Connection) -> int:
    row = conn.execute("select count(*) from job_rows where state = 'succeeded'").fetchone()
    return int(row[0])
