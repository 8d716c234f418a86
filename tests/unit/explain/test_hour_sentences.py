"""An hour beside the model in sentences: with a candidate, with few jobs, and skipped."""

from __future__ import annotations

from datetime import UTC, datetime

from musterd.console.explain.hours import hour_sentences
from musterd.store.compared_hours import ComparedHour, HourFigures

AT = datetime(2026, 11, 20, 9, tzinfo=UTC)
WAS = HourFigures(0.02, 1.2, 3.0)
PRESENT = HourFigures(0.0, 1.3, 3.0, 7_200.4)


def test_an_hour_with_a_candidate() -> None:
    candidate = HourFigures(0.0, 0.9, 2.1, 3_400.0)
    was, model, other = hour_sentences(ComparedHour(AT, 3600.0, 1_250, WAS, PRESENT, candidate))
    assert was == (
        "In the hour from 2026-11-20 09:00Z 1,250 jobs became due and waited 20 ms at p50,"
        " 1.2 s at p95 and 3.0 s at most."
    )
    assert model == (
        "The model makes of it 0.0 ms at p50, 1.3 s at p95 and 3.0 s at most, for 7,200"
        " worker-seconds: 8 % off."
    )
    assert other == (
        "With [scaling.candidate] it makes of it 0.0 ms at p50, 900 ms at p95 and 2.1 s at"
        " most, for 3,400 worker-seconds."
    )


def test_few_jobs_are_too_few_to_tell() -> None:
    first, second = hour_sentences(ComparedHour(AT, 3600.0, 1, WAS, PRESENT))
    assert "1 job became due" in first
    assert second.endswith("worker-seconds: too few to tell how far it is off.")


def test_a_skipped_hour_says_why() -> None:
    (said,) = hour_sentences(ComparedHour(AT, skipped="it took longer than 150 s"))
    assert said == (
        "The hour from 2026-11-20 09:00Z was not compared with the model: it took longer than"
        " 150 s."
    )
