"""The simulation: supervisors on a virtual clock, with their own decisions. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import ceil, floor, inf

import attrs

from musterd.config.scaling import Guard
from musterd.manager.scaling.decision import (
    Memory,
    Others,
    ScalingPolicy,
    Situation,
    decide,
    others_of,
)
from musterd.manager.scaling.guard import Machine, is_on
from musterd.manager.scaling.hours import HoursClock, with_hours
from musterd.manager.scaling.latency import Work
from musterd.manager.scaling.model.line import SimulatedQueue
from musterd.manager.scaling.model.settings import ModelSettings, rest_size
from musterd.manager.scaling.model.trace import Trace
from musterd.manager.scaling.observer import OVERDUE_INTERVALS
from musterd.manager.scaling.upcoming import SlotClock

STRETCHES = 240  # of the trace's span, for the queue's curve
STRETCH_SECONDS_MIN = 0.001
MICRO = 1_000_000
EVENTS_A_STEP = 200
# While the guard held the crews of the trace, it holds these, whatever it looked at.
HELD, HOLDS = Machine(cpu_pressure_percent=100.0), Guard(cpu_pressure_percent=1.0)


@attrs.define
class Run:
    """The outcome of a trace. `sizes`: when the crews changed, and how large they were together."""

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
    """Runs the trace. The nodes start when it begins; the first decides when the real one did, the
    others at even distances in between.
    """
    simulation = Simulation(trace, settings)
    while not simulation.is_over():
        simulation.go_on()
    return simulation.run()


def _origin(interval_seconds: float, tick_seconds: float) -> float:
    """The last tick before the trace begins."""
    phase_seconds = tick_seconds % interval_seconds
    return phase_seconds - interval_seconds if phase_seconds else 0.0


@attrs.define(eq=False)
class _Supervisor:
    """That of one node. It ticks at `origin_seconds` and each interval from then on."""

    node: int
    interval_seconds: float
    origin_seconds: float
    seen: Situation = Situation(0, 0, 0)  # noqa: RUF009 - frozen; as it stays until something happens
    memory: Memory = attrs.field(factory=Memory)
    tick: int = 0  # the last one worked out
    is_calm: bool = False  # the last decision was to leave the crew as it is
    grew: bool | None = None  # the last change

    @property
    def now(self) -> float:
        return max(0.0, self.time(self.tick))  # nothing is known of what was before the trace

    def time(self, tick: int) -> float:
        return self.origin_seconds + tick * self.interval_seconds

    def tick_at(self, moment: float) -> int:
        """The first tick that sees this moment."""
        tick = max(0, ceil((moment - self.origin_seconds) / self.interval_seconds) - 1)
        while self.time(tick) < moment:
            tick += 1
        return tick

    def tick_before(self, moment: float) -> int:
        """The last tick before this moment."""
        return self.tick_at(moment) - 1

    def begin_anew(self, now: float) -> None:
        """An empty crew has had a hint: it decides now, and ticks are counted from then on."""
        self.origin_seconds, self.tick, self.is_calm = now, -1, False

    def held_until(self, policy: ScalingPolicy) -> float:
        """The tick before which a wish leaves the window or a cooldown ends; -inf = now; inf =
        never.
        """
        if not self.is_calm:
            return -inf
        memory, now = self.memory, self.now
        ends = [inf]
        if len(memory.wishes) > 1:
            ends.append(memory.wishes[0][0] + policy.window_seconds)
        if now - memory.grew_at < policy.up_cooldown_seconds:
            ends.append(memory.grew_at + policy.up_cooldown_seconds)
        if now - memory.shrank_at < policy.down_cooldown_seconds:
            ends.append(memory.shrank_at + policy.down_cooldown_seconds)
        soonest = min(ends)
        if soonest == inf:
            return inf
        return floor((soonest - self.origin_seconds) / self.interval_seconds) - 1


class Simulation:
    """All supervisors, without the ticks that cannot change anything. It goes on in small steps, so
    that a caller may do something else in between.
    """

    def __init__(self, trace: Trace, settings: ModelSettings) -> None:
        stretch = max(STRETCH_SECONDS_MIN, trace.span_seconds / STRETCHES)
        on = SimulatedQueue(trace, stretch, settings.nodes, settings.limits)
        policy = settings.policy
        if policy.mode != "active":  # no decision acts
            settings = attrs.evolve(settings, policy=attrs.evolve(policy, mode="hold"))
        self._settings = settings
        self._clock, self._slots = HoursClock(), SlotClock()
        self._begun_at = on.trace.begun_at.timestamp()
        self._simulated = on
        is_guarded = is_on(policy.guard)
        self._guard_turns = [at for both in on.trace.guarded for at in both if is_guarded]
        interval = settings.interval_seconds
        self._nodes = [
            _Supervisor(node, interval, _origin(interval, on.trace.tick_seconds + later))
            for node in range(settings.nodes)
            for later in [node * interval / settings.nodes]
        ]
        first = rest_size(self._policy_at(0.0))
        for each in self._nodes:
            on.resize(first, 0.0, each.node)
        self._sizes = [(0.0, on.size)]
        self._run = Run(on.waits, self._sizes, on.peaks.peaks, on.peaks.stretch_seconds)
        self._grew: bool | None = None  # the last change

    def is_over(self) -> bool:
        return self._is_at_rest and self._simulated.next_at() == inf and not self._simulated.queue

    def go_on(self) -> None:
        """Advances to the next tick that may change something, to the end of all jobs, or, while
        nobody has anything to decide, by so many events.
        """
        found = self._next_tick()
        if found is None:
            return
        one, tick = found
        moment = one.time(tick)
        for each in self._nodes:  # the last skipped tick of each renews what it wants
            last = tick - 1 if each is one else each.tick_before(moment)
            if last > each.tick:
                before = each.time(last)
                _, each.memory = decide(each.seen, each.memory, self._policy_at(before), before)
                each.tick = each.tick if each is one else last
        self._simulated.advance(moment)
        self._decide(one, tick)

    def run(self) -> Run:
        run, on = self._run, self._simulated
        latest = max(each.now for each in self._nodes)
        run.ended_seconds = max(on.trace.span_seconds, on.now, latest)
        since, size = self._sizes[-1]
        run.worker_seconds += size * (run.ended_seconds - since)
        run.longest_queue, run.most_busy = on.longest_queue, on.most_busy
        run.sizes = tuple(self._sizes)
        return run

    @property
    def _is_at_rest(self) -> bool:
        crews = self._simulated.crews
        return all(
            crews[each.node].size == rest_size(self._policy_at(each.now)) for each in self._nodes
        )

    def _policy_at(self, seconds: float) -> ScalingPolicy:
        settings = self._settings
        policy = settings.policy
        if not (settings.hours or self._guard_turns):
            return policy
        if self._is_guarded(seconds):
            policy = attrs.evolve(policy, guard=HOLDS)
        if not settings.hours:
            return policy
        return with_hours(policy, self._clock.in_force(settings.hours, self._begun_at + seconds))

    def _is_guarded(self, seconds: float) -> bool:
        """Whether the guard held the crews of the trace."""
        return bisect_right(self._guard_turns, seconds) % 2 == 1

    def _bounds_change_at(self, seconds: float) -> float:
        """When other bounds come into force, or the guard changes its mind; inf = never."""
        hours, turns = self._settings.hours, self._guard_turns
        change = self._clock.next_change(hours, self._begun_at + seconds) - self._begun_at
        place = bisect_right(turns, seconds)
        return min(change, turns[place]) if place < len(turns) else change

    def _next_tick(self) -> tuple[_Supervisor, int] | None:
        """None = all jobs have ended, or many, and nobody had to decide. Crews at rest stay so
        until a job waits; any other is examined when something happens or no longer holds it back.
        """
        on = self._simulated
        for each in self._nodes:
            each.seen = self._look(each, each.now)
        if self._is_at_rest and not on.queue:
            return self._leave_rest()
        return min(
            ((each, self._next_of(each)) for each in self._nodes),
            key=lambda found: found[0].time(found[1]),
        )

    def _leave_rest(self) -> tuple[_Supervisor, int] | None:
        on = self._simulated
        latest = max(self._nodes, key=lambda each: each.now)
        change = self._bounds_change_at(latest.now)
        seen_at = inf
        if change < inf:
            seen_at = min(each.time(each.tick_at(change)) for each in self._nodes)
        on.advance(seen_at, stops_at_queue=True, events_max=EVENTS_A_STEP)
        if not on.queue and on.next_at() <= seen_at and on.next_at() < inf:
            return None
        if not on.queue:
            end = max(latest.now, min(each.time(each.tick_at(on.now)) for each in self._nodes))
            if on.next_at() == inf and end < change:
                return None
        elif any(crew.size == 0 for crew in on.crews):
            for each in self._nodes:
                each.begin_anew(on.now)
            return self._nodes[0], 0
        moment = on.now if on.queue else change
        return min(
            ((each, max(each.tick + 1, each.tick_at(moment))) for each in self._nodes),
            key=lambda found: found[0].time(found[1]),
        )

    def _next_of(self, each: _Supervisor) -> int:
        on, soonest, now = self._simulated, each.tick + 1, each.now
        policy = self._policy_at(now)
        if policy.policy == "latency" or (on.queue and len(self._nodes) > 1):
            return soonest  # the longer jobs wait, the more workers they need
        change = self._bounds_change_at(now)
        found = min(each.held_until(policy), inf if change == inf else each.tick_at(change))
        if on.next_at() < inf:
            found = min(found, each.tick_at(on.next_at()))
        return max(soonest, int(found)) if abs(found) < inf else soonest

    def _decide(self, one: _Supervisor, tick: int) -> None:
        on, now = self._simulated, one.time(tick)
        one.tick = tick
        self._run.decisions += 1
        seen = self._look(one, now)
        plan, one.memory = decide(seen, one.memory, self._policy_at(now), now)
        one.is_calm = plan.desired == seen.size
        if not one.is_calm:
            before = on.size
            on.resize(plan.desired, now, one.node)
            self._note(on.size - before, now)

    def _look(self, one: _Supervisor, now: float) -> Situation:
        on, policy = self._simulated, self._policy_at(now)
        crew = on.crews[one.node]
        others, overdue = Others(), False
        bound = 2 * policy.max_count + 1
        if len(self._nodes) > 1:
            spare = on.spare(one.node, policy.max_count)
            bound += 2 * spare.free
            oldest = on.oldest_due
            lot = int((self._begun_at + oldest) * MICRO) if oldest < inf else 0
            others = others_of(spare, lot, all_busy=crew.busy >= crew.size)
            overdue = self._is_overdue(one, oldest, now)
        # A crew with idle workers has looked, and knows that there is no room.
        due = min(len(on.queue), bound) or int(on.is_parked and crew.busy >= crew.size)
        room = None if policy.max_running is None else max(0, policy.max_running - on.busy)
        work = self._work(one, policy, now) if policy.policy == "latency" else None
        machine = HELD if self._is_guarded(now) else None
        return Situation(due, crew.busy, crew.size, others, overdue, room, work, machine)

    def _is_overdue(self, one: _Supervisor, oldest: float, now: float) -> bool:
        """Whether jobs were due at two of its ticks before this one."""
        if oldest == inf or oldest > now:
            return False
        return now - one.time(one.tick_at(oldest)) >= OVERDUE_INTERVALS * self._interval

    @property
    def _interval(self) -> float:
        return self._settings.interval_seconds

    def _work(self, one: _Supervisor, policy: ScalingPolicy, now: float) -> Work:
        horizon = policy.promises.horizon_seconds
        slots = self._slots.within(self._settings.schedules, self._begun_at + now, horizon)
        return self._simulated.work(one.node, now, horizon, slots)

    def _note(self, change: int, now: float) -> None:
        run = self._run
        if not change:
            return
        run.hired += max(0, change)
        run.retired += max(0, -change)
        run.turns += self._grew is not None and self._grew != (change > 0)
        self._grew = change > 0
        since, size = self._sizes[-1]
        run.worker_seconds += size * (now - since)
        self._sizes.append((now, self._simulated.size))
