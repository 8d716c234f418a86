"""An hour of the past beside the model: how long jobs waited as it was, and with settings. Pure.

All that takes long is a generator of small steps, so that it can be done where nobody waits for it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from math import isnan

import attrs

from musterd.manager.scaling.model.figures import waits_of
from musterd.manager.scaling.model.reading import TraceReader
from musterd.manager.scaling.model.settings import ModelSettings
from musterd.manager.scaling.model.simulation import Simulation
from musterd.manager.scaling.model.trace import Trace
from musterd.store.compared_hours import HOUR, ComparedHour, HourFigures
from musterd.store.events import Event
from musterd.store.history import STEP_SECONDS

HOUR_SECONDS = HOUR.total_seconds()
# Before what is compared: what waits, who is hired and how long jobs take when it begins.
LEAD_SECONDS = 120.0
COMPARED_SECONDS_MIN = 180.0
ATTEMPTS_MAX = 20_000
EVENTS_A_STEP = 50
TOO_MANY = f"more than {ATTEMPTS_MAX:,} attempts in five minutes"

Steps = Generator[None, None, None]


@attrs.frozen
class Window:
    """In seconds since the epoch: what is read, and from where on it is compared."""

    since: float
    compared_since: float
    until: float

    @property
    def at(self) -> datetime:
        """When its hour began."""
        return datetime.fromtimestamp(self.until - HOUR_SECONDS, UTC)


def window_of(ended: Iterable[tuple[float, int]], until: float) -> Window | None:
    """As much of the hour, up to its end, as has no more than `ATTEMPTS_MAX`; None = so little that
    it tells nothing. `ended`: when each step of the history began, and the attempts that ended in
    it.
    """
    since, attempts = until - HOUR_SECONDS - LEAD_SECONDS, 0
    for at, number in sorted(ended, reverse=True):
        attempts += number
        if attempts > ATTEMPTS_MAX:
            since = max(since, at + STEP_SECONDS)
            break
    window = Window(since, since + LEAD_SECONDS, until)
    return window if until - window.compared_since >= COMPARED_SECONDS_MIN else None


def taking(reader: TraceReader, events: Sequence[Event]) -> Steps:
    for place in range(0, len(events), EVENTS_A_STEP):
        reader.take(events[place : place + EVENTS_A_STEP])
        yield


def compared(
    reader: TraceReader,
    present: ModelSettings,
    window: Window,
    candidate: ModelSettings | None = None,
) -> Generator[None, None, ComparedHour | None]:
    """None = nothing became due in it, as far as the log tells."""
    if reader.is_full:
        return ComparedHour(window.at, skipped=TOO_MANY)
    trace = reader.trace
    yield
    entries = () if trace is None else _due_within(trace, window)
    if trace is None or not entries:
        return None
    waited = [trace.waited_seconds[entry] for entry in entries]
    yield
    hour = ComparedHour(
        window.at,
        window.until - window.compared_since,
        len(entries),
        was=_figures(waited),
        present=(yield from _simulated(trace, present, window, entries)),
    )
    if candidate is None:
        return hour
    beside = yield from _simulated(trace, candidate, window, entries)
    return attrs.evolve(hour, candidate=beside)


def _due_within(trace: Trace, window: Window) -> Sequence[int]:
    """Attempts of which the log says when they were due, and that this was in the window."""
    begun = trace.begun_at.timestamp()
    first, last = window.compared_since - begun, window.until - begun
    return [
        entry
        for entry, due in enumerate(trace.due_seconds)
        if first <= due < last and not isnan(trace.waited_seconds[entry])
    ]


def _simulated(
    trace: Trace, settings: ModelSettings, window: Window, entries: Sequence[int]
) -> Generator[None, None, HourFigures]:
    simulation = Simulation(trace, settings)
    while not simulation.is_over():
        simulation.go_on()
        yield
    run, begun = simulation.run(), trace.begun_at.timestamp()
    cost = worker_seconds(run.sizes, window.compared_since - begun, window.until - begun)
    return _figures([run.waits[entry] for entry in entries], cost)


def worker_seconds(sizes: Sequence[tuple[float, int]], since: float, until: float) -> float:
    """What a crew of these sizes cost in between; `sizes` are those of a `Run`. Before the first
    event and after the last it is at rest.
    """
    (_, first), *later = sizes
    return sum(
        size * max(0.0, min(end, until) - max(start, since))
        for (start, size), (end, _) in pairwise([(since, first), *later, (until, 0)])
    )


def _figures(waits: Sequence[float], cost: float | None = None) -> HourFigures:
    found = waits_of(sorted(waits))
    return HourFigures(found.p50, found.p95, found.max, cost)
