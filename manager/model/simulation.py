"""The simulation: a supervisor on a virtual clock, with its own decisions. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, inf

import attrs

from musterd.config.scaling import Hours
from musterd.manager.model.line import SimulatedQueue
from musterd.manager.model.trace import Trace
from musterd.manager.scaling.decision import Memory, ScalingPolicy, Situation, decide
from musterd.manager.scaling.hours import HoursClock, with_hours

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
    """Runs the trace. The node starts when the trace begins, and decides when the real one did."""
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
        phase_seconds = on.trace.tick_seconds % settings.interval_seconds
        self._origin_seconds = phase_seconds - settings.interval_seconds if phase_seconds else 0.0
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
