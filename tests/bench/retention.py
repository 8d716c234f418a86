"""Whether tables stay as large as they are, while jobs come, end, and are deleted soon after.

`python -m tests.bench.retention [SECONDS] [JOBS_A_SECOND]` runs it alone.
"""

from __future__ import annotations

import logging
import sys
import uuid
from collections.abc import Iterator
from random import Random

import attrs
import psycopg
import trio

from musterd.catalog.kinds import Catalog
from musterd.config.load import load
from musterd.config.settings import LiveSettings
from musterd.manager.duties.retention import Retiring
from musterd.store.jobs import NewJob
from musterd.store.leases import ClaimRequest, Ends, Settlement
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.postgres.engine import PostgresEngine
from tests.bench.targets import OPTIONS
from tests.support.postgres_server import PostgresServer

TICK_SECONDS = 0.1
LOOK_SECONDS = 15.0
AGES = ("retention.stale_after_hours=0.005", "retention.delete_after_hours=0.01")  # 18 s, 36 s
SIZES = """
select sum(pg_table_size(oid))::bigint, sum(pg_indexes_size(oid))::bigint,
       (select count(*) from musterd.job_rows)
from pg_class where relnamespace = 'musterd'::regnamespace and relkind = 'r'
  and relname <> 'event_log'  -- which keeps what has happened for a day
"""


@attrs.frozen
class Size:
    """After so many seconds; in bytes."""

    at_seconds: float
    table: int
    indexes: int
    jobs: int


def sizes(server: PostgresServer, seconds: float, jobs_a_second: int) -> list[Size]:
    url = server.create_database("bench_retention")
    return trio.run(_run, url, seconds, jobs_a_second)


def bloat(found: list[Size]) -> float:
    """How much larger all is at the end than in the middle; 1 = it stays as it is."""
    middle, last = found[len(found) // 2], found[-1]
    return (last.table + last.indexes) / (middle.table + middle.indexes)


async def _run(url: str, seconds: float, jobs_a_second: int) -> list[Size]:
    engine = PostgresEngine(url, "musterd", OPTIONS, Random(1))
    await engine.open()
    await engine.migrate()
    found: list[Size] = []
    settings = LiveSettings(load(None, {}, AGES).settings)
    log = logging.getLogger("bench")
    retiring = Retiring(
        engine.retention, engine.journal, settings, lambda: Catalog([]), "default", log
    )
    with trio.move_on_after(seconds):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_work, engine, jobs_a_second)
            nursery.start_soon(_retire, retiring)
            nursery.start_soon(_measure, url, found)
    await engine.close()
    return found


async def _retire(retiring: Retiring) -> None:
    while True:
        await retiring.look()
        await retiring.wait(retiring.look_seconds())


async def _work(engine: PostgresEngine, jobs_a_second: int) -> None:
    """Each job is enqueued, claimed and settled, a tick's jobs at once."""
    count = max(1, round(jobs_a_second * TICK_SECONDS))
    jobs = [NewJob("noop", '{"number": 1}')] * count
    due = trio.current_time()
    while True:
        await engine.jobs.enqueue(jobs)
        request = ClaimRequest(uuid.uuid4(), "bench", tuple(range(count)), 0, 30.0)
        now = trio.current_time()
        claims = (await engine.leases.exchange(Ends(), request)).claims
        ended = [
            Settlement(
                one.id, one.token, one.attempt, one.worker, now, now,
                JobState.SUCCEEDED, AttemptOutcome.SUCCEEDED,
            )
            for one in claims
        ]  # fmt: skip
        await engine.leases.exchange(Ends(ended), None)
        due += TICK_SECONDS
        await trio.sleep_until(due)


async def _measure(url: str, found: list[Size]) -> None:
    start = trio.current_time()
    while True:
        await trio.sleep(LOOK_SECONDS)
        row = await trio.to_thread.run_sync(_sizes, url)
        found.append(Size(trio.current_time() - start, *row))


def _sizes(url: str) -> tuple[int, int, int]:
    with psycopg.connect(url) as connection:
        row = connection.execute(SIZES).fetchone()
    assert row is not None
    return row


def lines(found: list[Size]) -> Iterator[str]:
    for one in found:
        table, indexes = one.table / 1_048_576, one.indexes / 1_048_576
        held = f"table {table:.0f} MiB, indexes {indexes:.0f} MiB"
        yield f"{one.at_seconds:4.0f} s: {one.jobs:,} jobs, {held}"
    yield f"end beside middle: {bloat(found):.2f}"


def main(words: list[str]) -> None:
    seconds, rate = [*map(float, words), *(240.0, 1_000.0)[len(words) :]]
    with PostgresServer(durable=True) as server:
        for line in lines(sizes(server, seconds, round(rate))):
            sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
