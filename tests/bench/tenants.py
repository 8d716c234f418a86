"""What many idle tenants on one node cost."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from tests.bench.postgres import Idle
from tests.bench.running import daemon, used, wait_until
from tests.support.postgres_server import PostgresServer

TENANTS = 100
SAID = re.compile(r"duration: [0-9.]+ ms  (?:execute|statement)")
SETTLE_SECONDS = 150.0  # leases of duties that were taken before the rest have run out, too


def idle_postgres(server: PostgresServer, seconds: float = 15.0) -> tuple[Idle, int]:
    """With each tenant in its own schema; and how many connections that takes."""
    dsn = server.create_database("tenants")
    last = f"select to_regclass('musterd_t{TENANTS - 1}.job_rows') is not null"
    with daemon(dsn, _sets()) as process_id, psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("alter database tenants set log_min_duration_statement = 0")
        wait_until(lambda: conn.execute(last.encode()).fetchone() == (True,))
        found = _idle(process_id, seconds, lambda: len(SAID.findall(server.log)))
        sessions = len(server.sessions("tenants")) - 1  # our own
    server.drop_database("tenants")
    return found, sessions


def idle_embedded(seconds: float = 15.0) -> Idle:
    """With each tenant in a file of its own."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/musterd.db"
        last = Path(folder) / f"t{TENANTS - 1}.db.wake"
        with daemon(url, _sets()) as process_id:
            wait_until(last.exists)
            return _idle(process_id, seconds, lambda: 0)


def _sets() -> list[str]:
    return [
        f"workers.max_count={TENANTS + 10}",
        *(f"tenants.t{number}.workers.max_count=4" for number in range(TENANTS)),
    ]


def _idle(process_id: int, seconds: float, statements: Callable[[], int]) -> Idle:
    time.sleep(SETTLE_SECONDS)
    before, said = used(process_id), statements()
    time.sleep(seconds)
    after = used(process_id)
    return Idle(
        (after.cpu_seconds - before.cpu_seconds) / seconds * 100,
        (statements() - said) / seconds,
        after.resident_mib,
    )
