"""How far `tune` says that its waits may be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import attrs
import pytest

from musterd.console.simulate.confidence import (
    USELESS_RATIO,
    Confidence,
    confidence_of,
    confidence_sentence,
)
from musterd.console.simulate.tuning import Aim, advice_object, summary_lines, tune
from musterd.store.compared_hours import ComparedHour, HourFigures
from tests.support.metric_pages import alerts
from tests.support.traces import rules, trace_of

AT = datetime(2026, 11, 2, 8, tzinfo=UTC)


def hours(*waits: tuple[float, float], attempts: int = 100) -> Sequence[ComparedHour]:
    """The real p95 and the model's of each."""
    return [
        ComparedHour(
            AT, 3600.0, attempts, HourFigures(0.0, real, real), HourFigures(0.0, model, model)
        )
        for real, model in waits
    ]


def test_the_error_in_the_middle_and_the_worst_and_which_way_it_leans() -> None:
    found = confidence_of(hours((10.0, 9.0), (10.0, 8.0), (10.0, 14.0)))
    assert (found.hours, found.longer) == (3, 2)
    assert (found.median_error_ratio, found.worst_error_ratio) == pytest.approx((0.2, 0.4))


def test_hours_that_tell_nothing_do_not_count() -> None:
    skipped = ComparedHour(AT, skipped="it took longer than 150 s")
    assert confidence_of([skipped, *hours((1.0, 9.0), attempts=3)]) == Confidence(0)


@pytest.mark.parametrize(
    ("confidence", "said"),
    [
        (Confidence(0), "is not known: no hour has been compared with the model yet."),
        (
            Confidence(23, 0.04, 0.31, 12),
            (
                "In 23 hours that the model was compared with, its p95 wait was off by 4 % in the"
                " middle and 31 % at worst: it may be trusted, and 9.4 s means 9.0 s to 9.8 s."
            ),
        ),
        (
            Confidence(1, 0.5, 0.5, 1),
            (
                "In 1 hour that the model was compared with, its p95 wait was off by 50 % in the"
                " middle and 50 % at worst, mostly too short: go by it roughly, and"
                " 9.4 s means 4.7 s to 14.1 s."
            ),
        ),
        (
            Confidence(8, 0.9, 9.0, 0),
            "mostly too long: do not go by it, and look what it does not know.",
        ),
    ],
)
def test_what_it_means_for_the_proposal(confidence: Confidence, said: str) -> None:
    assert said in confidence_sentence(confidence, 9.4)


def test_a_short_wait_is_as_far_off_as_half_a_second_would_be() -> None:
    said = confidence_sentence(Confidence(9, 0.1, 0.2, 5), 0.01)
    assert said.endswith("it may be trusted, and 10 ms means 0.0 ms to 60 ms.")


def test_the_alert_and_the_sentence_mean_the_same_by_far_off() -> None:
    assert alerts()["MusterdModelOff"]["expr"].endswith(f"> {USELESS_RATIO:g}")


def test_advice_says_it_where_the_jobs_are_of_the_store() -> None:
    trace = trace_of([(10.0 * n, 1.0) for n in range(50)])
    advice = tune(trace, rules(), Aim(0.95, 1.0))
    assert advice_object(advice, trace, rules(), "default")["confidence"] is None
    assert not [line for line in summary_lines(advice, rules()) if "trusted" in line]
    sure = attrs.evolve(advice, confidence=Confidence(5, 0.02, 0.03, 2))
    assert advice_object(sure, trace, rules(), "default")["confidence"]["hours"] == 5
    assert [
        line
        for line in summary_lines(sure, rules())
        if "it may be trusted, and 0.0 ms means" in line
    ]
