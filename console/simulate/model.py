"""One node's crew on a virtual clock: the supervisor ticks, decides and resizes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, inf

import attrs

from musterd.console.simulate.floor import Floor
from musterd.console.simulate.trace import Trace
from musterd.manager.scaling.decision import Memory, ScalingPolicy, Seen, decide

STRETCHES = 240  # of the trace's span, for the queue's curve
STRETCH_SECONDS_MIN = 0.001


@attrs.frozen
class Rules:
    """What of the settings the model knows: the supervisor's policy, and how often it decides."""

    policy: ScalingPolicy
    interval_seconds: float

    @property
    def rest_size(self) -> int:
        """The crew at the start, and whenever there is nothing to do."""
        return min(self.policy.default_count, self.policy.bound)


@attrs.frozen
class Run:
    """What became of a trace. `sizes`: from when on the crew had which size. `ended`: all jobs are
    done, and the crew rests.
    """

    waits: Sequence[float]  # of each attempt, in the trace's order
    sizes: Sequence[tuple[float, int]]
    queue_peaks: Sequence[int]  # the longest queue of each stretch
    stretch_seconds: float
    longest_queue: int
    most_busy: int
    hired: int
    retired: int
    turns: int  # times that growing was followed by shrinking, or the other way round
    worker_seconds: float
    ended_seconds: float
    decisions: int  # ticks that were worked out; all others could have changed nothing


def simulate(trace: Trace, rules: Rules) -> Run:
    """Runs the trace. The node starts where the trace begins, and ticks from then on."""
    stretch = max(STRETCH_SECONDS_MIN, trace.span_seconds / STRETCHES)
    scaler = _Scaler(rules, Floor(trace, stretch))
    scaler.start()
    while not scaler.is_over():
        scaler.go_on()
    return scaler.run()


class _Scaler:
    """The supervisor: each tick of its grid, but for those that can change nothing."""

    def __init__(self, rules: Rules, on: Floor) -> None:
        self._rules = rules
        self._floor = on
        self._memory = Memory()
        self._tick = 0  # the last one worked out
        self._sizes: list[tuple[float, int]] = []
        self._hired = self._retired = self._turns = self._decisions = 0
        self._grew: bool | None = None  # the last change
        self._worker_seconds = 0.0
        self._is_calm = False  # the last decision was to leave the crew as it is
        self._seen = self._look()

    def start(self) -> None:
        size = self._rules.rest_size
        self._floor.resize(size, 0.0)
        self._sizes.append((0.0, size))

    def is_over(self) -> bool:
        at_rest = self._floor.size == self._rules.rest_size
        return at_rest and self._floor.next_at() == inf and not self._floor.queue

    def go_on(self) -> None:
        """To the next tick that may change something; at the end, to the end of all jobs."""
        tick = self._next_tick()
        if tick is None:
            return
        policy = self._rules.policy
        if tick > self._tick + 1:  # the last of those that are passed over renews its wish
            _, self._memory = decide(self._seen, self._memory, policy, self._time(tick - 1))
        self._floor.advance(self._time(tick))
        self._decide(tick)

    def run(self) -> Run:
        on = self._floor
        ended = max(on.trace.span_seconds, on.now, self._time(self._tick))
        since, size = self._sizes[-1]
        return Run(
            waits=on.waits,
            sizes=tuple(self._sizes),
            queue_peaks=on.peaks.peaks,
            stretch_seconds=on.peaks.stretch_seconds,
            longest_queue=on.longest_queue,
            most_busy=on.most_busy,
            hired=self._hired,
            retired=self._retired,
            turns=self._turns,
            worker_seconds=self._worker_seconds + size * (ended - since),
            ended_seconds=ended,
            decisions=self._decisions,
        )

    def _time(self, tick: int) -> float:
        return tick * self._rules.interval_seconds

    def _next_tick(self) -> int | None:
        """None = all jobs ended before there was anything to decide.

        A crew of its least size stays so until a job has to wait. Any other is looked at when
        something has happened, or when what held it back has passed.
        """
        on, soonest = self._floor, self._tick + 1
        self._seen = self._look()  # as it stays until then
        if on.size == self._rules.rest_size and not on.queue:
            on.advance(inf, stops_at_queue=True)
            return max(soonest, self._tick_at(on.now)) if on.queue else None
        found = self._held_until()
        if on.next_at() < inf:
            found = min(found, self._tick_at(on.next_at()))
        return max(soonest, int(found)) if abs(found) < inf else soonest

    def _tick_at(self, moment: float) -> int:
        """The first tick that sees what happens then."""
        tick = max(0, ceil(moment / self._rules.interval_seconds) - 1)
        while self._time(tick) < moment:
            tick += 1
        return tick

    def _held_until(self) -> float:
        """A tick or so before the one at which a wish leaves the window or a cooldown ends. -inf =
        each tick counts; inf = nothing holds the crew back.
        """
        if not self._is_calm:
            return -inf
        memory, policy, now = self._memory, self._rules.policy, self._time(self._tick)
        ends = [inf]
        if len(memory.wishes) > 1:
            ends.append(memory.wishes[0][0] + policy.stabilization_seconds)
        if now - memory.grew_at < policy.up_cooldown_seconds:
            ends.append(memory.grew_at + policy.up_cooldown_seconds)
        if now - memory.shrank_at < policy.down_cooldown_seconds:
            ends.append(memory.shrank_at + policy.down_cooldown_seconds)
        soonest = min(ends)
        return inf if soonest == inf else floor(soonest / self._rules.interval_seconds) - 1

    def _decide(self, tick: int) -> None:
        on, now = self._floor, self._time(tick)
        self._tick, self._decisions = tick, self._decisions + 1
        plan, self._memory = decide(self._look(), self._memory, self._rules.policy, now)
        self._is_calm = plan.desired == on.size
        if not self._is_calm:
            before = on.size
            on.resize(plan.desired, now)
            self._note(before, now)

    def _look(self) -> Seen:
        on, most = self._floor, self._rules.policy.max_running
        due = min(len(on.queue), 2 * self._rules.policy.max_count + 1)
        room = None if most is None else max(0, most - on.busy)
        return Seen(due, on.busy, on.size, room=room)

    def _note(self, before: int, now: float) -> None:
        change = self._floor.size - before
        if not change:
            return
        self._hired += max(0, change)
        self._retired += max(0, -change)
        self._turns += self._grew is not None and self._grew != (change > 0)
        self._grew = change > 0
        since, size = self._sizes[-1]
        self._worker_seconds += size * (now - since)
        self._sizes.append((now, self._floor.size))
