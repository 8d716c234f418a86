"""Traces by hand, and from the log of a stage."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import attrs

from musterd.manager.scaling.decision import ScalingPolicy
from musterd.manager.scaling.latency import Promises
from musterd.manager.scaling.model.reading import TraceReader
from musterd.manager.scaling.model.settings import ModelSettings
from musterd.manager.scaling.model.trace import NONE, Trace
from musterd.store.events import EventLog

BEGUN_AT = datetime(2026, 11, 2, 8, 0, tzinfo=UTC)


def trace_of(
    jobs: Sequence[tuple[float, float]],
    span_seconds: float | None = None,
    kinds: Sequence[str] | None = None,
) -> Trace:
    """Of jobs with one attempt each: due at, runs for. They are said to have begun at once."""
    entries = range(len(jobs))
    return Trace(
        begun_at=BEGUN_AT,
        span_seconds=max(map(sum, jobs)) if span_seconds is None else span_seconds,
        due_seconds=[due for due, _ in jobs],
        run_seconds=[run for _, run in jobs],
        waited_seconds=[0.0 for _ in jobs],
        next_attempt=[NONE for _ in jobs],
        pause_seconds=[0.0 for _ in jobs],
        firsts=sorted(entries, key=lambda one: (jobs[one][0], one)),
        kinds=["a" for _ in jobs] if kinds is None else kinds,
    )


SHIPPED = ScalingPolicy(
    policy="demand",
    default_count=2,
    max_count=8,
    up_cooldown_seconds=0,
    down_cooldown_seconds=5,
    stabilization_seconds=10,
)


def promising(max_wait_seconds: float, interval_seconds: float = 1.0, **more: Any) -> ModelSettings:
    """The policy `latency`, with this promise for all kinds; else as `rules`."""
    promises = Promises(max_wait_seconds, interval_seconds=interval_seconds)
    return rules(interval_seconds, **({"policy": "latency", "promises": promises} | more))


def rules(interval_seconds: float = 1.0, **policy: Any) -> ModelSettings:
    """The shipped settings, but for these."""
    return ModelSettings(attrs.evolve(SHIPPED, **policy), interval_seconds)


async def trace_from(log: EventLog) -> Trace:
    """What all of a log tells."""
    reader, position, more = TraceReader(), 0, True
    await log.order()
    while more:
        page = await log.read(position)
        reader.take(page.events)
        position, more = page.position, page.more
    assert reader.trace is not None
    return reader.trace
