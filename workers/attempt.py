"""One claim, run under its time limit and its lease. What its kind does wrong becomes an Outcome;
only a cancel gets out.
"""

from __future__ import annotations

from typing import cast

import trio

from musterd.catalog.behaviour import JSON
from musterd.catalog.kinds import WorkKind
from musterd.store.payload import PayloadInvalid, decode_payload
from musterd.workers.held import Held
from musterd.workers.outcome import Outcome
from musterd.workers.runners import deterministic


async def attempt(held: Held, kind: WorkKind) -> Outcome | None:
    """Runs the claim. None = its lease was lost on the way: nothing may be written for it."""
    claim = held.claim
    try:
        payload = cast(JSON, decode_payload(claim.payload))
        planned = deterministic.prepare(kind, payload, claim)
    except PayloadInvalid as error:
        return Outcome("failure", None, "payload_invalid", str(error))
    except RecursionError:  # it could be parsed, but not be walked through
        return Outcome("failure", None, "payload_invalid", "payload: found nesting too deep")
    if not planned.duration_seconds:
        return deterministic.conclude(planned, kind, claim)
    limit_seconds = kind.time_limit_seconds
    with trio.CancelScope() as scope:
        if limit_seconds is not None:
            scope.deadline = trio.current_time() + limit_seconds
        held.scope = scope
        try:
            return await deterministic.run(planned, kind, claim)
        finally:
            held.scope = None
    if held.lost:
        return None
    message = f"attempt {claim.attempt} took longer than its time limit of {limit_seconds:g} s"
    return Outcome("failure", None, "time_limit", message, kind.retryable)
