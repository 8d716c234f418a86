"""How fast jobs are claimed and settled, a hundred at a time, under a cap of their kind and under a
bound on all jobs, beside the same without.
"""

from __future__ import annotations

import statistics
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from random import Random

import attrs
import trio

from musterd.config.load import load
from musterd.store.engine import Engine
from musterd.store.jobs import NewJob
from musterd.store.leases import Caps, Claim, ClaimRequest, Ends, Settlement
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.opening import make_engine
from musterd.store.postgres.engine import PostgresEngine
from musterd.store.postgres.setup import StoreOptions
from tests.support.postgres_server import PostgresServer

BATCH = 100
ROUNDS = 5  # of each scene, in turns
OPTIONS = StoreOptions(2, 5, 600, 5, 600, 0.1, 1, "")


@attrs.frozen
class Scene:
    """`beside`: so many jobs of other kinds are leased all the while. `parked`: claims that found
    no room have put the whole queue aside.
    """

    name: str
    caps: Caps = ()
    leased_max: int | None = None
    beside: int = 0
    parked: bool = False


WITHOUT = Scene("no limit")
SCENES = (
    WITHOUT,
    Scene("another kind has a cap", (("other", BATCH),)),
    Scene("kind at its cap of 100", (("capped", BATCH),)),
    Scene("the same, the rest of it parked", (("capped", BATCH),), parked=True),
    Scene("all at their bound of 100", leased_max=BATCH),
    Scene("all at their bound of 2,000", leased_max=2_000, beside=1_900),
    Scene("both", (("capped", BATCH),), 2_000, beside=1_900),
)


def rates(server: PostgresServer, share: int) -> dict[str, dict[str, float]]:
    """By engine and scene: jobs a second."""
    jobs = max(10 * BATCH, 20_000 // share)
    dsn = server.create_database("caps")
    postgres = PostgresEngine(dsn, "musterd", OPTIONS, Random(1))
    found = {"PostgreSQL": trio.run(_measured, postgres, jobs)}
    server.drop_database("caps")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        url = f"sqlite:///{Path(folder) / 'bench.db'}"
        embedded = make_engine(url, load(None, {}, []).settings, lambda: 1_700_000_100.0)
        found["embedded"] = trio.run(_measured, embedded, jobs)
    return found


async def _measured(engine: Engine, jobs: int) -> dict[str, float]:
    await engine.open()
    await engine.migrate()
    found: dict[str, list[float]] = {scene.name: [] for scene in SCENES}
    for _ in range(ROUNDS):
        for scene in SCENES:
            found[scene.name].append(await _drain(engine, scene, jobs))
    await engine.close()
    return {name: statistics.median(each) for name, each in found.items()}


async def _drain(engine: Engine, scene: Scene, jobs: int) -> float:
    """From a queue of so many jobs, each visit settling what the one before it claimed."""
    beside = await _lease_others(engine, scene.beside)
    await engine.jobs.enqueue([NewJob("capped")] * jobs)
    held = await _visit(engine, scene, ())
    if scene.parked:
        while (await engine.leases.exchange(Ends(), _request(scene))).parked:
            pass
    count, started = 0, time.perf_counter()
    while held:
        count += len(held)
        held = await _visit(engine, scene, held)
    seconds = time.perf_counter() - started
    assert count == jobs
    await engine.leases.exchange(Ends([_end(one) for one in beside]), None)
    return jobs / seconds


async def _lease_others(engine: Engine, count: int) -> list[Claim]:
    if not count:
        return []
    await engine.jobs.enqueue([NewJob("other")] * count)
    request = attrs.evolve(_request(WITHOUT), workers=tuple(range(count)))
    return (await engine.leases.exchange(Ends(), request)).claims


async def _visit(engine: Engine, scene: Scene, held: Sequence[Claim]) -> list[Claim]:
    exchange = await engine.leases.exchange(Ends([_end(one) for one in held]), _request(scene))
    assert not exchange.rejected
    return exchange.claims


def _request(scene: Scene) -> ClaimRequest:
    workers = tuple(range(BATCH))
    token = uuid.uuid4()
    return ClaimRequest(token, "bench", workers, 0, 3600.0, scene.caps, scene.leased_max)


def _end(claim: Claim) -> Settlement:
    fields = (claim.id, claim.token, claim.attempt, claim.worker)
    return Settlement(*fields, 0.0, 0.0, JobState.SUCCEEDED, AttemptOutcome.SUCCEEDED)
