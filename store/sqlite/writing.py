"""What changes jobs. Each function is one transaction, on the store's clock."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence

from musterd.store.errors import InputRefused
from musterd.store.jobs import Enqueued, NewJob
from musterd.store.leases import ClaimRequest, Exchange, Hold, ProgressNote, Renewal, Settlement
from musterd.store.lifecycle import (
    CANCELED_ON_REQUEST,
    PAUSED_ON_REQUEST,
    AttemptOutcome,
    JobState,
    Request,
)
from musterd.store.phases import KindRule
from musterd.store.sqlite import rows
from musterd.store.sqlite.claiming import take
from musterd.store.sqlite.database import Database
from musterd.store.sqlite.job_events import (
    JobEvents,
    held,
    how_far,
    record_end,
    record_new,
    record_progress,
    record_start,
)
from musterd.store.sqlite.phasing import settle_phase
from musterd.store.sqlite.plain import settle_plain, split
from musterd.store.sqlite.targeting import hand_over

GOES_ON = frozenset({JobState.QUEUED, JobState.PAUSED})


def enqueue(database: Database, jobs: Sequence[NewJob]) -> list[Enqueued]:
    with database.writing("enqueue") as now:
        return make(database, jobs, now)


def make(database: Database, jobs: Sequence[NewJob], now: int) -> list[Enqueued]:
    """As `enqueue`, within the caller's transaction."""
    made = [
        _place(database, job, now, f"job {number} of {len(jobs)} ({job.kind!r})")
        for number, job in enumerate(jobs, start=1)
    ]
    record_new(JobEvents(database, now), jobs, made)
    return made


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
        events = JobEvents(database, now)
        rejected, turned = _settle(events, settlements, now_local)
        events.write()
        targets = {one.target for one in settlements if one.target is not None}
        passed_on = [hand_over(database, target) for target in sorted(targets)]
        exchange_ = Exchange(frozenset(rejected), [], turned=turned)
        if claim is not None:
            claims, aside, full = take(database, claim, now)
            exchange_ = exchange_._replace(claims=claims, parked=aside, full=full)
    return exchange_, claim is None and any(passed_on)


def _settle(
    events: JobEvents, settlements: Sequence[Settlement], now_local: float
) -> tuple[set[int], dict[int, JobState]]:
    """Which were refused, and which became something else than was meant."""
    turned: dict[int, JobState] = {}
    plain, others = split(settlements)
    rejected = settle_plain(events, plain, now_local) if plain else set[int]()
    for one in others:
        ending = {**rows.settlement(one, now_local, events.now), **how_far(one)}
        settle_phase(events, one)
        state = end_attempt(events, ending)
        if state is None:
            rejected.add(one.id)
        elif state is not one.state:
            turned[one.id] = state
    return rejected, turned


def end_attempt(events: JobEvents, ending: rows.Params) -> JobState | None:
    """Writes how one attempt ended, and tells it; gives what its job became. None = its lease is
    lost: nothing was written.

    A job that would go on, but for a request to cancel or to pause it, ends or pauses instead.
    """
    database = events.database
    job = held(database, ending)
    if job is None:
        return None
    if ending["state"] in GOES_ON and job.request is not None:
        ending = _on_request(job.request, ending)
    state = JobState(ending["state"])
    if state is JobState.QUEUED:
        database.execute("record_attempt", ending)
    ((run_at,),) = database.rows("requeue" if state is JobState.QUEUED else "settle", ending)
    record_end(events, job, ending, run_at)
    return state


def _on_request(request: Request, ending: rows.Params) -> rows.Params:
    cancel = request == "cancel"
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
        events = JobEvents(database, now)
        for hold in holds:
            params = {
                "id": hold.id,
                "token": hold.token.bytes,
                "worker": hold.worker,
                "now": now,
                "lease_expires_at": lease_expires_at,
                "started_at": rows.at(hold.started_local, now_local, now),
            }
            job = held(database, params)
            if job is None:
                continue
            database.execute("renew", params)
            requests[hold.id] = job.request
            if job.state == JobState.ASSIGNED and hold.started_local is not None:
                record_start(events, job, hold.worker)
        events.write()
    return Renewal(
        frozenset(requests), {id_: asked for id_, asked in requests.items() if asked is not None}
    )


def note_progress(database: Database, notes: Sequence[ProgressNote]) -> frozenset[int]:
    taken: set[int] = set()
    with database.writing("noting progress") as now:
        events = JobEvents(database, now)
        taken.update(note.id for note in notes if _note(events, note))
        events.write()
    return frozenset(taken)


def _note(events: JobEvents, note: ProgressNote) -> bool:
    database, params = events.database, rows.progress_note(note)
    job = held(database, params)
    if job is None or not database.execute("note_progress", params).rowcount:
        return False
    if note.phase is not None:
        database.execute("note_phase", params)
    record_progress(events, job, note)
    return True


def pause_queue(database: Database, by: str) -> bool:
    with database.writing("pausing the queue") as now:
        return database.execute("pause_queue", {"now": now, "by": by}).rowcount == 1


def resume_queue(database: Database) -> bool:
    with database.writing("resuming the queue"):
        return database.execute("resume_queue").rowcount == 1


def tell_kinds(database: Database, rules: Mapping[str, KindRule]) -> None:
    with database.writing("telling of kinds"):
        for kind, rule in rules.items():
            told = {"kind": kind, "phases": json.dumps(rule.phases), "webhook": rule.webhook}
            silent = not rule.phases and rule.webhook is None
            database.execute(
                "forget_kind" if silent else "declare_kinds", {"kind": kind} if silent else told
            )
