"""What is written of each request to the store: what was asked, and what came of it, one operation
for each job that it is about.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from musterd.store.control import BulkResult, ControlResult
from musterd.store.duties import DutyReport, Holder
from musterd.store.input import PayloadInvalid, decode_payload
from musterd.store.jobs import Enqueued, NewJob
from musterd.store.leases import (
    Claim,
    ClaimRequest,
    Exchange,
    Hold,
    ProgressNote,
    Reaped,
    Renewal,
    Settlement,
)
from musterd.store.lifecycle import Action
from musterd.store.outbox import Delivery, Message
from musterd.store.phases import PhaseStep
from musterd.store.schedules import Fired, Firing

Fields = dict[str, Any]


class Asked(NamedTuple):
    op: str
    fields: Fields


class Told(NamedTuple):
    """What became of one operation. Only what is ok was carried out."""

    status: str
    result: Fields


class Operations(NamedTuple):
    """Those of one request. `told` is given what the store answered; one for each of `asked`."""

    asked: Sequence[Asked]
    told: Callable[[Any], Sequence[Told]]


STALE = Told("stale", {})
REFUSED = Told("refused", {})
DONE = Told("ok", {})


def _taken(is_taken: bool) -> Told:
    return DONE if is_taken else STALE


def enqueue(jobs: Sequence[NewJob]) -> Operations:
    def told(made: Sequence[Enqueued]) -> list[Told]:
        return [Told("ok", {"job": one.id, "new": one.is_new}) for one in made]

    return Operations([Asked("enqueue", _new_job(job)) for job in jobs], told)


def _new_job(job: NewJob) -> Fields:
    options = {
        "dedup_key": job.dedup_key,
        "target": job.target,
        "priority": job.priority or None,
        "delay_seconds": job.delay_seconds,
        "hold": job.hold or None,
        "max_attempts": job.max_attempts,
        "webhook": True if job.webhook else None,
    }
    given = {name: value for name, value in options.items() if value is not None}
    if job.dedup_key is not None:
        given["dedup_scope"] = job.dedup_scope
    return {"kind": job.kind, **payload_fields(job.payload), **given}


def payload_fields(text: str) -> Fields:
    """The payload, or of one that nobody can read a digest of its text."""
    try:
        return {"payload": decode_payload(text)}
    except (PayloadInvalid, RecursionError):
        return {"digest": hashlib.sha256(text.encode()).hexdigest()}


def exchange(settlements: Sequence[Settlement], claim: ClaimRequest | None) -> Operations:
    asked = [Asked("settle", _settlement(one)) for one in settlements]
    if claim is not None:
        lease = claim.lease_seconds
        asked.append(Asked("claim", {"token": str(claim.token), "lease_seconds": lease}))

    def told(done: Exchange) -> list[Told]:
        ends = [_end(one, done) for one in settlements]
        return ends if claim is None else [*ends, Told("ok", {"jobs": _claims(done.claims)})]

    return Operations(asked, told)


def _settlement(one: Settlement) -> Fields:
    fields: Fields = {
        "job": one.id,
        "token": str(one.token),
        "attempt": one.attempt,
        "state": one.state.value,
        "outcome": one.outcome.value,
    }
    if one.delay_seconds is not None:
        fields["delay_seconds"] = one.delay_seconds
    if one.forgive:
        fields["forgive"] = True
    return fields


def _end(one: Settlement, done: Exchange) -> Told:
    if one.id in done.held_up:
        return REFUSED
    if one.id in done.rejected:
        return STALE
    turned = done.turned.get(one.id)
    return DONE if turned is None else Told("ok", {"state": turned.value})


def _claims(claims: Sequence[Claim]) -> list[Fields]:
    return [{"job": one.id, "attempt": one.attempt} for one in claims]


def read_back(token: object) -> Operations:
    def told(claims: Sequence[Claim]) -> list[Told]:
        return [Told("ok", {"jobs": _claims(claims)})]

    return Operations([Asked("read_back", {"token": str(token)})], told)


def renew(holds: Sequence[Hold], lease_seconds: float | None) -> Operations:
    """One that extends nothing is no renewal."""
    if lease_seconds is None:
        return Operations([], nothing)

    def told(renewal: Renewal) -> list[Told]:
        return [_renewed(one, renewal) for one in holds]

    asked = [
        Asked("renew", {"job": one.id, "token": str(one.token), "lease_seconds": lease_seconds})
        for one in holds
    ]
    return Operations(asked, told)


def _renewed(hold: Hold, renewal: Renewal) -> Told:
    if hold.id not in renewal.kept:
        return STALE
    request = renewal.requests.get(hold.id)
    return DONE if request is None else Told("ok", {"asked": request})


def progress(notes: Sequence[ProgressNote]) -> Operations:
    def told(taken: frozenset[int]) -> list[Told]:
        return [_taken(one.id in taken) for one in notes]

    return Operations(
        [Asked("progress", {"job": one.id, "token": str(one.token)}) for one in notes], told
    )


def phases(steps: Sequence[PhaseStep]) -> Operations:
    def told(taken: frozenset[int]) -> list[Told]:
        return [_taken(one.id in taken) for one in steps]

    asked = [
        Asked("phase", {"job": one.id, "token": str(one.token), "name": one.finished})
        for one in steps
    ]
    return Operations(asked, told)


def control(action: Action, job_id: int) -> Operations:
    def told(done: ControlResult) -> list[Told]:
        if not done.allowed:
            return [REFUSED]
        state = None if done.state_after is None else done.state_after.value
        return [Told("ok", {"state": state, **({"asked": True} if done.requested else {})})]

    return Operations([Asked(action.value, {"job": job_id})], told)


# What a bulk action makes of a job whose holder need not be asked.
BECOMES = {"cancel": "canceled", "pause": "paused", "resume": "queued", "release": "queued"}


def control_many(action: Action, ids: Sequence[int], _which: object) -> Operations:
    def told(done: BulkResult) -> list[Told]:
        return [_controlled(action, one, done) for one in ids]

    return Operations([Asked(action.value, {"job": one}) for one in ids], told)


def _controlled(action: Action, job_id: int, done: BulkResult) -> Told:
    if job_id not in done.done:
        return REFUSED
    if job_id in done.requested:
        return Told("ok", {"state": None, "asked": True})
    return Told("ok", {"state": BECOMES.get(action.value)})


def pause(_by: str) -> Operations:
    return Operations([Asked("pause_queue", {})], _done)


def resume() -> Operations:
    return Operations([Asked("resume_queue", {})], _done)


def _done(_: object) -> list[Told]:
    return [DONE]


def nothing(_: object) -> list[Told]:
    """Of a request that nobody writes down."""
    return []


def reap(_request: object) -> Operations:
    def told(reaped: Sequence[Reaped]) -> list[Told]:
        jobs = [{"job": one.id, "attempt": one.attempt, "state": one.state.value} for one in reaped]
        return [Told("ok", {"jobs": jobs})]

    return Operations([Asked("reap", {})], told)


def delete(deleted: Sequence[int]) -> Operations:
    """`deleted`: which jobs those are is known once it was carried out."""

    def told(_: object) -> list[Told]:
        return [Told("ok", {"jobs": list(deleted)})]

    return Operations([Asked("delete", {})], told)


def take_duties(duties: Sequence[str], holder: Holder) -> Operations:
    def told(taken: frozenset[str]) -> list[Told]:
        return [_taken(duty in taken) for duty in duties]

    lease = holder.lease_seconds
    asked = [
        Asked("take_duty", {"duty": duty, "term": str(holder.term), "lease_seconds": lease})
        for duty in duties
    ]
    return Operations(asked, told)


def renew_duties(reports: Sequence[DutyReport], lease_seconds: float) -> Operations:
    def told(kept: frozenset[str]) -> list[Told]:
        return [_taken(one.duty in kept) for one in reports]

    asked = [
        Asked(
            "renew_duty", {"duty": one.duty, "term": str(one.term), "lease_seconds": lease_seconds}
        )
        for one in reports
    ]
    return Operations(asked, told)


def release_duties(reports: Sequence[DutyReport], terms: Mapping[str, bytes]) -> Operations:
    """`terms` are those that stand when it is carried out."""
    asked = [Asked("release_duty", {"duty": one.duty, "term": str(one.term)}) for one in reports]

    def told(_: object) -> list[Told]:
        return [_taken(terms.get(one.duty) == one.term.bytes) for one in reports]

    return Operations(asked, told)


def fire(firing: Firing) -> Operations:
    slot = None if firing.slot is None else firing.slot.isoformat()

    def told(fired: Fired) -> list[Told]:
        return [Told("ok", {"job": fired.job_id}) if fired.taken else STALE]

    fields = {"schedule": firing.schedule, "slot": slot, "kind": firing.kind}
    return Operations([Asked("fire", fields)], told)


def take_messages(token: object, count: int, seconds: float) -> Operations:
    del count

    def told(taken: Sequence[Message]) -> list[Told]:
        return [Told("ok", {"messages": [one.id for one in taken]})]

    return Operations([Asked("take_messages", {"token": str(token), "seconds": seconds})], told)


def settle_messages(deliveries: Sequence[Delivery]) -> Operations:
    def told(taken: frozenset[int]) -> list[Told]:
        return [_taken(one.id in taken) for one in deliveries]

    asked = [
        Asked("settle_message", {"message": one.id, "token": str(one.token)}) for one in deliveries
    ]
    return Operations(asked, told)
