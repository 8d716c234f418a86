"""Running a claim: what a runner is given, how an attempt ends, what that makes of its job, and
faults on the way that cost no more than the attempt.
"""

from __future__ import annotations

import json
import logging
from abc import ABC, abstractmethod
from typing import Literal, NamedTuple, Protocol, get_args

from musterd.catalog.kinds import JSON, WorkKind, delay_seconds
from musterd.store.leases import Claim, Verdict
from musterd.store.lifecycle import (
    CANCELED_ON_REQUEST,
    PAUSED_ON_REQUEST,
    AttemptOutcome,
    JobState,
    Request,
)
from musterd.workers.context import PhaseFacts, keepable
from musterd.workers.joblog import JobLog


class Note(NamedTuple):
    """Progress of a job under way: in percent, with a word about it."""

    percent: float
    note: str | None
    phase: str | None = None  # of which `phase_percent` tells; `percent` is the whole job's
    phase_percent: float | None = None

    @property
    def bounded_percent(self) -> float:
        return min(100.0, max(0.0, self.percent))


class Recorder(ABC):
    """Takes down what the work of one attempt tells, so that it is known even if the attempt is
    cancelled. All calls return at once.
    """

    spent: str | None = None  # JSON text, of all attempts together; None = nothing by this one

    @abstractmethod
    def remaining_seconds(self) -> float:
        """How long the lease may still be trusted."""

    @abstractmethod
    def report(self, note: Note) -> None: ...

    def spend(self, spent: str) -> None:
        self.spent = spent

    @property
    @abstractmethod
    def log(self) -> JobLog:
        """Takes what the work writes. It is begun when it is first asked for, on whatever thread:
        most work writes nothing.
        """


class Assignment(NamedTuple):
    """One claim, ready to be run."""

    claim: Claim
    kind: WorkKind
    payload: JSON
    recorder: Recorder
    phase: PhaseFacts | None = None  # where `kind` is one phase of a kind


class Runner(Protocol):
    """Does the work of one kind of behaviour, for one worker, one job at a time."""

    async def run(self, assignment: Assignment) -> Outcome:
        """Runs the job to its end. Whatever the job does wrong is an Outcome, never an exception.

        Cancelled, it stops the work first (TERM, the kind's `grace_seconds`, KILL) and only then
        lets the cancel out; nothing of the job is left running.
        """
        ...

    async def close(self) -> None:
        """Gives back what it keeps between jobs. Bounded; safe to call twice."""
        ...


ERROR_TYPE_LENGTH_MAX = 500
UNKNOWN_KIND_SECONDS = 5.0
UNKNOWN_KIND_SECONDS_MAX = 300.0


class Outcome(NamedTuple):
    """What running a claim came to. `result` is JSON text; `error_type` is set where it failed.

    `retry` is a failure that asks to be tried again, after `delay_seconds` if it says so; `snooze`
    is no failure: the job waits `delay_seconds` and burns no attempt.
    """

    ended: Literal["success", "failure", "cancel", "pause", "retry", "snooze"]
    result: str | None = None
    error_type: str | None = None
    message: str | None = None
    retryable: bool = False
    delay_seconds: float | None = None


SUCCESS = Outcome("success")  # with nothing else to say, as most attempts end
SUCCEEDED = Verdict(JobState.SUCCEEDED, AttemptOutcome.SUCCEEDED)
_BESIDE_RESULT = SUCCEEDED[4:]


def is_plain(verdict: Verdict) -> bool:
    """Whether it says success, with a result at most."""
    if verdict is SUCCEEDED:
        return True
    return verdict.state is JobState.SUCCEEDED and verdict[4:] == _BESIDE_RESULT


