"""Claims while somebody holds a snapshot open: what is dead cannot be removed, and lies where the
next claims begin.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import attrs
import psycopg
import trio

from tests.bench.growth.figures import Row
from tests.bench.growth.queues import ALONE, COUNTED, Queue, queue
from tests.bench.growth.visits import BATCH, Visitor, visitor
from tests.support.postgres_server import PostgresServer

CASE = "snapshot"
LARGE_BATCH = 500
VISITS = 200
VISITS_OF_A_LOOK = 20
ROOM = 600_000  # for what is done before, between and until a claim is as quick as before
BACK_SECONDS = 30.0
BACK_RATIO = 1.1


def rows(server: PostgresServer, jobs: int) -> Iterator[Row]:
    with queue(server, "held") as held:
        held.stock(ALONE, jobs + ROOM)
        held.say(COUNTED)
        held.settle_down()
        yield from trio.run(_measured, held, jobs)


async def _measured(held: Queue, jobs: int) -> list[Row]:
    async with visitor(held) as ours:
        await ours.visits(VISITS)
        found = [await _row(ours, "nobody holds one", 0)]
        with psycopg.connect(held.url) as holder:
            holder.execute("set transaction isolation level repeatable read")
            holder.execute("select count(*) from musterd.nodes")
            for share in (4, 2, 4):
                await ours.visits(jobs // share // LARGE_BATCH, LARGE_BATCH)
                held_jobs = ours.done - (len(found) + 1) * VISITS * BATCH
                found.append(await _row(ours, f"{held_jobs:,} jobs done under one", held_jobs))
        found.append(await _released(ours, found[0]))
    return found


async def _row(ours: Visitor, label: str, size: int, visits: int = VISITS) -> Row:
    found = await ours.figures(visits)
    return Row(
        CASE, label, size, [found.jobs_a_second], found.daemon_microseconds,
        found.server_microseconds, claim_milliseconds=found.claim_milliseconds,
    )  # fmt: skip


async def _released(ours: Visitor, before: Row) -> Row:
    """When a claim costs what it did before, or how long was waited for that."""
    assert before.claim_milliseconds is not None
    began = time.monotonic()
    while True:
        last = await _row(ours, "", 0, VISITS_OF_A_LOOK)
        seconds = time.monotonic() - began
        assert last.claim_milliseconds is not None
        is_back = last.claim_milliseconds <= BACK_RATIO * before.claim_milliseconds
        if is_back or seconds > BACK_SECONDS:
            return attrs.evolve(last, label=f"released {seconds:.1f} s ago")
