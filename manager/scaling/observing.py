"""What the supervisor sees of the queue and of the other nodes, and what it makes of having seen
nothing for a while.
"""

from __future__ import annotations

from uuid import UUID

import attrs
import trio

from musterd.manager.scaling.decision import ScalingPolicy
from musterd.store.engine import Engine
from musterd.store.errors import StoreError
from musterd.store.queue import QueueView, Room
from musterd.workers.claiming.desk import Desk

OVERDUE_INTERVALS = 2  # whoever was to take a job has decided by then
STALE_SECONDS = 5.0  # an answer that took longer tells of another time
NO_ROOM = Room()
REUNION_SECONDS = 3.0  # after the store was away, all nodes have given a sign of life by then


@attrs.frozen
class Observation:
    """`due` None = the store did not say. `overdue`: jobs are due that somebody should have taken
    by now.
    """

    due: int | None
    others: Room = NO_ROOM  # what the other nodes have
    lot: int = 0
    overdue: bool = False
    room: int | None = None  # how many more jobs may run on all nodes; None = any number


@attrs.define(eq=False)
class QueueObserver:
    """Owned by a supervisor; `me` is its node."""

    engine: Engine
    desk: Desk
    me: UUID | None
    _others: Room = attrs.field(default=NO_ROOM, init=False)  # as last seen
    _due_since_local: float | None = attrs.field(default=None, init=False)
    _is_blind: bool = attrs.field(default=False, init=False)
    _reunion_until_local: float = attrs.field(default=float("-inf"), init=False)

    async def look(self, policy: ScalingPolicy, interval_seconds: float) -> Observation:
        """Jobs that are due are counted up to what could matter to all nodes."""
        asked_local = trio.current_time()
        if self.desk.has_run_dry(interval_seconds):
            self._due_since_local = None
            return Observation(0, self._others)
        try:
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
        return Observation(due, self._others, view.lot, overdue, view.room)

    async def _ask(self, policy: ScalingPolicy) -> QueueView:
        most = policy.max_running
        bound = 2 * (policy.max_count + self._others.free) + 1
        view = await self.engine.queue.observe(bound, self.me, most)
        if view.due < bound or view.others.free <= self._others.free:
            return view
        bound = 2 * (policy.max_count + view.others.free) + 1
        return await self.engine.queue.observe(bound, self.me, most)

    def _seen(self, room: Room) -> Room:
        """Where the store was away nobody could give a sign of life: for a moment the others are
        believed to be as they were.
        """
        now = trio.current_time()
        if self._is_blind:
            self._is_blind, self._reunion_until_local = False, now + REUNION_SECONDS
        is_reunion = now < self._reunion_until_local
        return self._others if is_reunion and room.free < self._others.free else room

    def _waits_seconds(self, due: int, view: QueueView) -> float:
        """How long there has been a job that nobody takes. The age of the oldest alone does not
        say so: the queue may have been paused.
        """
        now = trio.current_time()
        if not due:
            self._due_since_local = None
            return 0.0
        if self._due_since_local is None:
            self._due_since_local = now
        watched_seconds = now - self._due_since_local
        return min(watched_seconds, view.oldest_due_seconds) if view.due else watched_seconds
