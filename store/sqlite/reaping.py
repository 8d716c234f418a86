"""Ends leases that have run out, by the rules of their kinds."""

from __future__ import annotations

import json
from typing import Any

from musterd.store.leases import Reaped, ReapRequest, ReapRule
from musterd.store.lifecycle import REASONS, Action, AttemptOutcome, JobState
from musterd.store.shown import time_text
from musterd.store.sqlite import rows
from musterd.store.sqlite.claiming import unpark_uncapped
from musterd.store.sqlite.database import Database
from musterd.store.sqlite.job_events import LOST, NO_PROGRESS, JobEvents
from musterd.store.sqlite.targeting import hand_over
from musterd.store.sqlite.writing import end_attempt

ON_LEASE_LOST = {
    "requeue": JobState.QUEUED,
    "fail": JobState.FAILED,
    "pause": JobState.PAUSED,
}

ON_REQUEST = {Action.CANCEL: JobState.CANCELED, Action.PAUSE: JobState.PAUSED}


def reap(database: Database, request: ReapRequest) -> list[Reaped]:
    with database.writing("reaping") as now:
        unpark_uncapped(database, {kind for kind, rule in request.rules.items() if not rule.capped})
        expired = database.rows("reap", {"now": now, "count": request.batch})
        events = JobEvents(database, now)
        reaped = [_end(events, row, request) for row in expired]
        events.write()
        for target in sorted({row[9] for row in expired if row[9] is not None}):
            hand_over(database, target)
        return reaped


def expire_all(database: Database) -> int:
    """Lets every lease run out now. For a daemon alone on its file: who held them is dead."""
    with database.writing("giving a dead daemon's leases back") as now:
        return database.execute("expire_all", {"now": now}).rowcount


def judge(rule: ReapRule, attempt: int, max_attempts: int | None, forgiven: int) -> JobState:
    """What becomes of a job whose lease ran out. Once its attempts are used up it has failed."""
    budget = rule.max_attempts + forgiven if max_attempts is None else max_attempts
    return JobState.FAILED if attempt >= budget else ON_LEASE_LOST[rule.on_lease_lost]


def _end(events: JobEvents, row: rows.Row, request: ReapRequest) -> Reaped:
    job_id, kind, attempt, max_attempts, forgiven, node, lease_expires_at, token, asked = row[:9]
    rule = request.rules.get(kind, request.default)
    state = ON_REQUEST[asked] if asked else judge(rule, attempt, max_attempts, forgiven)
    ran_out = time_text(rows.moment(lease_expires_at), "milliseconds")
    message = f"attempt {attempt}: node {node} did not renew its lease, which ran out at {ran_out}"
    ending: dict[str, Any] = {
        "id": job_id,
        "token": token,
        "state": state.value,
        "outcome": AttemptOutcome.LOST.value,
        "worker": None,
        "run_at": None,
        "started_at": None,
        "finished_at": events.now,
        "result": None,
        "error": json.dumps({"type": "lease_lost", "message": message}),
        "reason": REASONS[asked] if asked else LOST if state is JobState.PAUSED else None,
        "forgive": 0,
        "log": None,
        "spent": None,
        **NO_PROGRESS,
    }
    end_attempt(events, ending)
    return Reaped(job_id, kind, attempt, node, state)
