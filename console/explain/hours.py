"""What the model makes of an hour, in sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from musterd.store.compared_hours import ATTEMPTS_MIN, ComparedHour, HourFigures
from musterd.store.words import count_text, duration_text, plural, time_text


def hour_sentences(hour: ComparedHour) -> Iterator[str]:
    """How long its jobs waited, and would have by the model and with the candidate."""
    begun = (time_text(hour.at) or "")[:16].replace("T", " ")
    if hour.was is None or hour.present is None:
        why = hour.skipped or "nothing became due in it"
        yield f"The hour from {begun}Z was not compared with the model: {why}."
        return
    jobs = plural(hour.attempts, "job")
    yield f"In the hour from {begun}Z {jobs} became due and waited {_waits(hour.was)}."
    error, ratio = "", hour.error_ratio
    if ratio is not None:
        error = f": {ratio * 100:.0f} % off"
    elif hour.attempts < ATTEMPTS_MIN:
        error = ": too few to tell how far it is off"
    yield f"The model makes of it {_waits(hour.present)}{error}."
    if hour.candidate is not None:
        yield f"With [scaling.candidate] it makes of it {_waits(hour.candidate)}."


def _waits(found: HourFigures) -> str:
    """`20 ms at p50, 1.2 s at p95 and 3.0 s at most, for 7,200 worker-seconds`"""
    half, most, longest = (
        duration_text(seconds)
        for seconds in (found.wait_p50_seconds, found.wait_p95_seconds, found.wait_max_seconds)
    )
    cost = found.worker_seconds
    what = "" if cost is None else f", for {count_text(round(cost))} worker-seconds"
    return f"{half} at p50, {most} at p95 and {longest} at most{what}"
