"""Curves of blocks."""

from __future__ import annotations

from musterd.console.output import bars
from musterd.console.simulate.verb import (
    COLUMNS,
    chart_lines,
    crew_columns,
    queue_columns,
    scale_line,
)
from musterd.manager.scaling.model.figures import quantile, waits_of
from musterd.manager.scaling.model.simulation import simulate
from tests.support.traces import rules, trace_of


def test_only_nothing_looks_like_nothing() -> None:
    assert bars([0, 1, 500, 1000], 1000) == " ▁▄█"
    assert bars([0, 0], 0) == "  "
    assert bars([3], 3) == "█"


def test_a_crew_and_its_queue_are_where_they_were() -> None:
    """A minute in sixty columns: twelve come at 10.5, six of them wait from 11 to 16."""
    run = simulate(trace_of([(10.5, 5.0)] * 12, span_seconds=60.0), rules(max_count=6))
    crew = crew_columns(run, 60.0)
    assert crew[:11] == [2] * 11
    assert set(crew[11:26]) == {6}
    assert crew[-1] == 2
    queue = queue_columns(run, 60.0)
    assert queue[:10] == [0] * 10
    assert queue[10:17] == [10, 10, 6, 6, 6, 6, 4]
    assert not any(queue[17:])


def test_all_lines_are_as_long_and_fit_a_terminal() -> None:
    run = simulate(trace_of([(0.0, 0.0)]), rules())
    first, second = chart_lines("proposed", run, 0.0, (2, 0))
    assert len(first.partition("  most")[0]) == len(second.partition("  most")[0]) == COLUMNS + 16
    assert len(scale_line(3600.0)) == COLUMNS + 16


def test_a_quantile_is_a_value_that_was_there() -> None:
    assert quantile([], 0.5) == 0.0
    assert [quantile([1.0, 2.0, 3.0, 4.0], share) for share in (0.01, 0.5, 0.51, 1.0)] == [
        1,
        2,
        3,
        4,
    ]
    waits = waits_of(list(map(float, range(1, 101))))
    assert (waits.p50, waits.p95, waits.p99, waits.max) == (50, 95, 99, 100)
