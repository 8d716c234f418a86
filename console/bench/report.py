"""The findings of a measurement, as lines for people and as an object for programs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import attrs

from musterd.console.output import quantile
from musterd.store.scratch import Scratch
from musterd.store.words import count_text, duration_text, plural, table

BATCH = 5_000  # jobs in one call of the client

# Why a measurement ended before its end.
Cut = Literal["time", "signal"]
Stage = Literal["making a store", "enqueueing", "doing", "picking up"]


@attrs.frozen
class Plan:
    """What to measure, and for how long at most."""

    jobs: int
    workers: int
    pick_ups: int
    within_seconds: float


class Spread(NamedTuple):
    p50: float
    p99: float
    max: float


@attrs.define(eq=False)
class Findings:
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
        return _per_second(self.enqueued, self.enqueue_seconds)

    @property
    def done_per_second(self) -> float | None:
        return _per_second(self.done, self.done_seconds)


def spread_of(seconds: Sequence[float]) -> Spread | None:
    """None = nothing was measured."""
    if not seconds:
        return None
    ordered = sorted(seconds)
    return Spread(*(quantile(ordered, share) for share in (0.5, 0.99, 1.0)))


def _per_second(count: int, seconds: float) -> float | None:
    return count / seconds if count and seconds > 0 else None


AGAINST = "Anything else that machine and database do meanwhile lowers these figures."


@attrs.frozen
class Machine:
    musterd: str
    python: str
    cores: int


def report_lines(order: Plan, found: Findings, machine: Machine) -> list[str]:
    """Where it was measured, the figures, and what limits them."""
    crew = f"{plural(order.workers, 'worker')} in this process"
    versions = f"musterd {machine.musterd}, Python {machine.python}"
    where = f"{crew}, {plural(machine.cores, 'core')}, {versions}"
    figures = (f"  {line}" for line in _figure_lines(found))
    return [*_place_lines(found.place), where, "", *figures, "", AGAINST]


def report_object(order: Plan, found: Findings, machine: Machine) -> dict[str, object]:
    """The figures and their circumstances; None = not measured."""
    place, spread = found.place, spread_of(found.pick_ups_seconds)
    picked_up = spread and {name: round(each, 6) for name, each in spread._asdict().items()}
    return {
        "whole": found.is_whole,
        "enqueued_jobs_per_second": _rounded(found.enqueued_per_second),
        "done_jobs_per_second": _rounded(found.done_per_second),
        "pick_up_seconds": picked_up,
        "enqueued": found.enqueued,
        "enqueue_seconds": round(found.enqueue_seconds, 6),
        "done": found.done,
        "done_seconds": round(found.done_seconds, 6),
        "pick_ups": len(found.pick_ups_seconds),
        "wanted": {"jobs": order.jobs, "pick_ups": order.pick_ups},
        "workers": order.workers,
        "store": place and place.where,
        "database": place and place.product,
        "pooler": place is not None and place.pooled,
        "removed": list(place.removed) if place else [],
        "left": list(place.left) if place else [],
        **attrs.asdict(machine),
    }


def cut_text(order: Plan, found: Findings) -> str:
    """How far a measurement came that was cut short."""
    why = f"after {duration_text(order.within_seconds)}" if found.cut == "time" else "by a signal"
    return f"cut short {why}, while {found.stage}: {_far_text(order, found)}"


def progress_text(order: Plan, found: Findings) -> str:
    return f"{found.stage} · {_far_text(order, found)}"


def _far_text(order: Plan, found: Findings) -> str:
    parts = (
        (found.enqueued, order.jobs, "enqueued"),
        (found.done, order.jobs, "done"),
        (len(found.pick_ups_seconds), order.pick_ups, "single jobs picked up"),
    )
    return ", ".join(f"{count_text(n)} of {count_text(most)} {what}" for n, most, what in parts)


def _place_lines(place: Scratch | None) -> list[str]:
    if place is None:
        return ["no store was made"]
    own = "in its own folder" if place.url.startswith("sqlite:") else "in its own schema"
    pooler = ", through a pooler" if place.pooled else ""
    return [
        f"{place.product}, {place.where}, {own}{pooler}",
        *(f"removed what a killed measurement had left: {one}" for one in place.removed),
        *(f"LEFT BEHIND by a killed measurement: {one}" for one in place.left),
    ]


def _figure_lines(found: Findings) -> Sequence[str]:
    calls = f"by one client, up to {count_text(BATCH)} per call"
    enqueued = f"{plural(found.enqueued, 'job')} {calls}"
    done = f"{plural(found.done, 'job')} that do nothing, from the first claim to the last result"
    single = f"{plural(len(found.pick_ups_seconds), 'single job')}, from commit to start"
    p50, p99, most = spread_of(found.pick_ups_seconds) or (None, None, None)
    rows = [
        ("enqueued", _measured(found.enqueued_per_second, _rate_text), enqueued),
        ("done", _measured(found.done_per_second, _rate_text), done),
        ("pick-up p50", _measured(p50, duration_text), single),
        ("pick-up p99", _measured(p99, duration_text), ""),
        ("pick-up max", _measured(most, duration_text), ""),
    ]
    return table(("figure", "measured", "of"), rows, right=frozenset({1}))


def _measured(figure: float | None, text: Callable[[float], str]) -> str:
    return "not measured" if figure is None else text(figure)


def _rate_text(rate: float) -> str:
    return f"{count_text(round(rate))} jobs/s"


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 1)
