"""What may be done to one job from outside, beside its holder."""

from __future__ import annotations

from typing import NamedTuple

from musterd.store.control import ControlResult
from musterd.store.lifecycle import EFFECTS, LEASED, REASONS, Action, JobState
from musterd.store.sqlite.database import Database
from musterd.store.sqlite.job_events import About, JobEvents, call_out
from musterd.store.sqlite.rows import ID_MAX
from musterd.store.sqlite.targeting import hand_over

TOLD = {Action.RESUME: "resumed", Action.RELEASE: "released", Action.CLEAR: "cleared"}


class Stand(NamedTuple):
    """One job before it is acted on."""

    state: str
    request: str | None
    target: str | None
    kind: str
    attempt: int
    cleared_at: int | None
    webhook: str | None


def control(database: Database, action: Action, job_id: int) -> ControlResult:
    with database.writing(f"{action.value} a job") as now:
        events = JobEvents(database, now)
        done = act(events, action, job_id)
        events.write()
    return done


def act(events: JobEvents, action: Action, job_id: int) -> ControlResult:
    """As part of a write transaction."""
    database = events.database
    found = database.rows("stand_of", {"id": job_id}) if abs(job_id) <= ID_MAX else []
    if not found:
        return ControlResult(False, None, None, requested=False, allowed=False)
    before = Stand._make(found[0])
    state, request, target = JobState(before.state), before.request, before.target
    effect = EFFECTS.get((action, state))
    # A cancel that was asked for is not taken back by a pause.
    if effect is None or (action is Action.PAUSE and request == Action.CANCEL):
        return ControlResult(True, state, state, requested=False, allowed=False)
    acting = {"id": job_id, "action": action.value, "now": events.now}
    if state in LEASED:
        database.execute("ask_holder", acting)
        return ControlResult(True, state, state, requested=True, allowed=True)
    if effect is state:
        database.execute("clear", acting)
    else:
        database.execute("keep_attempt", acting)
        moving = {**acting, "effect": effect.value, "reason": REASONS[action]}
        database.execute("control", moving)
    _tell(events, action, effect, (job_id, before))
    if target is not None:
        hand_over(database, target)
    return ControlResult(True, state, effect, requested=False, allowed=True)


def _tell(events: JobEvents, action: Action, effect: JobState, job: tuple[int, Stand]) -> None:
    job_id, before = job
    about = About(job_id, before.kind, before.target)
    if effect in (JobState.CANCELED, JobState.PAUSED):
        about = about._replace(attempt=before.attempt or None)
        events.record(f"job.{effect}", about, {"reason": REASONS[action]})
    elif action is not Action.CLEAR or before.cleared_at is None:  # twice cleared is once told
        events.record(f"job.{TOLD[action]}", about)
    if effect is JobState.CANCELED:
        call_out(events, about, f"job.{effect}", before.webhook)
