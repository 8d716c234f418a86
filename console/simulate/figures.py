"""The figures of a run, by which people compare. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

import attrs

from musterd.console.simulate.model import Rules, Run
from musterd.console.simulate.trace import Trace

HOUR_SECONDS = 3600.0
PLACES = 6  # of seconds and shares, for programs


@attrs.frozen
class Waits:
    """From when an attempt was due to its start, in seconds."""

    p50: float
    p95: float
    p99: float
    most: float


@attrs.frozen
class Figures:
    """Over `span_seconds`; runs that stand beside each other are told over the same span."""

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
        """Of the worker-seconds."""
        if not self.worker_seconds:
            return 0.0
        return max(0.0, 1 - self.busy_seconds / self.worker_seconds)

    @property
    def turns_per_hour(self) -> float:
        return self.turns * HOUR_SECONDS / self.span_seconds if self.span_seconds else 0.0

    def over(self, span_seconds: float) -> Figures:
        """As if it had gone on until then, with a crew at rest."""
        longer = max(0.0, span_seconds - self.span_seconds)
        return attrs.evolve(
            self,
            span_seconds=self.span_seconds + longer,
            worker_seconds=self.worker_seconds + longer * self.crew_rest,
        )


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that so large a share of all does not exceed; 0 of nothing."""
    if not ordered:
        return 0.0
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


def waits_of(ordered: Sequence[float]) -> Waits:
    p50, p95, p99 = (quantile(ordered, share) for share in (0.5, 0.95, 0.99))
    return Waits(p50, p95, p99, quantile(ordered, 1.0))


def figures_of(trace: Trace, rules: Rules, run: Run) -> Figures:
    return Figures(
        attempts=len(trace),
        waits=waits_of(sorted(run.waits)),
        span_seconds=run.ended_seconds,
        busy_seconds=trace.busy_seconds,
        worker_seconds=run.worker_seconds,
        crew_rest=rules.rest_size,
        crew_most=max(size for _, size in run.sizes),
        busy_most=run.most_busy,
        hired=run.hired,
        retired=run.retired,
        turns=run.turns,
        longest_queue=run.longest_queue,
    )


def figures_object(figures: Figures) -> dict[str, Any]:
    return {
        "attempts": figures.attempts,
        **waits_object(figures.waits),
        "span_seconds": round(figures.span_seconds, PLACES),
        "crew_mean": round(figures.crew_mean, PLACES),
        "crew_most": figures.crew_most,
        "busy_most": figures.busy_most,
        "worker_seconds": round(figures.worker_seconds, PLACES),
        "idle_share": round(figures.idle_share, PLACES),
        "hired": figures.hired,
        "retired": figures.retired,
        "turns_per_hour": round(figures.turns_per_hour, PLACES),
        "longest_queue": figures.longest_queue,
    }


def waits_object(waits: Waits) -> dict[str, float]:
    return {
        "wait_p50_seconds": round(waits.p50, PLACES),
        "wait_p95_seconds": round(waits.p95, PLACES),
        "wait_p99_seconds": round(waits.p99, PLACES),
        "wait_max_seconds": round(waits.most, PLACES),
    }


def rules_object(rules: Rules) -> dict[str, Any]:
    """The settings that the model knows, by their names."""
    policy = rules.policy
    return {
        "workers.default_count": policy.default_count,
        "workers.max_count": policy.max_count,
        "workers.scale_interval_ms": round(rules.interval_seconds * 1000),
        "scaling.policy": policy.policy,
        "scaling.up_cooldown_seconds": policy.up_cooldown_seconds,
        "scaling.down_cooldown_seconds": policy.down_cooldown_seconds,
        "scaling.stabilization_seconds": policy.stabilization_seconds,
        "limits.max_running": policy.max_running or 0,
    }


def changed_rules(before: Rules, after: Rules) -> Mapping[str, tuple[Any, Any]]:
    """What of that is different: before and after, by name."""
    old, new = rules_object(before), rules_object(after)
    return {name: (old[name], new[name]) for name in old if old[name] != new[name]}
