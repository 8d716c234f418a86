"""The outlook that an engine without one would have, were its hints those of PostgreSQL."""

from __future__ import annotations

from uuid import UUID

from musterd.store.engine import Engine
from musterd.store.job import JobState
from musterd.store.outlook import Outlook


async def outlook_of(engine: Engine, me: UUID) -> Outlook | None:
    if all(node.id != me for node in await engine.nodes()):
        return None
    view, states = await engine.observe(1), (await engine.counts()).by_state
    is_due = view.due > 0 and not view.paused
    in_hand = states.get(JobState.ASSIGNED, 0) + states.get(JobState.RUNNING, 0)
    rests = not (is_due or view.parked or in_hand)
    return Outlook(rests, is_due, await engine.next_due_seconds())
