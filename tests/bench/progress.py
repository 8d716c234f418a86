"""What progress costs: a hundred jobs in hand that report ten times a second, and as many that are
silent, on both engines: `python -m tests.bench.progress`.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from musterd import Client
from tests.bench import postgres
from tests.bench.running import daemon, used, wait_until
from tests.support.postgres_server import PostgresServer

WORKERS = 100
SECONDS = 12.0
HANDLERS = """
import trio
async def tells(job):
    await trio.sleep(job.fence.id % 100 / 1000)  # not all at the same moment
    for step in range(10_000):
        job.progress(step / 100, f"step {step}")
        await trio.sleep(0.1)
async def silent(job):
    for step in range(10_000):
        await trio.sleep(0.1)
"""
KINDS = "".join(
    f'[kinds.{name}]\npython = "handlers:{name}"\nisolation = "task"\n'
    for name in ("tells", "silent")
)


def measured(url: str, kind: str, more: Callable[[], float]) -> tuple[float, float]:
    """The share of a core that the daemon takes, and what `more` counts, a second."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, Client(url) as client:
        (Path(folder) / "handlers.py").write_text(HANDLERS)
        (Path(folder) / "kinds.toml").write_text(KINDS)
        sets = [f"catalog.paths={json.dumps([str(Path(folder) / 'kinds.toml')])}"]
        sets += [f"workers.{key}_count={WORKERS}" for key in ("default", "max")]
        sets += ["shutdown.grace_period_seconds=0"]
        with daemon(url, sets) as process_id:
            time.sleep(3)
            ids = client.enqueue_many([(kind, None)] * WORKERS)
            wait_until(lambda: client.job(ids[-1])["state"] == "running")
            time.sleep(2)
            before, counted = used(process_id), more()
            time.sleep(SECONDS)
            after, counted = used(process_id), more() - counted
    return (after.cpu_seconds - before.cpu_seconds) / SECONDS * 100, counted / SECONDS


def main() -> None:
    with PostgresServer(durable=True) as server:
        for kind in ("silent", "tells"):
            dsn = postgres.prepared(server, "progress", 0)
            with psycopg.connect(dsn, autocommit=True) as conn:

                def log_bytes(conn: psycopg.Connection = conn) -> float:
                    row = conn.execute("select pg_current_wal_lsn() - '0/0'::pg_lsn").fetchone()
                    return float(row[0]) if row else 0.0

                core, log = measured(dsn, kind, log_bytes)
            server.drop_database("progress")
            print(
                f"postgresql, {kind}: {core:.1f} % of a core, {log / 1000:,.0f} kB of log a second"
            )
    for kind in ("silent", "tells"):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            core, _ = measured(f"sqlite:///{folder}/bench.db", kind, lambda: 0.0)
        print(f"embedded, {kind}: {core:.1f} % of a core")


if __name__ == "__main__":
    main()
