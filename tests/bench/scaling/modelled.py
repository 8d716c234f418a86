"""Why the policy `latency` costs more than the least schedule: the same loads in the model, where
jobs take as long as they say and nothing else does, with one thing after another taken away. The
same each time. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from statistics import fmean
from typing import Any

import attrs

from musterd.manager.scaling.latency import Promises
from musterd.manager.scaling.model.settings import ModelSettings
from musterd.manager.scaling.model.simulation import simulate
from tests.bench.scaling.daemons import MAX_COUNT, REST_SECONDS
from tests.bench.scaling.figures import PROMISED_SECONDS, WARM_UP, Crew, Found, Ran
from tests.bench.scaling.loads import LOADS, Arrival, arrivals
from tests.bench.scaling.schedules import Offline
from tests.support.traces import rules, trace_of

LOAD_SECONDS = 60.0
WARM_UP_SECONDS = 40.0  # until the crew has forgotten the first jobs
PHASES = (0.0, 0.2, 0.4, 0.6, 0.8)  # of the first decision, in intervals

NO_WINDOW: Mapping[str, Any] = {"stabilization_seconds": 0.0, "down_cooldown_seconds": 0.0}


def settings(interval: float = 1.0, headroom: float = 0.85, **policy: Any) -> ModelSettings:
    """Of the bench, but for these."""
    promises = Promises(PROMISED_SECONDS, headroom=headroom, interval_seconds=interval)
    of_bench = {"policy": "latency", "default_count": 1, "max_count": MAX_COUNT}
    return rules(interval, **(of_bench | {"promises": promises} | policy))


WITHOUT: Mapping[str, ModelSettings] = {
    "nothing": settings(),
    "window and cooldown": settings(**NO_WINDOW),
    "headroom": settings(headroom=1.0),
    "most of the interval": settings(interval=0.1),
    "all of these": settings(interval=0.1, headroom=1.0, **NO_WINDOW),
    "the policy: `demand`": settings(policy="demand"),
}
HEADS = f"| without | {' | '.join(LOADS)} |\n{'|---' * (len(LOADS) + 1)}|"


def rows() -> Iterator[str]:
    for without in WITHOUT:
        yield f"| {without} | {' | '.join(cell(load, without) for load in LOADS)} |"


def cell(load: str, without: str) -> str:
    """Worker-seconds, compared with those of the least schedule; the share of kept promises, where
    not all were.
    """
    settings, window = WITHOUT[without], LOAD_SECONDS + REST_SECONDS
    found = [modelled(load, settings, at * settings.interval_seconds) for at in PHASES]
    ratio = fmean(one.worker_seconds(window) for one in found) / least(load)
    kept = fmean(one.kept for one in found)
    return f"{ratio:.2f}" if kept == 1 else f"{ratio:.2f}, {kept * 100:.2f} % kept"


@cache
def least(load: str) -> float:
    window = LOAD_SECONDS + REST_SECONDS
    jobs = modelled(load, WITHOUT["nothing"], 0.0).jobs
    found = Offline(sorted(jobs), window, MAX_COUNT).least()
    assert found is not None, f"{load}: no crew of up to {MAX_COUNT} keeps the promise"
    return found.worker_seconds


def modelled(load: str, settings: ModelSettings, tick_seconds: float) -> Found:
    """What a crew does with it that has measured each kind before."""
    jobs = [
        *_first(load),
        *((WARM_UP_SECONDS + one[0], one) for one in arrivals(load, LOAD_SECONDS)),
    ]
    timed = [(at, job.milliseconds / 1000) for at, job in jobs]
    trace = trace_of(timed, kinds=[job.kind for _, job in jobs])
    run = simulate(attrs.evolve(trace, tick_seconds=tick_seconds), settings)
    ran = [
        Ran(at - WARM_UP_SECONDS, waited, took)
        for (at, took), waited in zip(timed, run.waits, strict=True)
        if at >= WARM_UP_SECONDS
    ]
    sizes = [Crew(at - WARM_UP_SECONDS, size) for at, size in run.sizes]
    return Found("model", ran, sizes, run.hired)


def _first(load: str) -> Iterator[tuple[float, Arrival]]:
    for one in {job.kind: job for job in arrivals(load, LOAD_SECONDS)}.values():
        yield from [(0.0, one)] * WARM_UP
