"""Leases: claimed and settled by exchanges, renewed, and reaped when they have run out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import compress
from typing import Any
from uuid import UUID

from musterd.store.errors import InputRefused
from musterd.store.leases import (
    Claim,
    ClaimRequest,
    Ends,
    Exchange,
    Hold,
    Reaped,
    ReapRequest,
    ReapRule,
    Renewal,
    Settlement,
    Successes,
)
from musterd.store.lifecycle import (
    CANCELED_ON_REQUEST,
    PAUSED_ON_REQUEST,
    REASONS,
    Action,
    AttemptOutcome,
    JobState,
    Request,
)
from musterd.store.sqlite import rows
from musterd.store.sqlite.claiming import hand_over, take, unpark_uncapped
from musterd.store.sqlite.database import Database, Part, called
from musterd.store.sqlite.job_events import (
    LOST,
    About,
    JobEvents,
    call_out,
    held,
    record_end,
    record_start,
)
from musterd.store.sqlite.logs import note_logs, take_live_log
from musterd.store.sqlite.mending import Row, mended
from musterd.store.sqlite.phases import settle_phase
from musterd.store.sqlite.progress import note_progress
from musterd.store.words import time_text

CHANGED = "its row was changed past the checks of the schema"
# What comes of a row that is damaged.
DAMAGED = (InputRefused, TypeError, ValueError, KeyError, OverflowError)
LOOKED_AT = 1000  # jobs, after a claim that was refused
SUCCEEDED = "job.succeeded"
GOES_ON = frozenset({JobState.QUEUED, JobState.PAUSED})
ON_LEASE_LOST = {
    "requeue": JobState.QUEUED,
    "fail": JobState.FAILED,
    "pause": JobState.PAUSED,
}
ON_REQUEST = {Action.CANCEL: JobState.CANCELED, Action.PAUSE: JobState.PAUSED}


def exchange(database: Database, ends: Ends, claim: ClaimRequest | None) -> tuple[Exchange, bool]:
    """And whether there is work now that this exchange did not claim."""
    with database.writing("settling and claiming") as now:
        events = JobEvents(database, now)
        rejected = _succeed(events, ends.successes)
        turned = _settle(events, ends.settlements, rejected)
        events.write()
        passed_on = [hand_over(database, target) for target in ends.targets]
        exchange_ = Exchange(frozenset(rejected), [], turned=turned)
        if claim is not None:
            claims, aside, full = take(database, claim, now)
            exchange_ = exchange_._replace(
                claims=claims, parked=aside, full=full, now_epoch=now / rows.SECOND
            )
    return exchange_, claim is None and any(passed_on)


def _succeed(events: JobEvents, ended: Successes) -> set[int]:
    """Ends these jobs, and records it. Gives the ids of those whose lease is lost, about which
    nothing was written.
    """
    if not ended.ids:
        return set()
    database = events.database
    wanted = rows.successes(ended)
    ((found,),) = database.rows("held_many", wanted)
    database.execute("settle_plain", wanted)
    held = {job_id: its for job_id, *its in rows.listed(found)}
    abouts = [*zip(ended.ids, ended.kinds, ended.targets, ended.attempts, strict=True)]
    workers = ended.workers
    if len(held) < len(abouts):
        kept = [about[0] in held for about in abouts]
        abouts, workers = [*compress(abouts, kept)], [*compress(workers, kept)]
    events.record_all(  # the store has not heard of all that they started
        "job.started",
        (
            (*about, {"node": node, "worker": worker})
            for about, worker in zip(abouts, workers, strict=True)
            if (node := held[about[0]][0]) is not None
        ),
    )
    events.record_alike(SUCCEEDED, abouts)
    if events.called_kinds or any(url is not None for _, url in held.values()):
        for about in abouts:
            call_out(events, About(*about), SUCCEEDED, held[about[0]][1])
    return set(ended.ids).difference(held)


def _settle(
    events: JobEvents, settlements: Sequence[Settlement], rejected: set[int]
) -> dict[int, JobState]:
    """Which became something else than was meant; `rejected` gets those that were refused."""
    turned: dict[int, JobState] = {}
    for one in settlements:
        ending = rows.settlement(one, events.now)
        settle_phase(events, one)
        state = end_attempt(events, ending)
        if one.log_begun and state is not None:
            events.database.execute("forget_log", ending)
        if state is None:
            rejected.add(one.id)
        elif state is not one.state:
            turned[one.id] = state
    return turned


def end_attempt(events: JobEvents, ending: rows.Params) -> JobState | None:
    """Writes how one attempt ended, and records it; gives what its job became. None = its lease is
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


