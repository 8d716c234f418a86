"""Looking for counts: what is recommended holds, costs least, and is found in few simulations."""

from __future__ import annotations

import attrs
import pytest

from musterd.console.simulate.tuning import (
    SIMULATIONS_MAX,
    Advice,
    Aim,
    Candidate,
    Counts,
    advice_lines,
    settings_lines,
    summary_lines,
    tune,
)
from musterd.manager.scaling.model.figures import quantile
from musterd.manager.scaling.model.settings import ModelSettings
from musterd.manager.scaling.model.simulation import simulate
from musterd.manager.scaling.model.trace import Trace
from tests.support.traces import promising, rules, trace_of

# Every five minutes 40 jobs of 10 s at once.
BURSTS = [(60.25 + 300 * round_, 10.0) for round_ in range(6) for _ in range(40)]


def wait_with(trace: Trace, counts: Counts) -> float:
    found = simulate(trace, rules(default_count=counts.least, max_count=counts.most))
    return quantile(sorted(found.waits), 0.95)


def test_the_smallest_crew_that_reaches_the_aim() -> None:
    trace, told = trace_of(BURSTS), list[int]()
    advice = tune(trace, rules(), Aim(0.95, 20.0), told.append)
    assert advice.reached
    assert advice.present.counts == Counts(2, 8)
    best = advice.recommended
    assert best.wait_seconds == wait_with(trace, best.counts) <= 20.0
    assert wait_with(trace, Counts(best.counts.least, best.counts.most - 1)) > 20.0
    assert told == list(range(1, advice.simulations + 1))
    assert advice.simulations <= SIMULATIONS_MAX
    assert {mark for one in advice.candidates for mark in one.marks} >= {"present", "recommended"}
    assert len({one.figures.span_seconds for one in advice.candidates}) == 1


def test_where_max_count_alone_does_not_help_the_floor_is_raised_and_it_says_why() -> None:
    """Within a second nobody is hired: 38 of 40 have to be there before."""
    advice = tune(trace_of(BURSTS), rules(), Aim(0.95, 0.5))
    assert advice.reached
    assert advice.recommended.counts.least == 38
    said = " ".join(summary_lines(advice, rules()))
    assert "waits for the next decision, every 1.0 s" in said
    assert "lower workers.scale_interval_ms" in said


def test_what_fits_is_left_as_it_is() -> None:
    trace = trace_of([(10.0 * n, 1.0) for n in range(50)])
    advice = tune(trace, rules(default_count=1, max_count=1), Aim(0.95, 1.0))
    assert advice.present == advice.recommended
    assert settings_lines(advice, "default") == []
    assert next(iter(summary_lines(advice, rules()))).startswith("Leave default 1, max 1 as they")


def test_a_crew_that_is_too_large_is_made_smaller() -> None:
    trace = trace_of([(10.0 * n, 1.0) for n in range(50)])
    advice = tune(trace, rules(default_count=6), Aim(0.95, 1.0))
    assert advice.recommended.counts == Counts(1, 1)
    assert advice.recommended.figures.worker_seconds < advice.present.figures.worker_seconds
    assert settings_lines(advice, "acme") == [
        "[tenants.acme.workers]",
        "default_count = 1",
        "max_count = 1",
    ]


def test_a_crew_may_be_empty_at_rest_only_where_it_is_so_already() -> None:
    trace = trace_of([(600.25 * n, 1.0) for n in range(1, 9)])
    assert tune(trace, rules(), Aim(0.95, 5.0)).recommended.counts.least == 1
    empty = tune(trace, rules(default_count=0), Aim(0.95, 5.0))
    assert empty.recommended.counts == Counts(0, 1)


@pytest.mark.parametrize("most", [1, 3])
def test_where_nothing_helps_it_says_why(most: int) -> None:
    limited = rules(max_running=most)
    advice = tune(trace_of(BURSTS), limited, Aim(0.95, 1.0))
    assert not advice.reached
    assert advice.recommended.counts.most <= 3
    said = " ".join(summary_lines(advice, limited))
    assert f"limits.max_running = {most} lets no more jobs run" in said


def spread(counts: tuple[int, ...]) -> Trace:
    return trace_of([(30.1 * n, 3.0) for n, count in enumerate(counts) for _ in range(count)])


@pytest.mark.parametrize("counts", [(3000, 1, 1), (1, 1000, 10, 300), (500,) * 4])
def test_searches_are_bounded(counts: tuple[int, ...]) -> None:
    advice = tune(spread(counts), rules(), Aim(0.99, 0.25))
    assert advice.simulations <= SIMULATIONS_MAX
    assert advice.reached
    assert advice.recommended.wait_seconds <= 0.25


def lines(advice: Advice, trace: Trace, of: ModelSettings) -> list[str]:
    return advice_lines(advice, trace, of, "default")


def test_a_person_gets_a_table_a_sentence_and_lines_to_paste() -> None:
    trace = trace_of(BURSTS)
    advice = attrs.evolve(tune(trace, rules(), Aim(0.95, 20.0)), latency=None)
    counts = advice.recommended.counts
    said = lines(advice, trace, rules())
    assert said[1] == "aim: p95 wait at most 20.0 s"
    assert any(
        one.startswith(f"default 2 -> {counts.least}, max 8 -> {counts.most}") for one in said
    )
    assert said[-3:] == [
        "[workers]", f"default_count = {counts.least}", f"max_count = {counts.most}",
    ]  # fmt: skip


def test_the_policy_latency_is_tried_with_the_recommended_counts_and_the_aim_as_promise() -> None:
    trace = trace_of(BURSTS)
    advice = tune(trace, rules(), Aim(0.95, 20.0))
    counts, found = advice.recommended.counts, advice.latency
    assert found is not None
    assert (found.counts, found.marks) == (counts, ("policy latency",))
    settings = promising(20.0, default_count=counts.least, max_count=counts.most)
    assert found.wait_seconds == quantile(sorted(simulate(trace, settings).waits), 0.95)
    assert found.figures.span_seconds == advice.recommended.figures.span_seconds
    assert any("policy latency" in line for line in advice_lines(advice, trace, rules(), "default"))
    latency = tune(trace, promising(20.0, default_count=2, max_count=8), Aim(0.95, 20.0))
    assert latency.latency is None
    assert tune(trace, rules(), Aim(0.95, 0.0)).latency is None


@pytest.mark.parametrize(
    ("cost", "wait", "prefers"),
    [(0.94, 20.0, True), (0.96, 20.0, False), (0.5, 20.1, False)],
)
def test_latency_is_recommended_where_it_reaches_the_aim_for_clearly_less(
    cost: float, wait: float, prefers: bool
) -> None:
    advice = tune(trace_of(BURSTS), rules(), Aim(0.95, 20.0))
    best = advice.recommended
    figures = attrs.evolve(best.figures, worker_seconds=best.figures.worker_seconds * cost)
    latency = Candidate(best.counts, wait, figures, ("policy latency",))
    advice = attrs.evolve(advice, latency=latency)
    assert advice.prefers_latency is prefers
    scaling = ["[scaling]", 'policy = "latency"', "max_wait_seconds = 20"]
    assert (settings_lines(advice, "default")[-3:] == scaling) is prefers
    assert (
        any("With the policy latency" in one for one in summary_lines(advice, rules())) is prefers
    )


def test_it_says_what_was_not_tried() -> None:
    advice = tune(trace_of(BURSTS), rules(), Aim(0.95, 20.0))
    (said,) = (one for one in summary_lines(advice, rules()) if one.startswith("Not tried: "))
    assert "up_step" in said
