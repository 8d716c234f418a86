"""What a measurement was told to do, and what came of it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import attrs

from musterd.console.verbs.demo_play import percentile
from musterd.store.scratch import Scratch

BATCH = 5_000  # jobs in one call of the client

# Why a measurement ended before its end.
Cut = Literal["time", "signal"]
Stage = Literal["making a store", "enqueueing", "doing", "picking up"]


@attrs.frozen
class Order:
    """What is to be measured, and for how long at most."""

    jobs: int
    workers: int
    pick_ups: int
    within_seconds: float


class Spread(NamedTuple):
    """Of many durations, in seconds: each is one that was measured."""

    p50: float
    p99: float
    max: float


@attrs.define(eq=False)
class Found:
    """What has been measured so far."""

    place: Scratch | None = None
    stage: Stage = "making a store"
    enqueued: int = 0
    enqueue_seconds: float = 0.0
    done: int = 0
    done_seconds: float = 0.0
    pick_ups_seconds: list[float] = attrs.field(factory=list[float])
    is_whole: bool = False
    cut: Cut | None = None
    trouble: str = ""  # of the store, where it was in trouble when the measurement was cut short
    not_removed: str = ""  # why its store is still there

    @property
    def enqueued_per_second(self) -> float | None:
        return _rate(self.enqueued, self.enqueue_seconds)

    @property
    def done_per_second(self) -> float | None:
        return _rate(self.done, self.done_seconds)

    @property
    def pick_up(self) -> Spread | None:
        return spread_of(self.pick_ups_seconds)


def spread_of(seconds: Sequence[float]) -> Spread | None:
    """None = nothing was measured."""
    if not seconds:
        return None
    return Spread(percentile(seconds, 50), percentile(seconds, 99), max(seconds))


def _rate(count: int, seconds: float) -> float | None:
    return count / seconds if count and seconds > 0 else None
