"""Acting on jobs, one by one and many at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from musterd.store.control import (
    BulkResult,
    Candidate,
    ControlResult,
    Facts,
    SelectedJobs,
    Selection,
    fits,
)
from musterd.store.lifecycle import EFFECTS, LEASED, REASONS, Action, JobState
from musterd.store.sqlite import rows
from musterd.store.sqlite.claiming import hand_over
from musterd.store.sqlite.database import Database, Part, called
from musterd.store.sqlite.job_events import About, JobEvents, call_out
from musterd.store.sqlite.rows import ID_MAX

EVENT_OF = {Action.RESUME: "resumed", Action.RELEASE: "released", Action.CLEAR: "cleared"}
IN_HAND = "(state = 'assigned' or state = 'running')"


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
    _record(events, action, effect, (job_id, before))
    if target is not None:
        hand_over(database, target)
    return ControlResult(True, state, effect, requested=False, allowed=True)


def _record(events: JobEvents, action: Action, effect: JobState, job: tuple[int, Stand]) -> None:
    job_id, before = job
    about = About(job_id, before.kind, before.target)
    if effect in (JobState.CANCELED, JobState.PAUSED):
        about = about._replace(attempt=before.attempt or None)
        events.record(f"job.{effect}", about, {"reason": REASONS[action]})
    elif action is not Action.CLEAR or before.cleared_at is None:  # the second time nothing happens
        events.record(f"job.{EVENT_OF[action]}", about)
    if effect is JobState.CANCELED:
        call_out(events, about, f"job.{effect}", before.webhook)


def select_jobs(database: Database, which: Selection, after_id: int, span: int) -> SelectedJobs:
    until = ID_MAX if which.until_id is None else min(which.until_id, ID_MAX)
    params = {"after": after_id, "until": until, "count": span}
    with database.reading("selecting jobs") as at:
        found = [
            row
            for part in _parts(which)
            for row in database.execute_filled("select_jobs", params, which=part)
        ]
    looked = sorted(found)[:span]
    now = rows.moment_at(at)
    fitting = [
        Candidate(row[0], row[2], JobState(row[1]))
        for row in looked
        if fits(which, _facts(row), now)
    ]
    return SelectedJobs(fitting, looked[-1][0] if looked else None)


def control_many(
    database: Database, action: Action, ids: Sequence[int], which: Selection
) -> tuple[BulkResult, bool]:
    """Also says whether there are more jobs to be claimed now."""
    done: set[int] = set()
    requested: set[int] = set()
    refused: set[int] = set()
    freed = False
    with database.writing(f"{action.value} many jobs") as at:
        now, events = rows.moment_at(at), JobEvents(database, at)
        for job_id in ids:
            found = database.rows("facts_of", {"id": job_id})
            if not found or not fits(which, _facts(found[0]), now):
                continue
            result = act(events, action, job_id)
            (done if result.allowed else refused).add(job_id)
            if result.requested:
                requested.add(job_id)
            freed = freed or result.state_after is JobState.QUEUED
        events.write()
    step = BulkResult(frozenset(done), frozenset(requested), frozenset(refused), frozenset())
    return step, freed


def _parts(which: Selection) -> list[str]:
    """One look each, along its own index."""
    if which.walks:
        return ["true"]
    parts = [f"state = '{state.value}'" for state in which.resting]
    return [*parts, IN_HAND] if which.leased else parts


def _facts(row: rows.Row) -> Facts:
    _, state, kind, target, priority, created_at, finished_at, cleared_at = row
    ended, cleared = rows.moment(finished_at), rows.moment(cleared_at)
    return Facts(
        JobState(state), kind, target, priority, rows.moment_at(created_at), ended, cleared
    )


class SqliteControl(Part):
    """See `store.control.Control`."""

    select = called(select_jobs)

    async def apply(self, action: Action, job_id: int) -> ControlResult:
        done = await self.call(control, action, job_id)
        if done.requested:
            self._hints.ring(job_id)
        elif done.allowed:
            self._hints.ring()
        return done

    async def apply_many(self, action: Action, ids: Sequence[int], which: Selection) -> BulkResult:
        step, freed = await self.call(control_many, action, ids, which)
        for job_id in step.requested:
            self._hints.ring(job_id)
        if freed:
            self._hints.ring()
        return step
