"""Deterministic kinds: they take their time and end as their kind says."""

from __future__ import annotations

import trio

from musterd.catalog.kinds import JSON, Planned, WorkKind, plan
from musterd.store.leases import Claim
from musterd.workers.outcome import Assignment, Outcome


def at_once(kind: WorkKind, payload: JSON, claim: Claim) -> Outcome | None:
    """The outcome of an attempt that takes no time: it needs no scope, no limit, no checkpoint.
    None = it does take time.
    """
    planned = plan(kind, payload, claim.attempt)
    return None if planned.duration_seconds else _conclude(planned, kind, claim)


class DeterministicRunner:
    """Sleeps, and ends as planned."""

    async def run(self, assignment: Assignment) -> Outcome:
        kind, claim = assignment.kind, assignment.claim
        planned = plan(kind, assignment.payload, claim.attempt)
        await trio.sleep(planned.duration_seconds)
        return _conclude(planned, kind, claim)

    async def close(self) -> None:
        """Keeps nothing."""


def _conclude(planned: Planned, kind: WorkKind, claim: Claim) -> Outcome:
    if planned.outcome == "success":
        return Outcome("success", f'{{"duration_ms": {round(planned.duration_seconds * 1000)}}}')
    if planned.outcome == "cancel":
        return Outcome("cancel", message=f"kind {kind.name!r} ends its jobs as canceled")
    message = f"kind {kind.name!r} fails attempt {claim.attempt}, as its catalog says"
    return Outcome("failure", None, "planned_failure", message, kind.retryable)
