"""What it costs to ask why, with a million jobs queued."""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import psycopg
import trio

from musterd.store.engine import Engine
from musterd.store.postgres.engine import PostgresEngine
from musterd.store.sqlite.engine import SqliteEngine
from musterd.store.why import why
from tests.contract.rigs import OPTIONS
from tests.support.beats import live_node
from tests.support.postgres_server import PostgresServer

ASKED = 20
FILL_POSTGRES = """
insert into musterd.job_rows (kind, payload, priority)
select 'report', '{}', i %% 3 from generate_series(1, %s) i
"""
FILL_SQLITE = """
with recursive n (i) as (select 1 union all select i + 1 from n where i < ?)
insert into job_rows (kind, priority, created_at, run_at) select 'report', i % 3, i, i from n
"""


def embedded(jobs: int) -> float:
    """Milliseconds an answer, the median."""
    with tempfile.TemporaryDirectory() as folder:
        engine = SqliteEngine(str(Path(folder) / "why.db"), time.time, busy_timeout_seconds=5)

        async def fill() -> None:
            database = engine._database  # pyright: ignore[reportPrivateUsage] - quicker than by the door
            runner = engine._runner  # pyright: ignore[reportPrivateUsage]
            assert database is not None
            assert runner is not None
            await runner.run(lambda: database.connection.execute(FILL_SQLITE, [jobs]).close())

        return trio.run(_measured, engine, fill, jobs)


def postgres(server: PostgresServer, jobs: int) -> float:
    dsn = server.create_database("why")
    engine = PostgresEngine(dsn, "musterd", OPTIONS, random.Random(1))

    async def fill() -> None:
        await trio.lowlevel.checkpoint()
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute(FILL_POSTGRES, [jobs])
            conn.execute("vacuum analyze")

    try:
        return trio.run(_measured, engine, fill, jobs)
    finally:
        server.drop_database("why")


async def _measured(engine: Engine, fill: Callable[[], Awaitable[None]], jobs: int) -> float:
    await engine.open()
    await engine.migrate()
    await fill()
    await live_node(engine)
    took: list[float] = []
    for number in range(ASKED):
        start = time.perf_counter()
        seen = await engine.jobs.why_facts(1 + (jobs - 1) * number // (ASKED - 1))
        assert seen is not None
        why(seen)
        took.append(1000 * (time.perf_counter() - start))
    await engine.close()
    return statistics.median(took)
