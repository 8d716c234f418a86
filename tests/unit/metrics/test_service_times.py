"""How long jobs take, as a node measures it."""

from random import Random

import pytest

from musterd.manager.scaling.service_times import ARRIVING_MAX, RUNS_MAX, Arrivals, ServiceTimes
from musterd.store.leases import Settlement
from musterd.store.lifecycle import AttemptOutcome
from tests.support.metric_samples import settled


def ran(seconds: float, outcome: AttemptOutcome = AttemptOutcome.SUCCEEDED) -> Settlement:
    return settled("a", outcome, seconds=seconds)


def test_a_kind_that_never_ran_has_no_times() -> None:
    assert ServiceTimes().known("a", None, 3).runs == 0


def test_few_runs_are_averaged() -> None:
    times = ServiceTimes()
    times.note([ran(1), ran(2), ran(6)])
    seen = times.known("a", "why", 3)
    assert (seen.broken, seen.max_running, seen.runs) == ("why", 3, 3)
    assert seen.mean_seconds == pytest.approx(3)
    assert seen.deviation_seconds == pytest.approx(2.16, abs=0.01)


def test_recent_runs_count_more_than_old_ones() -> None:
    times = ServiceTimes()
    times.note([ran(1)] * 5_000)
    times.note([ran(10)] * 100)
    seen = times.known("a", None, None)
    assert seen.mean_seconds == pytest.approx(10, abs=0.1)
    assert seen.runs == RUNS_MAX


def test_the_spread_is_that_of_the_runs() -> None:
    rng, times = Random(3), ServiceTimes()
    times.note([ran(rng.gauss(10, 2)) for _ in range(5_000)])
    seen = times.known("a", None, None)
    assert seen.mean_seconds == pytest.approx(10, abs=1)
    assert seen.deviation_seconds == pytest.approx(2, abs=1)


def test_what_was_given_back_says_nothing_and_a_failure_does() -> None:
    times = ServiceTimes()
    times.note([ran(0, AttemptOutcome.RELEASED), ran(4, AttemptOutcome.FAILED)])
    seen = times.known("a", None, None)
    assert (seen.runs, seen.mean_seconds, seen.deviation_seconds) == (1, 4, 0)


@pytest.mark.parametrize("outcome", [AttemptOutcome.CANCELED, AttemptOutcome.PAUSED])
def test_what_never_began_says_nothing(outcome: AttemptOutcome) -> None:
    times = ServiceTimes()
    times.note([ran(9), ran(0, outcome)._replace(started_epoch=None, worker=None)])
    assert times.known("a").mean_seconds == 9
    times.note([ran(0, outcome)._replace(kind="b", started_epoch=None, worker=None)])
    assert list(times.kinds) == ["a"]


def test_what_was_interrupted_and_paused_says_nothing() -> None:
    times = ServiceTimes()
    times.note([ran(9), ran(0.1, AttemptOutcome.PAUSED)])
    assert times.known("a").mean_seconds == 9


def test_arrivals_of_names_without_end_are_bounded_and_keep_the_busy_kind() -> None:
    arrivals = Arrivals()
    for second in range(3 * ARRIVING_MAX):
        arrivals.note(f"typo-{second}", [0.0], float(second))
        arrivals.note("mail", [0.0] * 5, float(second))
    rates = arrivals.a_second(3.0 * ARRIVING_MAX)
    assert len(rates) <= ARRIVING_MAX
    assert rates["mail"] == pytest.approx(5, rel=0.05)
