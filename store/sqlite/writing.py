"""What changes jobs. Each function is one transaction, on the store's clock."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from musterd.store.errors import InputRefused
from musterd.store.job import (
    Claim,
    ClaimRequest,
    Exchange,
    Hold,
    JobState,
    NewJob,
    Settlement,
)
from musterd.store.sqlite import rows
from musterd.store.sqlite.database import Database


def enqueue(database: Database, jobs: Sequence[NewJob]) -> list[int]:
    with database.writing("enqueue") as now:
        return [
            _insert(database, job, now, f"job {number} of {len(jobs)} ({job.kind!r})")
            for number, job in enumerate(jobs, start=1)
        ]


def _insert(database: Database, job: NewJob, now: int, which: str) -> int:
    try:
        made = database.execute("enqueue", rows.new_job(job, now)).lastrowid
    except (sqlite3.IntegrityError, UnicodeEncodeError, OverflowError, InputRefused) as error:
        raise InputRefused(f"enqueue: {database.where}: {which}: {error}") from error
    assert made is not None  # an insert that raised nothing made a row
    return made


def exchange(
    database: Database,
    settlements: Sequence[Settlement],
    claim: ClaimRequest | None,
    now_local: float,
) -> Exchange:
    with database.writing("settling and claiming") as now:
        rejected = frozenset(
            one.id
            for one in settlements
            if not end_attempt(database, rows.settlement(one, now_local, now))
        )
        claims = _claim(database, claim, now) if claim is not None else []
    return Exchange(rejected, claims)


def end_attempt(database: Database, ending: rows.Params) -> bool:
    """Writes how one attempt ended. False = its lease is lost: nothing was written."""
    if ending["state"] != JobState.QUEUED:
        return database.execute("settle", ending).rowcount == 1
    if database.execute("record_attempt", ending).rowcount == 0:
        return False
    return database.execute("requeue", ending).rowcount == 1


def _claim(database: Database, request: ClaimRequest, now: int) -> list[Claim]:
    due = _first_due(database, request.batch, now)
    common = rows.claimed(request, now)
    claims: list[Claim] = []
    for place, row in enumerate(due):
        job_id, kind, payload, attempt, max_attempts, forgiven, run_at = row
        worker = request.workers[place] if place < len(request.workers) else None
        database.execute("claim", {**common, "id": job_id, "worker": worker})
        fields = (job_id, kind, payload, attempt + 1, max_attempts, forgiven)
        claims.append(rows.claim((*fields, now - run_at, worker), request.token))
    return claims


def _first_due(database: Database, count: int, now: int) -> list[rows.Row]:
    """The first due jobs in claim order, by priority: what is not yet due costs one probe each."""
    due: list[rows.Row] = []
    if count <= 0 or database.rows("queue_state")[0][0] is not None:
        return due
    for priority, _ in database.execute("due_priorities", {"now": now}):
        wanted = {"priority": priority, "now": now, "count": count - len(due)}
        due += database.rows("due_jobs", wanted)
        if len(due) >= count:
            break
    return due


def renew(
    database: Database, holds: Sequence[Hold], lease_seconds: float, now_local: float
) -> frozenset[int]:
    with database.writing("renewing leases") as now:
        lease_expires_at = now + rows.microseconds(lease_seconds)
        return frozenset(
            hold.id
            for hold in holds
            if database.execute(
                "renew",
                {
                    "id": hold.id,
                    "token": hold.token.bytes,
                    "worker": hold.worker,
                    "now": now,
                    "lease_expires_at": lease_expires_at,
                    "started_at": rows.at(hold.started_local, now_local, now),
                },
            ).rowcount
        )


def pause_queue(database: Database, by: str) -> bool:
    with database.writing("pausing the queue") as now:
        return database.execute("pause_queue", {"now": now, "by": by}).rowcount == 1


def resume_queue(database: Database) -> bool:
    with database.writing("resuming the queue"):
        return database.execute("resume_queue").rowcount == 1
