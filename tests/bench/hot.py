"""`make bench ARGS="hot [path|drain|pickup] [ROUNDS] [TREE…]"`: what a job costs, part by part.

`path`: the whole daemon but its driver, with a store that answers at once, and a handler that does
nothing; it needs no quiet machine. `drain`: a long drain on PostgreSQL, daemon and server apart.
`pickup`: a single job on an idle daemon. Other TREEs, worktrees of other commits, take turns with
this one, so that what else the machine does meets all of them.
"""

from __future__ import annotations

import logging
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import trio

from musterd.catalog.kinds import Catalog, Python, WorkKind
from musterd.manager.metrics.metrics import InstrumentedEngine, Metrics
from musterd.manager.node.daemon import Daemon
from musterd.manager.node.process import boottime, collect_seldom
from musterd.manager.tenancy.deps import DaemonDeps
from musterd.store.leases import ClaimRequest, Ends, Exchange, Hold, Renewal
from musterd.store.postgres.claiming import claims_and_findings
from musterd.store.postgres.exchanges import settlement_params, success_params
from musterd.store.sqlite.engine import SqliteEngine
from musterd.store.wrapped import WrappedEngine
from tests.bench import postgres
from tests.bench.growth.draining import Work, drained
from tests.bench.growth.queues import READY, queue
from tests.bench.running import ROOT
from tests.support.assignments import KIND_DEFAULTS
from tests.support.postgres_server import PostgresServer
from tests.support.stage import settings_with

WORKERS = 100
WARM, JOBS, SLICES = 20_000, 10_000, 12
VISIT_SECONDS = 0.003  # so that batches are as large as they are on PostgreSQL
DRAIN_WARM, DRAIN_JOBS = 20_000, 200_000
ROUNDS = 5
Found = Mapping[str, float]


class Endless:
    """Leases of a queue without end. Values become columns and rows become claims, as they do on
    PostgreSQL.
    """

    def __init__(self) -> None:
        self.ended = 0
        self._ids = count(1)

    async def exchange(self, ends: Ends, claim: ClaimRequest | None) -> Exchange:
        settlement_params(ends.settlements)
        if ends.successes.ids:
            success_params(ends.successes)
        self.ended += len(ends.ids)
        await trio.sleep(VISIT_SECONDS)
        if claim is None:
            return Exchange(frozenset(), [])
        row = self._row(claim.batch, time.time())
        claims, _ = claims_and_findings(row, claim.token, claim.workers)
        return Exchange(frozenset(), claims, now_epoch=time.time())

    async def renew(self, holds: Sequence[Hold], lease_seconds: float | None) -> Renewal:
        del lease_seconds
        await trio.lowlevel.checkpoint()
        return Renewal(frozenset(one.id for one in holds), {}, time.time())

    def _row(self, jobs: int, now_epoch: float) -> tuple[Any, ...]:
        """As the statement `claim` answers."""
        ids = [next(self._ids) for _ in range(jobs)]
        payloads = [f'{{"i": {job_id}}}' for job_id in ids]
        of_jobs = jobs, ids, ["noop"], payloads, [1], None, [0], [0.1] * jobs
        found = 1, 1, 0, 0, 0, False, False, None
        return (*of_jobs, None, None, None, None, now_epoch, *found)


def path() -> Found:
    """The thread's own time. Of some slices the least: others on the same core only add to it."""
    found: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        trio.run(_path, Path(folder), found.append)
    return {"daemon µs": min(found)}


async def _path(folder: Path, say: Callable[[float], None]) -> None:
    leases = Endless()
    daemon = Daemon(_deps(folder, leases))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(daemon.run)
        while leases.ended < WARM:  # noqa: ASYNC110 - nothing tells
            await trio.sleep(0.01)
        collect_seldom()
        for _ in range(SLICES):
            began, before = time.thread_time(), leases.ended
            while leases.ended < before + JOBS:  # noqa: ASYNC110 - nothing tells
                await trio.sleep(0.01)
            say((time.thread_time() - began) / (leases.ended - before) * 1e6)
        nursery.cancel_scope.cancel()


