"""How far simulations may be trusted, by the hours that were compared with the model. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

import attrs

from musterd.store.compared_hours import SMALL_WAIT_SECONDS, ComparedHour
from musterd.store.words import duration_text, plural

GOOD_RATIO = 0.1
USELESS_RATIO = 0.5  # as in the alert MusterdModelOff
LEANING_SHARE = 0.75


@attrs.frozen
class Confidence:
    """The errors are of the p95 of waits, in the middle of the hours and in the worst; 0 where
    there are no `hours`. `longer`: in so many the real one was the longer one.
    """

    hours: int
    median_error_ratio: float = 0.0
    worst_error_ratio: float = 0.0
    longer: int = 0


def confidence_of(hours: Iterable[ComparedHour]) -> Confidence:
    known = [(hour, ratio) for hour in hours if (ratio := hour.error_ratio) is not None]
    if not known:
        return Confidence(0)
    ratios = [ratio for _, ratio in known]
    longer = sum(_is_longer(hour) for hour, _ in known)
    return Confidence(len(known), median(ratios), max(ratios), longer)


def _is_longer(hour: ComparedHour) -> bool:
    assert hour.was is not None
    assert hour.present is not None
    return hour.was.wait_p95_seconds > hour.present.wait_p95_seconds


def confidence_sentence(one: Confidence, wait_seconds: float) -> str:
    """What it means for a wait that was proposed."""
    if not one.hours:
        return (
            "How far these waits can be trusted is not known: no hour has been compared with the"
            " model yet."
        )
    error = f"{one.median_error_ratio * 100:.0f} %"
    worst = f"{one.worst_error_ratio * 100:.0f} %"
    held = f"In {plural(one.hours, 'hour')} that the model was compared with, its p95 wait was off"
    held += f" by {error} in the middle and {worst} at worst{_leaning(one)}"
    if one.median_error_ratio > USELESS_RATIO:
        return f"{held}: do not go by it, and look what it does not know."
    margin = one.median_error_ratio * max(wait_seconds, SMALL_WAIT_SECONDS)
    low, high = duration_text(max(0.0, wait_seconds - margin)), duration_text(wait_seconds + margin)
    trust = "it may be trusted" if one.median_error_ratio <= GOOD_RATIO else "go by it roughly"
    return f"{held}: {trust}, and {duration_text(wait_seconds)} means {low} to {high}."


def _leaning(one: Confidence) -> str:
    if one.longer >= LEANING_SHARE * one.hours:
        return ", mostly too short"
    return ", mostly too long" if one.longer <= (1 - LEANING_SHARE) * one.hours else ""