def judge(outcome: Outcome, claim: Claim, kind: WorkKind, error_bytes_max: int) -> Verdict:
    """Success, cancel, snooze, another try after a delay, or the end."""
    if outcome is SUCCESS:
        return SUCCEEDED
    if outcome.ended == "success":
        result = outcome.result
        return SUCCEEDED if result is None else SUCCEEDED._replace(result=result)
    if outcome.ended == "cancel":
        reason = _reason(outcome.message, error_bytes_max)
        return Verdict(JobState.CANCELED, AttemptOutcome.CANCELED, reason=reason)
    if outcome.ended == "pause":
        return requested("pause")
    if outcome.ended == "snooze":
        return Verdict(
            JobState.QUEUED,
            AttemptOutcome.SNOOZED,
            delay_seconds=outcome.delay_seconds,
            reason=_reason(outcome.message, error_bytes_max),
            forgive=True,
        )
    error = error_json(outcome.error_type or "error", outcome.message or "", error_bytes_max)
    failures = max(1, claim.attempt - claim.forgiven)
    is_listed = outcome.error_type in kind.retry_on
    wants_retry = outcome.ended == "retry" or outcome.retryable or is_listed
    if not wants_retry or failures >= attempts_allowed(claim, kind):
        return Verdict(JobState.FAILED, AttemptOutcome.FAILED, error=error)
    pause = outcome.delay_seconds
    if pause is None:
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
    return _waiting(claim, f"kind {claim.kind!r} is in no catalog of the node that claimed it")


def broken_kind(claim: Claim, why: str) -> Verdict:
    """As with an unknown kind: what is missing here may be put right, or be there elsewhere."""
    return _waiting(claim, f"kind {claim.kind!r} is broken on the node that claimed it: {why}")


def _waiting(claim: Claim, reason: str) -> Verdict:
    pause = min(UNKNOWN_KIND_SECONDS_MAX, UNKNOWN_KIND_SECONDS * 2.0 ** min(claim.forgiven, 16))
    return Verdict(
        JobState.QUEUED, AttemptOutcome.RELEASED, delay_seconds=pause, reason=reason, forgive=True
    )


def interrupted(policy: Literal["requeue", "pause"]) -> Verdict:
    """What a shutdown makes of a job that it had to cancel."""
    if policy == "pause":
        return requested("pause")
    return released("its node shut down")


def requested(request: Request) -> Verdict:
    """What becomes of a job whose holder was asked to cancel or to pause it. A pause is not the
    job's fault and burns no attempt.
    """
    if request == "cancel":
        return Verdict(JobState.CANCELED, AttemptOutcome.CANCELED, reason=CANCELED_ON_REQUEST)
    return Verdict(JobState.PAUSED, AttemptOutcome.PAUSED, reason=PAUSED_ON_REQUEST, forgive=True)


def on_request(request: Request) -> Outcome:
    """As `requested`, of an attempt that was under way."""
    if request == "cancel":
        return Outcome("cancel", message=CANCELED_ON_REQUEST)
    return Outcome("pause", message=PAUSED_ON_REQUEST)


def released(reason: str) -> Verdict:
    """Given back as it was: due at once, no attempt burnt."""
    return Verdict(JobState.QUEUED, AttemptOutcome.RELEASED, reason=reason, forgive=True)


def error_json(error_type: str, message: str, bytes_max: int) -> str:
    """The error as it is stored: cut to size, without the characters no database keeps."""
    short_type = keepable(error_type[:ERROR_TYPE_LENGTH_MAX])
    return json.dumps({"type": short_type, "message": _short(message, bytes_max)})


def line_of(error: BaseException) -> str:
    """One line for the error of a job, whatever its own methods do."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - its own __str__
        return type(error).__name__


def _short(text: str, bytes_max: int) -> str:
    """Cut to size, without the characters no database keeps."""
    clean = text.replace("\0", "\\0").encode("utf-8", "replace")[:bytes_max]
    return clean.decode("utf-8", "ignore")


def _reason(text: str | None, bytes_max: int) -> str | None:
    return None if text is None else _short(text, bytes_max)


# What it was contained in.
Where = Literal["child", "attempt", "runner", "note", "start", "exchange", "hint", "feed"]
PLACES: tuple[Where, ...] = get_args(Where)


class Contained(NamedTuple):
    """Something went wrong that should not, and was kept from going further: it cost one attempt,
    one message, one connection.
    """

    where: Where
    kind: str | None  # of the job in hand, if there was one
    job_id: int | None
    error: BaseException
    attempt: int | None = None


def log_contained(what: Contained) -> None:
    """Where there is nothing to report to."""
    logging.getLogger("musterd").error("fault contained", exc_info=what.error)
