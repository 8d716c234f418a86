"""What may be done to one job from outside, beside its holder."""

from __future__ import annotations

from musterd.store.job import Action, ControlResult, JobState
from musterd.store.lifecycle import EFFECTS, LEASED, REASONS
from musterd.store.sqlite.database import Database
from musterd.store.sqlite.rows import ID_MAX
from musterd.store.sqlite.targeting import hand_over


def control(database: Database, action: Action, job_id: int) -> ControlResult:
    with database.writing(f"{action.value} a job") as now:
        return act(database, action, job_id, now)


def act(database: Database, action: Action, job_id: int, now: int) -> ControlResult:
    """As part of a write transaction."""
    found = database.rows("stand_of", {"id": job_id}) if abs(job_id) <= ID_MAX else []
    if not found:
        return ControlResult(False, None, None, requested=False, allowed=False)
    state, request, target = JobState(found[0][0]), *found[0][1:]
    effect = EFFECTS.get((action, state))
    # A cancel that was asked for is not taken back by a pause.
    if effect is None or (action is Action.PAUSE and request == Action.CANCEL):
        return ControlResult(True, state, state, requested=False, allowed=False)
    acting = {"id": job_id, "action": action.value, "now": now}
    if state in LEASED:
        database.execute("ask_holder", acting)
        return ControlResult(True, state, state, requested=True, allowed=True)
    if effect is state:
        database.execute("clear", acting)
    else:
        database.execute("keep_attempt", acting)
        moving = {**acting, "effect": effect.value, "reason": REASONS[action]}
        database.execute("control", moving)
    if target is not None:
        hand_over(database, target)
    return ControlResult(True, state, effect, requested=False, allowed=True)
