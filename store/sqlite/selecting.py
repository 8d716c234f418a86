"""Bulk actions: looking jobs out by what they are, and acting on those that still fit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from musterd.store.control import BulkResult, Candidate, Facts, SelectedJobs, Selection, fits
from musterd.store.lifecycle import Action, JobState
from musterd.store.sqlite import rows
from musterd.store.sqlite.controlling import act
from musterd.store.sqlite.database import Database
from musterd.store.sqlite.job_events import JobEvents
from musterd.store.sqlite.rows import ID_MAX

LEASED = "(state = 'assigned' or state = 'running')"


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
    now = _moment(at)
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
        now, events = _moment(at), JobEvents(database, at)
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
    return [*parts, LEASED] if which.leased else parts


def _facts(row: rows.Row) -> Facts:
    _, state, kind, target, priority, created_at, finished_at, cleared_at = row
    ended, cleared = rows.moment(finished_at), rows.moment(cleared_at)
    return Facts(JobState(state), kind, target, priority, _moment(created_at), ended, cleared)


def _moment(at: int) -> datetime:
    moment = rows.moment(at)
    assert moment is not None  # a time was given
    return moment
