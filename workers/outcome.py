"""How an attempt ended, and what that makes of its job: pure."""

from __future__ import annotations

import json
from typing import Literal, NamedTuple

from musterd.catalog.kinds import WorkKind
from musterd.catalog.retry import delay_seconds
from musterd.store.job import AttemptOutcome, Claim, JobState

UNKNOWN_KIND_SECONDS = 5.0
UNKNOWN_KIND_SECONDS_MAX = 300.0


class Outcome(NamedTuple):
    """What running a claim came to. `result` is JSON text; `error_type` is set where it failed."""

    ended: Literal["success", "failure", "cancel"]
    result: str | None = None
    error_type: str | None = None
    message: str | None = None
    retryable: bool = False


class Verdict(NamedTuple):
    """What is to be written about the attempt and its job."""

    state: JobState
    outcome: AttemptOutcome
    delay_seconds: float | None = None
    result: str | None = None
    error: str | None = None
    reason: str | None = None
    forgive: bool = False


def judge(outcome: Outcome, claim: Claim, kind: WorkKind, error_bytes_max: int) -> Verdict:
    """Success, cancel, another try after a delay, or the end."""
    if outcome.ended == "success":
        return Verdict(JobState.SUCCEEDED, AttemptOutcome.SUCCEEDED, result=outcome.result)
    if outcome.ended == "cancel":
        return Verdict(JobState.CANCELED, AttemptOutcome.CANCELED, reason=outcome.message)
    error = error_json(outcome.error_type or "error", outcome.message or "", error_bytes_max)
    failures = max(1, claim.attempt - claim.forgiven)
    if not outcome.retryable or failures >= attempts_allowed(claim, kind):
        return Verdict(JobState.FAILED, AttemptOutcome.FAILED, error=error)
    pause = delay_seconds(kind.retry, failures, claim.id, claim.attempt)
    return Verdict(JobState.QUEUED, AttemptOutcome.RETRYING, delay_seconds=pause, error=error)


def attempts_allowed(claim: Claim, kind: WorkKind) -> int:
    """How many attempts may fail: the job's own budget, else its kind's."""
    if claim.max_attempts is not None:
        return claim.max_attempts - claim.forgiven
    return kind.retry.max_retries + 1


def unknown_kind(claim: Claim) -> Verdict:
    """A job whose kind this node does not know waits, longer each time, and burns no attempt: the
    kind may come.
    """
    pause = min(UNKNOWN_KIND_SECONDS_MAX, UNKNOWN_KIND_SECONDS * 2.0 ** min(claim.forgiven, 16))
    reason = f"kind {claim.kind!r} is in no catalog of the node that claimed it"
    return Verdict(
        JobState.QUEUED, AttemptOutcome.RELEASED, delay_seconds=pause, reason=reason, forgive=True
    )


def interrupted(policy: Literal["requeue", "pause"]) -> Verdict:
    """What a shutdown makes of a job that it had to cancel."""
    if policy == "pause":
        reason = "Job was interrupted by user"
        return Verdict(JobState.PAUSED, AttemptOutcome.PAUSED, reason=reason)
    return released("its node shut down")


def released(reason: str) -> Verdict:
    """Given back as it was: due at once, no attempt burnt."""
    return Verdict(JobState.QUEUED, AttemptOutcome.RELEASED, reason=reason, forgive=True)


def error_json(error_type: str, message: str, bytes_max: int) -> str:
    """The error as it is stored: cut to size, without the characters no database keeps."""
    clean = message.replace("\0", "\\0").encode("utf-8", "replace")[:bytes_max]
    return json.dumps({"type": error_type, "message": clean.decode("utf-8", "ignore")})
