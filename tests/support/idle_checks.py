"""The idle check that an engine without one would have, were its hints those of PostgreSQL."""

from __future__ import annotations

from uuid import UUID

from musterd.store.engine import Engine
from musterd.store.lifecycle import JobState
from musterd.store.queue import IdleCheck


async def idle_check_of(engine: Engine, me: UUID) -> IdleCheck | None:
    if all(node.id != me for node in await engine.nodes.all()):
        return None
    view, states = await engine.queue.observe(1), (await engine.queue.counts()).by_state
    is_due = view.due > 0 and not view.paused
    in_hand = states.get(JobState.ASSIGNED, 0) + states.get(JobState.RUNNING, 0)
    rests = not (is_due or view.parked or in_hand)
    return IdleCheck(rests, is_due, await engine.queue.next_due_seconds())
