"""What a simulation comes to, in figures. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any, NamedTuple

import attrs

from musterd.manager.scaling.model.settings import ModelSettings
from musterd.manager.scaling.model.simulation import Run
from musterd.manager.scaling.model.trace import Trace

PLACES = 6  # of seconds and shares, for programs


class Waits(NamedTuple):
    """Seconds from an attempt's due time to its start."""

    p50: float
    p95: float
    p99: float
    max: float


def waits_of(ordered: Sequence[float]) -> Waits:
    return Waits(*(quantile(ordered, share) for share in (0.5, 0.95, 0.99, 1.0)))


def waits_object(waits: Waits) -> dict[str, float]:
    return {f"wait_{name}_seconds": round(each, PLACES) for name, each in waits._asdict().items()}


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that this share of all does not exceed; 0 if there are none."""
    return ordered[max(0, ceil(share * len(ordered)) - 1)] if ordered else 0.0


HOUR_SECONDS = 3600.0


@attrs.frozen
class Figures:
    """Over `span_seconds`; compared runs cover the same span."""

    attempts: int
    waits: Waits
    span_seconds: float
    busy_seconds: float
    worker_seconds: float
    crew_rest: int  # its size when there is nothing to do
    crew_most: int
    busy_most: int
    hired: int
    retired: int
    turns: int
    longest_queue: int

    @property
    def crew_mean(self) -> float:
        seconds = self.span_seconds
        return self.worker_seconds / seconds if seconds else float(self.crew_rest)

    @property
    def idle_share(self) -> float:
        if not self.worker_seconds:
            return 0.0
        return max(0.0, 1 - self.busy_seconds / self.worker_seconds)

    @property
    def turns_per_hour(self) -> float:
        return self.turns * HOUR_SECONDS / self.span_seconds if self.span_seconds else 0.0

    def over(self, span_seconds: float) -> Figures:
        """The figures as if the run had continued until then with a crew at rest."""
        longer = max(0.0, span_seconds - self.span_seconds)
        return attrs.evolve(
            self,
            span_seconds=self.span_seconds + longer,
            worker_seconds=self.worker_seconds + longer * self.crew_rest,
        )


def figures_of(trace: Trace, settings: ModelSettings, run: Run) -> Figures:
    return Figures(
        attempts=len(trace),
        waits=waits_of(sorted(run.waits)),
        span_seconds=run.ended_seconds,
        busy_seconds=trace.busy_seconds,
        worker_seconds=run.worker_seconds,
        crew_rest=settings.rest_size,
        crew_most=max(size for _, size in run.sizes),
        busy_most=run.most_busy,
        hired=run.hired,
        retired=run.retired,
        turns=run.turns,
        longest_queue=run.longest_queue,
    )


SHOWN = (
    *("span_seconds", "crew_mean", "crew_most", "busy_most", "worker_seconds", "idle_share"),
    *("hired", "retired", "turns_per_hour", "longest_queue"),
)


def figures_object(figures: Figures) -> dict[str, Any]:
    shown = {name: round(getattr(figures, name), PLACES) for name in SHOWN}
    return {"attempts": figures.attempts, **waits_object(figures.waits), **shown}
