"""Hours of the past as they were, and as the model has them: what a store keeps of each. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import attrs

from musterd.store.words import time_text

HOUR = timedelta(hours=1)
ATTEMPTS_MIN = 20  # the p95 of fewer is the longest wait of all, which is chance
# A model that starts jobs at once is some milliseconds off; next to shorter waits that is no error.
SMALL_WAIT_SECONDS = 0.5
PLACES = 6


@attrs.frozen
class HourFigures:
    """Of the attempts that became due within the hour."""

    wait_p50_seconds: float
    wait_p95_seconds: float
    wait_max_seconds: float
    worker_seconds: float | None = None  # None = nobody counted them


@attrs.frozen
class ComparedHour:
    """`seconds` of it were compared, up to its end, with so many attempts. `was` is what the log
    says, `present` what the model makes of it with the settings that were in force, `candidate`
    with those of [scaling.candidate], if there was one. `skipped`: why nothing was compared.
    """

    at: datetime  # when it began
    seconds: float = 0.0
    attempts: int = 0
    was: HourFigures | None = None
    present: HourFigures | None = None
    candidate: HourFigures | None = None
    skipped: str | None = None

    @property
    def error_ratio(self) -> float | None:
        """How far off the model was; None = that cannot be told."""
        if self.was is None or self.present is None or self.attempts < ATTEMPTS_MIN:
            return None
        return error_ratio(self.was.wait_p95_seconds, self.present.wait_p95_seconds)


def error_ratio(real_seconds: float, model_seconds: float) -> float:
    """By how much of the real wait the model's is off; 0.1 is a tenth, or 50 ms of a short wait."""
    off_seconds = abs(model_seconds - real_seconds)
    return round(off_seconds / max(real_seconds, SMALL_WAIT_SECONDS), PLACES)


def hour_object(hour: ComparedHour) -> dict[str, Any]:
    """The hour as programs see it."""
    return {**attrs.asdict(hour), "at": time_text(hour.at), "error_ratio": hour.error_ratio}


def first_hour(since: datetime | None) -> datetime | None:
    """No hour that began earlier reaches to `since`."""
    if since is None or since.timestamp() < HOUR.total_seconds():
        return None
    return since - HOUR


COLUMNS = ("was", "present", "candidate")  # those with figures


def columns_of(hour: ComparedHour) -> dict[str, Any]:
    """The columns of a row but for the time, figures as JSON."""
    about = {"seconds": hour.seconds, "attempts": hour.attempts, "skipped": hour.skipped}
    figures = ((name, getattr(hour, name)) for name in COLUMNS)
    return about | {
        name: None if found is None else json.dumps(attrs.asdict(found)) for name, found in figures
    }


def hour_of(at: datetime, values: Sequence[Any]) -> ComparedHour:
    """From columns: seconds, attempts, skipped, and the figures in the order of `COLUMNS`."""
    seconds, attempts, skipped, *texts = values
    figures = {
        name: None if text is None else HourFigures(**json.loads(text))
        for name, text in zip(COLUMNS, texts, strict=True)
    }
    return ComparedHour(at, seconds, attempts, skipped=skipped, **figures)
