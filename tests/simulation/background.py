"""What a seed wants beside its troubles, drawn by dice of its own: whether it has a favourite kind
of jobs, and whether it must do without hints.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

Drawn = tuple[float, str, dict[str, Any]]
HINTLESS = 0.15  # so many seeds


def draw_hintless(dice: random.Random) -> bool:
    """Whether no hint ever arrives: what is to be found is found by looking."""
    return dice.random() < HINTLESS


def draw_favourite(dice: random.Random) -> str | None:
    """The kind of most jobs; None = all kinds alike."""
    return dice.choice((None, None, "pipeline", "pipeline", "capped", "once", "rest"))


def with_favourite(kind: str | None, deeds: Iterable[Drawn]) -> list[Drawn]:
    """The same, with that kind in the place of plain jobs."""
    return [
        (at, what, {**values, "jobs": [_mixed(kind, job) for job in values["jobs"]]})
        if what == "enqueue"
        else (at, what, values)
        for at, what, values in deeds
    ]


def _mixed(kind: str | None, job: Mapping[str, Any]) -> dict[str, Any]:
    return {**job, "kind": kind} if kind and job["kind"] == "plain" else dict(job)