def renew(database: Database, holds: Sequence[Hold], lease_seconds: float | None) -> Renewal:
    requests: dict[int, Request | None] = {}
    with database.writing("renewing leases") as now:
        extended = None if lease_seconds is None else now + rows.microseconds(lease_seconds)
        events = JobEvents(database, now)
        for hold in holds:
            params = {
                "id": hold.id,
                "token": hold.token.bytes,
                "worker": hold.worker,
                "now": now,
                "lease_expires_at": extended,
                "started_at": rows.at(hold.started_epoch),
            }
            job = held(database, params)
            if job is None or not database.execute("renew", params).rowcount:
                continue
            requests[hold.id] = job.request
            if job.state == JobState.ASSIGNED and hold.started_epoch is not None:
                record_start(events, job, hold.worker)
        events.write()
    return Renewal(
        frozenset(requests),
        {id_: asked for id_, asked in requests.items() if asked is not None},
        now / rows.SECOND,
    )


def claims_under(database: Database, token: UUID) -> list[Claim]:
    with database.reading("reading a claim back"):
        wanted = {"token": token.bytes, "made_ahead": rows.MADE_AHEAD}
        found = database.rows("claims_under", wanted)
    return [rows.claim(row, token) for row in found]


def settled_already(database: Database, settlements: Sequence[Settlement]) -> frozenset[int]:
    with database.reading("reading settlements back"):
        return frozenset(
            one.id
            for one in settlements
            if database.rows("settled_already", rows.settlement_key(one))[0][0]
        )


def reap(database: Database, request: ReapRequest) -> list[Reaped]:
    try:
        return _reap(database, request, request.batch)
    except DAMAGED:
        pass  # a row cannot be written as it is: one by one, and it ends alone
    reaped: list[Reaped] = []
    while len(reaped) < request.batch:
        try:
            found = _reap(database, request, 1)
        except DAMAGED as error:
            found = [_set_aside_lost(database, error)]
        if not found:
            break
        reaped += found
    return reaped


def _reap(database: Database, request: ReapRequest, count: int) -> list[Reaped]:
    with database.writing("reaping") as now:
        unpark_uncapped(database, {kind for kind, rule in request.rules.items() if not rule.capped})
        expired = database.rows("reap", {"now": now, "count": count})
        events = JobEvents(database, now)
        reaped = [_end_lost(events, row, request) for row in expired]
        events.write()
        for target in sorted({row[9] for row in expired if row[9] is not None}):
            hand_over(database, target)
        return reaped


def _set_aside_lost(database: Database, error: Exception) -> Reaped:
    """The first job whose lease has run out fails, mended."""
    with database.writing("setting a damaged job aside") as now:
        ((job_id, *_),) = database.rows("reap", {"now": now, "count": 1})
        row, changed, found = _mended(database, job_id, now)
        damage = found or str(error)
        changed |= {
            name: one for name, one in (("attempt", 1), ("started_at", now)) if name in changed
        }
        of_nobody = {"claim_token": bytes(16), "request": None, "requested_at": None}
        _mend(database, job_id, {**changed, **of_nobody})
        ((kind, target, attempt),) = database.rows("claimed_one", {"id": job_id})
        message = f"{CHANGED}, and no end could be written about it when its lease had run out"
        failed = Settlement(
            job_id, UUID(bytes=bytes(16)), attempt, None, None, now / rows.SECOND,
            JobState.FAILED, AttemptOutcome.FAILED,
            error=json.dumps({"type": "row_damaged", "message": f"{message}: {damage}"}),
        )  # fmt: skip
        events = JobEvents(database, now)
        end_attempt(events, rows.settlement(failed, now))
        events.write()
        if target is not None:
            hand_over(database, target)
    node = str(changed.get("node", row["node"]) or "")
    return Reaped(job_id, kind, attempt, node, JobState.FAILED, damage)