def _deps(folder: Path, leases: Endless) -> DaemonDeps:
    sets = {"workers__default_count": WORKERS, "workers__max_count": WORKERS}
    settings = settings_with(**sets)
    log, metrics = logging.getLogger("musterd.hot"), Metrics(settings.metrics, "1")
    log.setLevel(logging.WARNING)
    store = SqliteEngine(str(folder / "jobs.db"), time.time, busy_timeout_seconds=1.0)
    engine: Any = WrappedEngine(store, lambda _, call: call())
    for name in ("exchange", "renew"):
        setattr(engine.leases, name, getattr(leases, name))
    return DaemonDeps(
        settings=settings,
        catalog=Catalog([_noop_kind()]),
        engine=InstrumentedEngine(engine, metrics, log, trio.current_time),
        node="hot",
        rng=random.Random(1),
        metrics=metrics,
        log=log,
        boottime=boottime,
    )


def _noop_kind() -> WorkKind:
    async def noop(job: Any) -> None:  # noqa: ASYNC124 - a handler that does nothing
        job.payload["i"]

    module: Any = ModuleType("hot_handlers")
    module.noop = noop
    sys.modules[module.__name__] = module
    return WorkKind("noop", Python(module.__name__, "noop", "task", ()), **KIND_DEFAULTS)


def drain() -> Found:
    with PostgresServer(durable=True) as server, queue(server, "hot") as hot:
        hot.stock(READY, DRAIN_WARM + DRAIN_JOBS + 50_000, ["note"])
        hot.settle_down()
        found = drained(Work(hot.url, DRAIN_JOBS, DRAIN_WARM, WORKERS), hot.gate())
    return {
        "daemon µs": found.daemon_microseconds,
        "server µs": found.server_microseconds,
        "jobs/s": found.jobs_a_second,
    }


def pickup() -> Found:
    with PostgresServer(durable=True) as server:
        late = postgres.pickups(server, jobs=400, gap_seconds=0.02)
    return {f"p{share:.0%} ms": postgres.percentile(late, share) for share in (0.5, 0.9, 0.99)}


MEASURES: Mapping[str, Callable[[], Found]] = {"path": path, "drain": drain, "pickup": pickup}


def main(words: Sequence[str]) -> None:
    what = [word for word in words if word in MEASURES] or ["path"]
    rounds = next((int(word) for word in words if word.isdecimal()), ROUNDS)
    trees = [ROOT, *(Path(word) for word in words if "/" in word)]
    for name in what:
        found: dict[Path, list[Found]] = {tree: [] for tree in trees}
        for _ in range(rounds):
            for tree in trees:
                found[tree].append(_measured_in(tree, name))
        for tree in trees:
            print(f"{name:<8} {tree.name:<20} {_summed_up(found[tree])}", flush=True)


def _measured_in(tree: Path, name: str) -> Found:
    """In a process of its own."""
    command = [str(tree / ".venv/bin/python"), "-m", "tests.bench.hot", name]
    said = subprocess.run(command, cwd=tree, check=True, capture_output=True, text=True).stdout
    words = (line.rpartition("=") for line in said.splitlines())
    return {what: float(value) for what, _, value in words}


def _summed_up(found: Sequence[Found]) -> str:
    """Least and median of each figure; of rates the most."""
    said: list[str] = []
    for what in found[0]:
        values = [one[what] for one in found]
        best = max(values) if what.endswith("/s") else min(values)
        said.append(f"{what} {best:,.2f} ({statistics.median(values):,.2f})")
    return ", ".join(said)


if __name__ == "__main__":
    for what, value in MEASURES[sys.argv[1]]().items():
        print(f"{what}={value}")
