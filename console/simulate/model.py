"""The simulation: a supervisor on a virtual clock, the queue it observes, and figures. Pure."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from itertools import groupby, islice
from math import ceil, floor, inf, nan
from typing import Any

import attrs

from musterd.config.scaling import Hours
from musterd.config.toml_text import plain
from musterd.console.simulate.trace import NONE, PLACES, Trace, Waits, waits_object, waits_of
from musterd.manager.scaling.decision import Memory, ScalingPolicy, Situation, decide
from musterd.manager.scaling.hours import HoursClock, with_hours
from musterd.manager.scaling.latency import Work
from musterd.manager.scaling.service_times import Arrivals, ServiceTimes
from musterd.store.estimate import together
from musterd.store.queue import LINE_MAX, Line, Waiting

STRETCHES = 240  # of the trace's span, for the queue's curve
STRETCH_SECONDS_MIN = 0.001


@attrs.frozen
class ModelSettings:
    """The supervisor's policy, how often it decides, and when it has other bounds."""

    policy: ScalingPolicy
    interval_seconds: float
    hours: tuple[Hours, ...] = ()

    @property
    def rest_size(self) -> int:
        """The crew when there is nothing to do, outside all hours."""
        return rest_size(self.policy)


def rest_size(policy: ScalingPolicy) -> int:
    """The crew at the start and when there is nothing to do."""
    return min(policy.default_count, policy.bound)


@attrs.define
class Run:
    """The outcome of a trace. `sizes`: when the crew changed, and its new size."""

    waits: Sequence[float]  # of each attempt, in the trace's order
    sizes: Sequence[tuple[float, int]]
    queue_peaks: Sequence[int]  # the longest queue of each stretch
    stretch_seconds: float
    longest_queue: int = 0
    most_busy: int = 0
    hired: int = 0
    retired: int = 0
    turns: int = 0  # times that growing was followed by shrinking, or the other way round
    worker_seconds: float = 0.0
    ended_seconds: float = 0.0
    decisions: int = 0  # ticks that were worked out; all others could have changed nothing


def simulate(trace: Trace, settings: ModelSettings) -> Run:
    """Runs the trace. The node starts when the trace begins."""
    stretch = max(STRETCH_SECONDS_MIN, trace.span_seconds / STRETCHES)
    scaler = _Scaler(settings, SimulatedQueue(trace, stretch))
    while not scaler.is_over():
        scaler.go_on()
    return scaler.run()


