"""Single claims right after many jobs have been enqueued behind one halted target."""

from __future__ import annotations

import os
import statistics
import time
import uuid
from collections.abc import Callable, Iterator
from random import Random

import trio

from musterd.config.load import load
from musterd.store.engine import Engine
from musterd.store.jobs import NewJob
from musterd.store.leases import Claim, ClaimRequest, Ends, Exchange, Settlement
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.opening import make_engine
from musterd.store.postgres.engine import PostgresEngine
from tests.bench.growth import embedded
from tests.bench.growth.figures import Moment, Row
from tests.bench.growth.queues import queue
from tests.bench.running import Used, used
from tests.bench.targets import OPTIONS
from tests.support.postgres_server import PostgresServer

CLAIMS = 50
FILL = 1_000  # enqueued at once
Served = Callable[[], dict[int, Used]]


def on_postgres(server: PostgresServer, jobs: int) -> Iterator[Row]:
    with queue(server, "halted") as halted:
        engine = PostgresEngine(halted.url, "musterd", OPTIONS, Random(1))
        yield from trio.run(_measured, "halted", engine, jobs, halted.backends)


def on_sqlite(jobs: int) -> Iterator[Row]:
    with embedded.file("halted") as file:
        engine = make_engine(file.url, load(None, {}, []).settings, time.time)
        yield from trio.run(_measured, "sqlite-halted", engine, jobs, dict)


async def _measured(case: str, engine: Engine, jobs: int, served: Served) -> list[Row]:
    await engine.open()
    await _claims(engine)
    found = [await _row(case, engine, "nothing behind", served)]
    await engine.jobs.enqueue([NewJob("note", target="t")])
    (claim,) = (await _visit(engine)).claims
    await engine.leases.exchange(Ends([_end(claim, JobState.FAILED)]), None)
    for first in range(0, jobs, FILL):
        await engine.jobs.enqueue([NewJob("note", target="t")] * min(FILL, jobs - first))
        await _visit(engine)  # as a node that hears of them
    found.append(await _row(case, engine, f"{jobs:,} behind one halted target", served))
    await engine.close()
    return found


async def _row(case: str, engine: Engine, label: str, served: Served) -> Row:
    def moment(done: int) -> Moment:
        return Moment(done, used(os.getpid()).cpu_seconds, served())

    began = moment(0)
    took = await _claims(engine)
    figures = began.until(moment(len(took)), len(took) / sum(took))
    return Row(
        case, label, 1, [figures.jobs_a_second], figures.daemon_microseconds,
        figures.server_microseconds, claim_milliseconds=statistics.median(took) * 1000,
    )  # fmt: skip


async def _claims(engine: Engine) -> list[float]:
    """Seconds that each took."""
    took: list[float] = []
    for _ in range(CLAIMS):
        await engine.jobs.enqueue([NewJob("note")])
        began = time.perf_counter()
        claims: list[Claim] = []
        while not claims:  # one that only puts others behind is followed at once
            claims = (await _visit(engine)).claims
        took.append(time.perf_counter() - began)
        await engine.leases.exchange(Ends([_end(claims[0], JobState.SUCCEEDED)]), None)
    return took


async def _visit(engine: Engine) -> Exchange:
    request = ClaimRequest(uuid.uuid4(), "bench", (1,), 0, 3600.0)
    return await engine.leases.exchange(Ends(), request)


def _end(claim: Claim, state: JobState) -> Settlement:
    fields = (claim.id, claim.token, claim.attempt, claim.worker)
    outcome = AttemptOutcome(state.value)
    return Settlement(*fields, 0.0, 0.0, state, outcome, target=claim.target)
