"""A webhook's body and headers: the job as it was when it ended, signed as Standard Webhooks asks.
Pure.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Sequence

import attrs

from musterd import __version__
from musterd.store.jobs import JobRecord
from musterd.store.lifecycle import ENDED, JobState
from musterd.store.outbox import Message
from musterd.store.report import job_object
from musterd.store.words import time_text

ENDS = {f"job.{state.value}": state for state in ENDED}
VERSION = "v1"


@attrs.frozen
class Shown:
    """How a job is shown: whose it is, what its kind says of attempts, whether with its payload."""

    tenant: str
    max_attempts_of_kind: int | None
    include_payload: bool


def event_of(message: Message, record: JobRecord | None, shown: Shown) -> dict[str, object] | None:
    """Gives the whole body; None where the job that it is about is gone."""
    data: object
    if message.body is not None:
        data = json.loads(message.body)
    elif record is not None:
        data = _job_at(message, record, shown)
    else:
        return None
    return {"type": message.type, "timestamp": time_text(message.created_at), "data": data}


def body_of(event: dict[str, object]) -> bytes:
    """The event as it is sent, and signed."""
    return json.dumps(event, separators=(",", ":")).encode()


def as_it_ended(record: JobRecord, state: JobState, attempt: int | None) -> JobRecord:
    """The job as it was when it came to `state` in that attempt, should it have gone on since: only
    a failed job can, by a resume, which puts its attempt into the history.
    """
    if record.state is state and attempt in (None, record.attempt):
        return record
    past = next((one for one in record.attempts if one.attempt == attempt), None)
    return attrs.evolve(
        record,
        state=state,
        attempt=record.attempt if attempt is None else attempt,
        result=None,
        error=past.error if past else None,
        reason=None,
        started_at=past.started_at if past else None,
        finished_at=past.finished_at if past else None,
        lease_expires_at=None,
        heartbeat_at=None,
        request=None,
        cleared_at=None,
        attempts=tuple(one for one in record.attempts if attempt and one.attempt <= attempt),
    )


def _job_at(message: Message, record: JobRecord, shown: Shown) -> dict[str, object]:
    if state := ENDS.get(message.type):
        record = as_it_ended(record, state, message.attempt)
    job = job_object(record, shown.tenant, shown.max_attempts_of_kind)
    if not shown.include_payload:
        del job["payload"]
    return job


def signed_headers(
    keys: Sequence[bytes], message_id: str, timestamp: int, body: bytes
) -> dict[str, str]:
    """Gives all headers but what the connection adds. Each key signs; without one nothing does."""
    headers = {
        "content-type": "application/json",
        "accept-encoding": "identity",
        "user-agent": f"musterd/{__version__}",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
    }
    if keys:
        signed = [_signature(key, message_id, timestamp, body) for key in keys]
        headers["webhook-signature"] = " ".join(signed)
    return headers


def _signature(key: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    content = f"{message_id}.{timestamp}.".encode() + body
    digest = hmac.new(key, content, hashlib.sha256).digest()
    return f"{VERSION},{base64.b64encode(digest).decode()}"
