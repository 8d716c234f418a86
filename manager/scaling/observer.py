"""What a supervisor sees at a tick: the queue by one bounded query, the jobs in hand, and the slots
of schedules that are about to come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

import attrs
import trio

from musterd.manager.scaling.decision import ScalingPolicy
from musterd.manager.scaling.latency import NO_LINE, Work, with_handover
from musterd.manager.scaling.service_times import Arrivals, Measured
from musterd.store.engine import Engine
from musterd.store.errors import StoreError
from musterd.store.queue import Line, QueueView, SpareCapacity, Waiting
from musterd.workers.claiming.desk import Desk

OVERDUE_INTERVALS = 2  # the node that was to take a job has decided by then
STALE_SECONDS = 5.0  # an answer that took longer tells of another time
NO_SPARE = SpareCapacity()
REUNION_SECONDS = 3.0  # after the store was away, all nodes have given a sign of life by then


def for_both(policy: ScalingPolicy, candidate: ScalingPolicy | None) -> ScalingPolicy:
    """What has to be observed so that both can decide, and the slack of promises can be said."""
    is_asked = policy.promises.are_made
    if candidate is not None:
        is_asked = is_asked or candidate.policy == "latency"
        policy = attrs.evolve(policy, max_count=max(policy.max_count, candidate.max_count))
    return attrs.evolve(policy, policy="latency") if is_asked else policy


@attrs.frozen
class Observation:
    """`due` None = unknown. `overdue`: jobs are due that some node should have taken by now."""

    due: int | None
    others: SpareCapacity = NO_SPARE  # what the other nodes have
    lot: int = 0
    overdue: bool = False
    room: int | None = None  # how many more jobs may run on all nodes; None = any number
    work: Work | None = None  # None = the policy does not ask


@attrs.define(eq=False)
class QueueObserver:
    """`me` is the supervisor's node."""

    engine: Engine
    desk: Desk
    me: UUID
    measured: Measured
    arrivals: Arrivals
    slots_within: Callable[[float], Sequence[Waiting]]  # of schedules, so many seconds ahead
    _others: SpareCapacity = attrs.field(default=NO_SPARE, init=False)  # as last seen
    _due_since_local: float | None = attrs.field(default=None, init=False)
    _is_blind: bool = attrs.field(default=False, init=False)
    _reunion_until_local: float = attrs.field(default=float("-inf"), init=False)

    async def look(self, policy: ScalingPolicy, interval_seconds: float) -> Observation:
        """Counts due jobs up to what could matter to all nodes."""
        asked_local = trio.current_time()
        if self.desk.has_run_dry(interval_seconds):
            self._due_since_local = None
            return Observation(0, self._others, work=self._work(policy, NO_LINE))
        try:
            if policy.policy == "latency":
                await self.measured.hear_others()
            view = await self._ask(policy)
        except StoreError:
            self._is_blind = True
            return Observation(None, self._others)
        if trio.current_time() - asked_local > max(STALE_SECONDS, interval_seconds):
            self._is_blind = True
            return Observation(None, self._others)
        self._others = self._seen(view.others)
        # Where all that is due is parked, one worker has to look whether there is room.
        due = 0 if view.paused else max(view.due, int(view.parked))
        overdue = self._waits_seconds(due, view) >= OVERDUE_INTERVALS * interval_seconds
        work = self._work(policy, view.line or NO_LINE)
        return Observation(due, self._others, view.lot, overdue, view.room, work)

    def _work(self, policy: ScalingPolicy, line: Line) -> Work | None:
        if policy.policy != "latency":
            return None
        now, held = trio.current_time(), self.desk.held.values()
        in_hand = [
            (one.claim.kind, 0.0 if one.started_local is None else now - one.started_local)
            for one in held
            if not one.settling
        ]
        slots = self.slots_within(policy.promises.horizon_seconds)
        times = with_handover(self.measured.times(), self.desk.handover.seconds)
        return Work(line, in_hand, times, self.arrivals.a_second(now), slots)

    async def _ask(self, policy: ScalingPolicy) -> QueueView:
        most, promises = policy.max_running, policy.promises
        horizon = promises.horizon_seconds if policy.policy == "latency" else None
        bound = 2 * (policy.max_count + self._others.free) + 1
        view = await self.engine.queue.observe(bound, self.me, most, horizon)
        if view.due < bound or view.others.free <= self._others.free:
            return view
        bound = 2 * (policy.max_count + view.others.free) + 1
        return await self.engine.queue.observe(bound, self.me, most, horizon)

    def _seen(self, room: SpareCapacity) -> SpareCapacity:
        """After the store was away, the others are assumed unchanged for a moment."""
        now = trio.current_time()
        if self._is_blind:
            self._is_blind, self._reunion_until_local = False, now + REUNION_SECONDS
        is_reunion = now < self._reunion_until_local
        return self._others if is_reunion and room.free < self._others.free else room

    def _waits_seconds(self, due: int, view: QueueView) -> float:
        """How long jobs have been due that nobody takes, apart from pauses of the queue."""
        now = trio.current_time()
        if not due:
            self._due_since_local = None
            return 0.0
        if self._due_since_local is None:
            self._due_since_local = now
        watched_seconds = now - self._due_since_local
        return min(watched_seconds, view.oldest_due_seconds) if view.due else watched_seconds