def _mended(database: Database, job_id: int, now: int) -> tuple[Row, dict[str, Any], str]:
    """The row, what has to be changed of it, and what was found there."""
    cursor = database.execute("row", {"id": job_id})
    columns = [column[0] for column in cursor.description]
    row = dict(zip(columns, cursor.fetchone(), strict=True))
    return row, *mended(row, now)


def _mend(database: Database, job_id: int, changed: Row) -> None:
    written = ", ".join(f"{name} = :{name}" for name in changed)
    database.execute_filled("mend", {"id": job_id, **changed}, columns=written)


def set_aside(database: Database, refused: ClaimRequest) -> list[Settlement]:
    with database.writing("setting damaged jobs aside") as now:
        wanted = {"now": now, "last": rows.TIME_LAST, "count": LOOKED_AT}
        events = JobEvents(database, now)
        found = [
            _set_aside(events, job_id, refused)
            for (job_id,) in database.rows("next_in_line", wanted)
        ]
        events.write()
    return [one for one in found if one is not None]


def _set_aside(events: JobEvents, job_id: int, refused: ClaimRequest) -> Settlement | None:
    """What the job has become, if it could not be claimed: it is, once mended, and fails."""
    database, now = events.database, events.now
    _, changed, found = _mended(database, job_id, now)
    if not changed:
        return None
    _mend(database, job_id, changed)
    one_more = {"ids": json.dumps([job_id]), "seats": 0, "workers": "[]", "lease_expires_at": now}
    claim = {"token": refused.token.bytes, "node": refused.node, "now": now, **one_more}
    database.execute("claim", claim)
    ((kind, target, attempt),) = database.rows("claimed_one", {"id": job_id})
    message = f"{CHANGED}, and no claim could take it: {found}"
    failed = Settlement(
        job_id, refused.token, attempt, None, None, now / rows.SECOND, JobState.FAILED,
        AttemptOutcome.FAILED, error=json.dumps({"type": "row_damaged", "message": message}),
        target=target, kind=kind,
    )  # fmt: skip
    end_attempt(events, rows.settlement(failed, now))
    if target is not None:
        hand_over(database, target)
    return failed


def expire_all(database: Database) -> int:
    """Lets every lease run out now. For a daemon alone on its file: their holder is dead."""
    with database.writing("giving a dead daemon's leases back") as now:
        return database.execute("expire_all", {"now": now}).rowcount


def judge(rule: ReapRule, attempt: int, max_attempts: int | None, forgiven: int) -> JobState:
    """What becomes of a job whose lease ran out. Once its attempts are used up it has failed."""
    budget = rule.max_attempts + forgiven if max_attempts is None else max_attempts
    return JobState.FAILED if attempt >= budget else ON_LEASE_LOST[rule.on_lease_lost]


def _end_lost(events: JobEvents, row: rows.Row, request: ReapRequest) -> Reaped:
    job_id, kind, attempt, max_attempts, forgiven, node, lease_expires_at, token, asked = row[:9]
    rule = request.rules.get(kind, request.default)
    state = ON_REQUEST[asked] if asked else judge(rule, attempt, max_attempts, forgiven)
    ran_out = time_text(rows.moment(lease_expires_at), "milliseconds")
    message = f"attempt {attempt}: node {node} did not renew its lease, which ran out at {ran_out}"
    ended_at = max(events.now, row[10] or 0)  # its start may be ahead of a clock that was put back
    lost = Settlement(
        job_id, UUID(bytes=token), attempt, None, None, ended_at / rows.SECOND, state,
        AttemptOutcome.LOST,
        error=json.dumps({"type": "lease_lost", "message": message}),
        reason=REASONS[asked] if asked else LOST if state is JobState.PAUSED else None,
    )  # fmt: skip
    lost = lost._replace(log=take_live_log(events.database, job_id, token))
    end_attempt(events, rows.settlement(lost, events.now))
    return Reaped(job_id, kind, attempt, node, state)


class SqliteLeases(Part):
    """See `store.leases.Leases`."""

    claims_under = called(claims_under)
    settled_already = called(settled_already)
    renew = called(renew)
    note_progress = called(note_progress)
    note_logs = called(note_logs)
    reap = called(reap)
    set_aside = called(set_aside)

    async def exchange(self, ends: Ends, claim: ClaimRequest | None) -> Exchange:
        done, leaves_work = await self.call(exchange, ends, claim)
        if leaves_work:
            self._hints.ring()
        return done