class _Scaler:
    """The supervisor, without the ticks that cannot change anything."""

    def __init__(self, settings: ModelSettings, on: SimulatedQueue) -> None:
        policy = settings.policy
        if policy.mode != "active":  # no decision acts
            settings = attrs.evolve(settings, policy=attrs.evolve(policy, mode="hold"))
        self._settings = settings
        self._clock, self._begun_at = HoursClock(), on.trace.begun_at.timestamp()
        self._simulated = on
        self._memory = Memory()
        self._tick = 0  # the last one worked out, counted from the origin
        self._origin_seconds = 0.0
        first = rest_size(self._policy_at(0.0))
        on.resize(first, 0.0)
        self._sizes = [(0.0, first)]
        self._run = Run(on.waits, self._sizes, on.peaks.peaks, on.peaks.stretch_seconds)
        self._grew: bool | None = None  # the last change
        self._is_calm = False  # the last decision was to leave the crew as it is
        self._seen = self._look(0.0)

    def is_over(self) -> bool:
        at_rest = self._simulated.size == rest_size(self._policy_at(self._time(self._tick)))
        return at_rest and self._simulated.next_at() == inf and not self._simulated.queue

    def go_on(self) -> None:
        """Advances to the next tick that may change something, or to the end of all jobs."""
        tick = self._next_tick()
        if tick is None:
            return
        if tick > self._tick + 1:  # the last skipped tick renews what it wants
            before = self._time(tick - 1)
            _, self._memory = decide(self._seen, self._memory, self._policy_at(before), before)
        self._simulated.advance(self._time(tick))
        self._decide(tick)

    def run(self) -> Run:
        run, on = self._run, self._simulated
        run.ended_seconds = max(on.trace.span_seconds, on.now, self._time(self._tick))
        since, size = self._sizes[-1]
        run.worker_seconds += size * (run.ended_seconds - since)
        run.longest_queue, run.most_busy = on.longest_queue, on.most_busy
        run.sizes = tuple(self._sizes)
        return run

    def _policy_at(self, seconds: float) -> ScalingPolicy:
        settings = self._settings
        if not settings.hours:
            return settings.policy
        in_force = self._clock.in_force(settings.hours, self._begun_at + seconds)
        return with_hours(settings.policy, in_force)

    def _hours_change_at(self, seconds: float) -> float:
        """When other bounds come into force; inf = never."""
        hours = self._settings.hours
        return self._clock.next_change(hours, self._begun_at + seconds) - self._begun_at

    def _time(self, tick: int) -> float:
        return self._origin_seconds + tick * self._settings.interval_seconds

    def _next_tick(self) -> int | None:
        """None = all jobs ended before there was anything to decide. A crew at rest stays so until
        a job waits; any other is examined when something happens or no longer holds it back.
        """
        on, soonest, now = self._simulated, self._tick + 1, self._time(self._tick)
        self._seen = self._look(now)  # as it stays until then
        change = self._hours_change_at(now)
        if on.size == rest_size(self._policy_at(now)) and not on.queue:
            seen_at = inf if change == inf else self._time(self._tick_at(change))
            on.advance(seen_at, stops_at_queue=True)
            if on.queue and on.size == 0:  # a hint to an empty crew: ticks are counted from it
                self._origin_seconds = on.now
                return 0
            if not on.queue:
                end = self._time(max(self._tick, self._tick_at(on.now)))
                is_over = on.next_at() == inf and end < change
                return None if is_over else max(soonest, self._tick_at(change))
            return max(soonest, self._tick_at(on.now))
        if self._settings.policy.policy == "latency":
            return soonest  # the longer jobs wait, the more workers they need
        found = min(self._held_until(), inf if change == inf else self._tick_at(change))
        if on.next_at() < inf:
            found = min(found, self._tick_at(on.next_at()))
        return max(soonest, int(found)) if abs(found) < inf else soonest

    def _tick_at(self, moment: float) -> int:
        """The first tick that sees this moment."""
        since_origin = moment - self._origin_seconds
        tick = max(0, ceil(since_origin / self._settings.interval_seconds) - 1)
        while self._time(tick) < moment:
            tick += 1
        return tick

    def _held_until(self) -> float:
        """Just before a wish leaves the window or a cooldown ends; -inf = now; inf = never."""
        if not self._is_calm:
            return -inf
        memory, now = self._memory, self._time(self._tick)
        policy = self._policy_at(now)
        ends = [inf]
        if len(memory.wishes) > 1:
            ends.append(memory.wishes[0][0] + policy.stabilization_seconds)
        if now - memory.grew_at < policy.up_cooldown_seconds:
            ends.append(memory.grew_at + policy.up_cooldown_seconds)
        if now - memory.shrank_at < policy.down_cooldown_seconds:
            ends.append(memory.shrank_at + policy.down_cooldown_seconds)
        soonest = min(ends)
        if soonest == inf:
            return inf
        return floor((soonest - self._origin_seconds) / self._settings.interval_seconds) - 1

    def _decide(self, tick: int) -> None:
        on, now = self._simulated, self._time(tick)
        self._tick = tick
        self._run.decisions += 1
        plan, self._memory = decide(self._look(now), self._memory, self._policy_at(now), now)
        self._is_calm = plan.desired == on.size
        if not self._is_calm:
            before = on.size
            on.resize(plan.desired, now)
            self._note(before, now)

    def _look(self, now: float) -> Situation:
        on, policy = self._simulated, self._policy_at(now)
        due = min(len(on.queue), 2 * policy.max_count + 1)
        room = None if policy.max_running is None else max(0, policy.max_running - on.busy)
        is_asked = policy.policy == "latency"
        work = on.work(now, self._settings.interval_seconds) if is_asked else None
        return Situation(due, on.busy, on.size, room=room, work=work)

    def _note(self, before: int, now: float) -> None:
        run, change = self._run, self._simulated.size - before
        if not change:
            return
        run.hired += max(0, change)
        run.retired += max(0, -change)
        run.turns += self._grew is not None and self._grew != (change > 0)
        self._grew = change > 0
        since, size = self._sizes[-1]
        run.worker_seconds += size * (now - since)
        self._sizes.append((now, self._simulated.size))


class Peaks:
    """The longest queue in each stretch of time."""

    def __init__(self, stretch_seconds: float) -> None:
        self.stretch_seconds = stretch_seconds
        self.peaks = array("q", [0])
        self._level = 0

    def note(self, now: float, level: int) -> None:
        stretch = int(now / self.stretch_seconds)
        missing = stretch + 1 - len(self.peaks)
        if missing > 0:
            self.peaks.extend([self._level] * missing)
        self.peaks[stretch] = max(self.peaks[stretch], level)
        self._level = level


