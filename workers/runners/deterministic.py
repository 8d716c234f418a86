"""Deterministic kinds: they take their time and end as their kind says."""

from __future__ import annotations

import trio

from musterd.catalog.behaviour import JSON, Planned, plan
from musterd.catalog.kinds import WorkKind
from musterd.store.job import Claim
from musterd.workers.outcome import Outcome


def prepare(kind: WorkKind, payload: JSON, claim: Claim) -> Planned:
    """What this attempt will do; an instant one needs no scope, no limit and no checkpoint."""
    return plan(kind, payload, claim.attempt)


async def run(planned: Planned, kind: WorkKind, claim: Claim) -> Outcome:
    if planned.duration_seconds:
        await trio.sleep(planned.duration_seconds)
    return conclude(planned, kind, claim)


def conclude(planned: Planned, kind: WorkKind, claim: Claim) -> Outcome:
    if planned.outcome == "success":
        return Outcome("success", f'{{"duration_ms": {round(planned.duration_seconds * 1000)}}}')
    if planned.outcome == "cancel":
        return Outcome("cancel", message=f"kind {kind.name!r} ends its jobs as canceled")
    message = f"kind {kind.name!r} fails attempt {claim.attempt}, as its catalog says"
    return Outcome("failure", None, "planned_failure", message, kind.retryable)
