"""Visits of an engine to a queue on PostgreSQL, without a daemon: what only the store does."""

from __future__ import annotations

import os
import statistics
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from random import Random

import attrs
import trio

from musterd.store.leases import Caps, Claim, ClaimRequest, Ends, Successes
from musterd.store.postgres.engine import PostgresEngine
from tests.bench.growth.figures import Figures, Moment
from tests.bench.growth.queues import Queue
from tests.bench.running import used
from tests.bench.targets import OPTIONS

BATCH = 100
WARM = 20
LEASE_SECONDS = 3600.0


@attrs.define
class Visitor:
    """Claims and settles, each in a visit of its own."""

    engine: PostgresEngine
    queue: Queue
    caps: Caps = ()
    done: int = 0

    async def visits(self, number: int, batch: int = BATCH) -> list[float]:
        """Seconds that each claim took."""
        return [await self._visit(batch) for _ in range(number)]

    async def figures(self, visits: int) -> Figures:
        return await self.measured(lambda: self.visits(visits))

    async def measured(self, work: Callable[[], Awaitable[Sequence[float]]]) -> Figures:
        """Of any work that says how long its claims took; a claim, p50."""
        first, began = self._moment(), time.perf_counter()
        took = await work()
        rate = (self.done - first.done) / (time.perf_counter() - began)
        found = first.until(self._moment(), rate)
        return attrs.evolve(found, claim_milliseconds=statistics.median(took) * 1000)

    async def claim(self, batch: int = BATCH) -> tuple[Sequence[Claim], float]:
        """And the seconds that it took."""
        request = ClaimRequest(
            uuid.uuid4(), "bench", tuple(range(batch)), 0, LEASE_SECONDS, self.caps
        )
        started = time.perf_counter()
        claims = (await self.engine.leases.exchange(Ends(), request)).claims
        took = time.perf_counter() - started
        assert len(claims) == batch
        return claims, took

    async def settle(self, claims: Sequence[Claim]) -> None:
        exchange = await self.engine.leases.exchange(Ends(successes=_ends(claims)), None)
        assert not exchange.rejected
        self.done += len(claims)

    async def _visit(self, batch: int) -> float:
        claims, took = await self.claim(batch)
        await self.settle(claims)
        return took

    def _moment(self) -> Moment:
        return Moment(self.done, used(os.getpid()).cpu_seconds, self.queue.backends())


Work = Callable[[Visitor, int], Awaitable[Sequence[float]]]


@asynccontextmanager
async def visitor(queue: Queue, caps: Caps = ()) -> AsyncGenerator[Visitor]:
    engine = PostgresEngine(queue.url, "musterd", OPTIONS, Random(1))
    await engine.open()
    try:
        yield Visitor(engine, queue, caps)
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 5):
            await engine.close()


def visiting(
    queue: Queue, visits: int, caps: Caps = (), work: Work | None = None
) -> Callable[[], Figures]:
    """So many visits, or other work, after a few that do not count."""

    async def measure() -> Figures:
        async with visitor(queue, caps) as ours:
            await ours.visits(WARM)
            if work is not None:
                return await ours.measured(partial(work, ours, visits))
            return await ours.figures(visits)

    return lambda: trio.run(measure)


def _ends(claims: Sequence[Claim]) -> Successes:
    """As daemons say them."""
    moments = [0.0] * len(claims)
    workers = [one.worker or 0 for one in claims]
    return Successes.of(claims, workers, moments, moments, [None] * len(claims), moments)
