"""What the policies cost: the table of `docs/scaling.md`, worked out anew."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import pytest

from musterd.manager.scaling.model.figures import Figures, figures_of
from musterd.manager.scaling.model.simulation import simulate
from musterd.manager.scaling.model.trace import Trace
from tests.support.pages import bare, page, table
from tests.support.traces import promising, trace_of

TEN_MINUTES = 600.0
CREW = {"default_count": 1, "max_count": 64}


def bursts() -> Trace:
    return trace_of([(5.5 + 20 * n, 0.005) for n in range(30) for _ in range(300)])


def at_random(rate: float, seconds: float) -> Trace:
    dice, at, jobs = random.Random(1), 0.0, list[tuple[float, float]]()
    while (at := at + dice.expovariate(rate)) < TEN_MINUTES:
        jobs.append((at, seconds))
    return trace_of(jobs)


LOADS: Mapping[str, Callable[[], Trace]] = {
    "300 jobs of 5 ms every 20 s": bursts,
    "40 jobs of 50 ms a second": lambda: at_random(40, 0.05),
    "2 jobs of 2 s a second": lambda: at_random(2, 2.0),
    "a job of 30 s every 3 s": lambda: at_random(1 / 3, 30.0),
}


def figures(load: str, policy: str) -> Figures:
    trace, settings = LOADS[load](), promising(2.0, policy=policy, **CREW)
    return figures_of(trace, settings, simulate(trace, settings))


def row(figures: Figures) -> tuple[str, str, str, str]:
    return (
        f"{figures.waits.max:.2f} s",
        str(figures.crew_most),
        f"{figures.worker_seconds:,.0f}",
        f"{figures.hired:,}",
    )


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("policy", ["demand", "latency"])
def test_the_table_of_the_page_is_what_the_model_says(load: str, policy: str) -> None:
    told = {
        (bare(one), bare(other)): tuple(map(bare, cells))
        for one, other, *cells in table(
            page("scaling.md"), "load", "policy", "longest wait", "largest crew", "worker-seconds"
        )
    }
    assert told[load, policy] == row(figures(load, policy))


def test_short_jobs_in_bursts_need_one_worker_and_long_ones_what_demand_gives_them() -> None:
    load = "300 jobs of 5 ms every 20 s"
    demand, latency = figures(load, "demand"), figures(load, "latency")
    assert (round(demand.worker_seconds), demand.hired) == (19_496, 1_890)
    assert (round(latency.worker_seconds), latency.hired, latency.crew_most) == (587, 0, 1)
    assert latency.waits.max <= 2.0
    long_ = "a job of 30 s every 3 s"
    costs = [figures(long_, policy).worker_seconds for policy in ("demand", "latency")]
    assert 0.9 * costs[0] < costs[1] <= costs[0]
