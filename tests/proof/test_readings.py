"""What a soak makes of what it reads."""

from __future__ import annotations

import math
from pathlib import Path

import attrs
import pytest

from tests.proof.ledger import Plan
from tests.proof.readings import FINISHED, Reading, jobs_a_second, visit_p99_ms, visits_of
from tests.proof.soak import Phases, table_sizes_mb, wrong

PLAN = Plan(1, 1.0, 1, 5.0, 100.0, Path())
METRICS = """
musterd_store_operation_seconds_bucket{le="0.1",operation="claim"} 90.0
musterd_store_operation_seconds_bucket{le="+Inf",operation="claim"} 100.0
musterd_store_operation_seconds_bucket{le="0.1",operation="settle"} 5.0
musterd_store_operation_seconds_bucket{le="+Inf",operation="settle"} 50.0
musterd_store_operation_seconds_bucket{le="0.1",operation="renew"} 7.0
musterd_jobs_finished_total{kind="work",outcome="succeeded",tenant="default"} 40.0
musterd_jobs_finished_total{kind="work",outcome="failed",tenant="default"} 2.0
"""


def reading(at: float, *, finished: float = 0.0, quick: float = 0.0, slow: float = 0.0) -> Reading:
    visits = {0.1: quick, 1.0: quick + slow, math.inf: quick + slow}
    return Reading(at, 60.0, 50, 18, 10.0, 1000, visits, finished)


def test_a_visit_claims_or_settles_and_claims() -> None:
    assert visits_of(METRICS) == {0.1: 95.0, math.inf: 150.0}
    assert [float(one) for one in FINISHED.findall(METRICS)] == [40.0, 2.0]


def test_only_what_came_between_counts() -> None:
    readings = [reading(0, finished=500, slow=1000), reading(10, finished=900, quick=99, slow=1001)]
    assert jobs_a_second(readings) == 40
    assert visit_p99_ms(readings) == pytest.approx(100)
    assert jobs_a_second(readings[:1]) is None


def test_work_that_hardly_goes_on_under_a_snapshot_is_complained_of() -> None:
    """A full node that waits for slow visits makes few of them: how long they take says little."""
    before = [reading(0), reading(10, finished=1800, quick=1000)]
    under = [reading(20), reading(30, finished=400, quick=1000)]
    (complaint,) = wrong(PLAN, Phases([*before, *under], before, under))
    assert complaint.startswith("work: ")
    assert wrong(PLAN, Phases([*before, *before], before, before)) == []


def test_slow_visits_under_a_snapshot_are_complained_of() -> None:
    before = [reading(0), reading(10, finished=1800, quick=1000)]
    under = [reading(20), reading(30, finished=1800, quick=500, slow=500)]
    (complaint,) = wrong(PLAN, Phases([*before, *under], before, under))
    assert complaint.startswith("visits: ")


def test_a_table_that_grows_is_complained_of_but_for_the_snapshot() -> None:
    """Nothing can be removed under it, and the file stays as large as it has become."""
    calm, under, after = ([reading(at) for at in range(begin, begin + 10)] for begin in (0, 10, 20))
    large = [attrs.evolve(one, table_mb=50.0) for one in after]
    phases = Phases([*calm, *under, *large], calm, under)
    assert table_sizes_mb(phases, phases.whole) == [(10.0, 10.0), (50.0, 50.0)]
    grown = Phases([*calm, *under, *after[:5], *large[5:]], calm, under)
    assert table_sizes_mb(grown, grown.whole) == [(10.0, 10.0), (10.0, 50.0)]