class SimulatedQueue:
    """A crew of `size` takes waiting jobs at once. Of one moment, ends come before arrivals."""

    def __init__(self, trace: Trace, stretch_seconds: float) -> None:
        self.trace = trace
        self.now = 0.0
        self.size = self.busy = self.most_busy = self.longest_queue = 0
        self.queue: deque[int] = deque()
        self.peaks = Peaks(stretch_seconds)
        self.due = array("d", [nan]) * len(trace)
        self.waits = array("d", [nan]) * len(trace)
        self._arrived = 0  # of the first attempts
        self._first_due = [*(trace.due_seconds[one] for one in trace.firsts), inf]
        self._again: list[tuple[float, int]] = []  # a heap of further attempts
        self._ends: list[tuple[float, int]] = []  # a heap
        self._times, self._arrivals = ServiceTimes(), Arrivals()

    def work(self, now: float, horizon_seconds: float) -> Work:
        """What a node would know of it: kinds are measured as their attempts end."""
        kinds, runs = self.trace.kinds, self.trace.run_seconds
        again = sorted(one for one in self._again if one[0] <= now + horizon_seconds)
        in_line = [*((self.due[entry], entry) for entry in islice(self.queue, LINE_MAX)), *again]
        line = [
            Waiting(kind, len(alike), alike[-1][1], now - due)
            for (due, kind), found in groupby(in_line, lambda one: (one[0], kinds[one[1]]))
            if (alike := list(found))
        ]
        in_hand = [(kinds[entry], runs[entry] - (end - now)) for end, entry in self._ends]
        times = {kind: together([self._times.known(kind)]) for kind in self._times.kinds}
        return Work(
            Line(line, max(0, len(self.queue) - LINE_MAX)),
            in_hand,
            {kind: service for kind, service in times.items() if service is not None},
            self._arrivals.a_second(now),
        )

    def next_at(self) -> float:
        """When the next event happens; inf = never."""
        again = self._again[0][0] if self._again else inf
        end = self._ends[0][0] if self._ends else inf
        return min(self._first_due[self._arrived], again, end)

    def advance(self, until: float, *, stops_at_queue: bool = False) -> None:
        """Processes events up to then, or until a job has to wait."""
        while (at := self.next_at()) <= until and at < inf:
            self.now = at
            if self._ends and self._ends[0][0] <= at:
                self._end()
            else:
                self._arrive()
            if stops_at_queue and self.queue:
                return

    def resize(self, size: int, now: float) -> None:
        """New workers take waiting jobs. Only idle workers leave."""
        self.now = now
        self.size = max(size, self.busy)
        while self.queue and self.busy < self.size:
            self._start(self._leave_line())

    def _arrive(self) -> None:
        if self._again and self._again[0][0] <= self.now:
            _, entry = heappop(self._again)
        else:
            entry = self.trace.firsts[self._arrived]
            self._arrived += 1
        self.due[entry] = self.now
        if self.busy < self.size:
            self._start(entry)
            return
        self.queue.append(entry)
        self.longest_queue = max(self.longest_queue, len(self.queue))
        self.peaks.note(self.now, len(self.queue))

    def _start(self, entry: int) -> None:
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        self.waits[entry] = self.now - self.due[entry]
        self._arrivals.note(self.trace.kinds[entry], (self.waits[entry],), self.now)
        heappush(self._ends, (self.now + self.trace.run_seconds[entry], entry))

    def _end(self) -> None:
        _, entry = heappop(self._ends)
        self.busy -= 1
        self._times.add(self.trace.kinds[entry], (self.trace.run_seconds[entry],))
        follower = self.trace.next_attempt[entry]
        if follower != NONE:
            heappush(self._again, (self.now + self.trace.pause_seconds[entry], follower))
        if self.queue:
            self._start(self._leave_line())

    def _leave_line(self) -> int:
        entry = self.queue.popleft()
        self.peaks.note(self.now, len(self.queue))
        return entry


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


def settings_object(settings: ModelSettings) -> dict[str, Any]:
    policy = settings.policy
    return {
        "workers.default_count": policy.default_count,
        "workers.max_count": policy.max_count,
        "workers.scale_interval_ms": round(settings.interval_seconds * 1000),
        "scaling.policy": policy.policy,
        "scaling.max_wait_seconds": policy.promises.max_wait_seconds,
        "scaling.headroom": policy.promises.headroom,
        "scaling.up_cooldown_seconds": policy.up_cooldown_seconds,
        "scaling.down_cooldown_seconds": policy.down_cooldown_seconds,
        "scaling.stabilization_seconds": policy.stabilization_seconds,
        "scaling.hours": plain(settings.hours),
        "scaling.guard": plain(policy.guard),
        "scaling.mode": policy.mode,
        "scaling.up_step": policy.steps.up,
        "scaling.down_step": policy.steps.down,
        "scaling.tolerance_percent": policy.steps.tolerance_percent,
        "limits.max_running": policy.max_running or 0,
    }


def changed_settings(before: ModelSettings, after: ModelSettings) -> Mapping[str, tuple[Any, Any]]:
    """Before and after, by name."""
    old, new = settings_object(before), settings_object(after)
    return {name: (old[name], new[name]) for name in old if old[name] != new[name]}
