"""A store with two days behind it: what charts are drawn from, the same each time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from random import Random

import trio

from musterd.store.history import (
    ALL,
    KEPT_SECONDS,
    STEPS_SECONDS,
    EndedJobs,
    Mark,
    QueueLook,
    add_ended,
    counted,
)
from musterd.store.sqlite.engine import SqliteEngine

HOURS = 48
CREW_MAX = 8
# Share of all jobs, median of its runs in seconds, share of failures.
KINDS = {
    "report": (0.5, 0.2, 0.01),
    "thumbnail": (0.3, 0.05, 0.0),
    "invoice": (0.15, 0.8, 0.08),
    "video": (0.05, 4.0, 0.03),
}
SAMPLED_MAX = 40


def fill(path: Path, now: float) -> None:
    """Makes the file, with a schema and a past up to `now`."""
    trio.run(_fill, path, now)


async def _fill(path: Path, now: float) -> None:
    moment = [now]
    engine = SqliteEngine(str(path), lambda: moment[0], busy_timeout_seconds=5.0)
    await engine.open()
    await engine.migrate()
    rng, crew = Random(3), 2
    for at, step in _steps(now):
        day = 1 + math.sin(at / 7000)
        surge = rng.random() < 0.06
        depth = max(0, round(rng.gauss(6 * day, 4))) + (rng.randint(20, 90) if surge else 0)
        wish = 2 + depth // 4
        crew = min(CREW_MAX, crew + (wish > crew) - (wish < crew))
        moment[0] = at
        await engine.history.look(QueueLook(depth, depth * 0.3, crew, wish, CREW_MAX, 1.5 * step))
        moment[0] = at + STEPS_SECONDS[0] / 2
        number = round(step * (2 + 3 * day + (5 if surge else 0)))
        await engine.history.add(_ended(rng, number, surge=surge), list(_marks(rng, step)))
    await engine.close()


def _steps(now: float) -> Iterator[tuple[float, int]]:
    """As fine as it is kept, the oldest first."""
    at = now - HOURS * 3600.0
    while at < now - STEPS_SECONDS[0]:
        ages = zip(STEPS_SECONDS, KEPT_SECONDS, strict=False)
        step = next((step for step, kept in ages if now - at < kept), STEPS_SECONDS[-1])
        yield at, step
        at += step


def _ended(rng: Random, number: int, *, surge: bool) -> list[EndedJobs]:
    found: list[EndedJobs] = []
    for kind, (share, run_seconds, failing) in KINDS.items():
        jobs = round(number * share)
        failed = sum(rng.random() < failing for _ in range(jobs))
        sampled = range(min(jobs, SAMPLED_MAX))
        waits = counted(rng.expovariate(0.3 if surge else 3) for _ in sampled)
        runs = counted(rng.lognormvariate(math.log(run_seconds), 0.4) for _ in sampled)
        found.append(EndedJobs(kind, jobs - failed, failed, 0, failed // 2, waits, runs))
    whole = EndedJobs(ALL)
    for one in found:
        whole = add_ended(whole, one)
    return [*found, whole]


def _marks(rng: Random, step: int) -> Iterator[Mark]:
    if rng.random() < step / 9_000:
        yield Mark("config.reloaded", "web-1", "applied: generation 3")
    if rng.random() < step / 30_000:
        yield Mark("node.started", "web-2", "0.1.0")
