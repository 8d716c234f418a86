"""Claims while somebody holds a snapshot open: what is dead cannot be removed, and lies where the
next claims begin.
"""

from __future__ import annotations

import os
import statistics
import time
import uuid
from collections.abc import Iterator
from random import Random

import attrs
import psycopg
import trio

from musterd.store.leases import Claim, ClaimRequest, Settlement
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.postgres.engine import PostgresEngine
from tests.bench.growth.figures import Moment, Row
from tests.bench.growth.queues import COUNTED, READY, Queue, queue
from tests.bench.running import used
from tests.bench.targets import OPTIONS
from tests.support.postgres_server import PostgresServer

CASE = "snapshot"
BATCH = 100
LARGE_BATCH = 500
VISITS = 200
VISITS_OF_A_LOOK = 20
ROOM = 600_000  # for what is done before, between and until a claim is as quick as before
BACK_SECONDS = 30.0
BACK_RATIO = 1.1


@attrs.define
class Visitor:
    """Claims and settles, each in a visit of its own."""

    engine: PostgresEngine
    queue: Queue
    done: int = 0

    async def visits(self, number: int, batch: int) -> list[float]:
        """Seconds that each claim took."""
        return [await self._visit(batch) for _ in range(number)]

    async def row(self, label: str, size: int, visits: int = VISITS) -> Row:
        first, began = self._moment(), time.perf_counter()
        took = await self.visits(visits, BATCH)
        rate = visits * BATCH / (time.perf_counter() - began)
        found = first.until(self._moment(), rate)
        return Row(
            CASE, label, size, [rate], found.daemon_microseconds, found.server_microseconds,
            claim_milliseconds=statistics.median(took) * 1000,
        )  # fmt: skip

    async def _visit(self, batch: int) -> float:
        request = ClaimRequest(uuid.uuid4(), "bench", tuple(range(batch)), 0, 3600.0)
        started = time.perf_counter()
        exchange = await self.engine.leases.exchange([], request, 0.0)
        took = time.perf_counter() - started
        assert len(exchange.claims) == batch
        await self.engine.leases.exchange([_end(one) for one in exchange.claims], None, 0.0)
        self.done += batch
        return took

    def _moment(self) -> Moment:
        return Moment(self.done, used(os.getpid()).cpu_seconds, self.queue.backends())


def rows(server: PostgresServer, jobs: int) -> Iterator[Row]:
    with queue(server, "held") as held:
        held.stock(READY, jobs + ROOM, ["note"])
        held.say(COUNTED)
        held.settle_down()
        yield from trio.run(_measured, held, jobs)


async def _measured(held: Queue, jobs: int) -> list[Row]:
    engine = PostgresEngine(held.url, "musterd", OPTIONS, Random(1))
    await engine.open()
    visitor = Visitor(engine, held)
    await visitor.visits(VISITS, BATCH)
    found = [await visitor.row("nobody holds one", 0)]
    with psycopg.connect(held.url) as holder:
        holder.execute("set transaction isolation level repeatable read")
        holder.execute("select count(*) from musterd.nodes")
        for share in (4, 2, 4):
            await visitor.visits(jobs // share // LARGE_BATCH, LARGE_BATCH)
            held_jobs = visitor.done - 2 * VISITS * BATCH - (len(found) - 1) * VISITS * BATCH
            label = f"{held_jobs:,} jobs done under one"
            found.append(await visitor.row(label, held_jobs))
    found.append(await _released(visitor, found[0]))
    await engine.close()
    return found


async def _released(visitor: Visitor, before: Row) -> Row:
    """When a claim costs what it did before, or how long was waited for that."""
    assert before.claim_milliseconds is not None
    began = time.monotonic()
    while True:
        last = await visitor.row("", 0, VISITS_OF_A_LOOK)
        seconds = time.monotonic() - began
        assert last.claim_milliseconds is not None
        is_back = last.claim_milliseconds <= BACK_RATIO * before.claim_milliseconds
        if is_back or seconds > BACK_SECONDS:
            return attrs.evolve(last, label=f"released {seconds:.1f} s ago")


def _end(claim: Claim) -> Settlement:
    fields = (claim.id, claim.token, claim.attempt, claim.worker)
    return Settlement(*fields, 0.0, 0.0, JobState.SUCCEEDED, AttemptOutcome.SUCCEEDED)
