"""What changes jobs. Each function is one transaction, on the store's clock."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from musterd.store.errors import InputRefused
from musterd.store.job import (
    Action,
    AttemptOutcome,
    ClaimRequest,
    Enqueued,
    Exchange,
    Hold,
    JobState,
    NewJob,
    ProgressNote,
    Renewal,
    Request,
    Settlement,
)
from musterd.store.lifecycle import CANCELED_ON_REQUEST, PAUSED_ON_REQUEST
from musterd.store.sqlite import rows
from musterd.store.sqlite.claiming import take
from musterd.store.sqlite.database import Database
from musterd.store.sqlite.targeting import hand_over

GOES_ON = frozenset({JobState.QUEUED, JobState.PAUSED})


def enqueue(database: Database, jobs: Sequence[NewJob]) -> list[Enqueued]:
    with database.writing("enqueue") as now:
        return [
            _place(database, job, now, f"job {number} of {len(jobs)} ({job.kind!r})")
            for number, job in enumerate(jobs, start=1)
        ]


def _place(database: Database, job: NewJob, now: int, which: str) -> Enqueued:
    if job.dedup_key is None:
        return Enqueued(_insert(database, job, now, which), is_new=True)
    holder = database.rows("key_holder", {"key": job.dedup_key, "now": now})
    if holder:
        return Enqueued(holder[0][0], is_new=False)
    made = _insert(database, job, now, which)
    database.execute("take_key", rows.key_of(job, made, now))
    return Enqueued(made, is_new=True)


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
) -> tuple[Exchange, bool]:
    """And whether there is work now that this exchange did not claim."""
    with database.writing("settling and claiming") as now:
        rejected: set[int] = set()
        turned: dict[int, JobState] = {}
        for one in settlements:
            state = end_attempt(database, rows.settlement(one, now_local, now))
            if state is None:
                rejected.add(one.id)
            elif state is not one.state:
                turned[one.id] = state
        targets = {one.target for one in settlements if one.target is not None}
        passed_on = [hand_over(database, target) for target in sorted(targets)]
        claims, aside = take(database, claim, now) if claim is not None else ([], 0)
    exchange_ = Exchange(frozenset(rejected), claims, aside, turned)
    return exchange_, claim is None and any(passed_on)


def end_attempt(database: Database, ending: rows.Params) -> JobState | None:
    """Writes how one attempt ended; gives what its job became. None = its lease is lost: nothing
    was written.

    A job that would go on, but for a request to cancel or to pause it, ends or pauses instead.
    """
    if ending["state"] in GOES_ON:
        ending = _on_request(database, ending)
    state = JobState(ending["state"])
    if state is JobState.QUEUED and database.execute("record_attempt", ending).rowcount == 0:
        return None
    how = "requeue" if state is JobState.QUEUED else "settle"
    return state if database.execute(how, ending).rowcount == 1 else None


def _on_request(database: Database, ending: rows.Params) -> rows.Params:
    found = database.rows("request_of", ending)
    if not found or found[0][0] is None:
        return ending
    cancel = found[0][0] == Action.CANCEL
    outcome = ending["outcome"]
    if outcome == AttemptOutcome.RETRYING:
        outcome = AttemptOutcome.FAILED.value
    return {
        **ending,
        "state": (JobState.CANCELED if cancel else JobState.PAUSED).value,
        "reason": CANCELED_ON_REQUEST if cancel else PAUSED_ON_REQUEST,
        "outcome": outcome,
    }


def renew(
    database: Database, holds: Sequence[Hold], lease_seconds: float, now_local: float
) -> Renewal:
    requests: dict[int, Request | None] = {}
    with database.writing("renewing leases") as now:
        lease_expires_at = now + rows.microseconds(lease_seconds)
        for hold in holds:
            params = {
                "id": hold.id,
                "token": hold.token.bytes,
                "worker": hold.worker,
                "now": now,
                "lease_expires_at": lease_expires_at,
                "started_at": rows.at(hold.started_local, now_local, now),
            }
            if database.execute("renew", params).rowcount:
                requests[hold.id] = database.rows("request_of", params)[0][0]
    return Renewal(
        frozenset(requests), {id_: asked for id_, asked in requests.items() if asked is not None}
    )


def note_progress(database: Database, notes: Sequence[ProgressNote]) -> frozenset[int]:
    with database.writing("noting progress"):
        return frozenset(
            note.id
            for note in notes
            if database.execute("note_progress", rows.progress_note(note)).rowcount
        )


def pause_queue(database: Database, by: str) -> bool:
    with database.writing("pausing the queue") as now:
        return database.execute("pause_queue", {"now": now, "by": by}).rowcount == 1


def resume_queue(database: Database) -> bool:
    with database.writing("resuming the queue"):
        return database.execute("resume_queue").rowcount == 1
