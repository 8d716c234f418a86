"""The values that cross the store's counter. Those on the hot path are named tuples: cheap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Literal, NamedTuple
from uuid import UUID

import attrs

from musterd.store.outbox import WebhookRecord
from musterd.store.phases import PhaseEnd, PhaseRecord


class JobState(StrEnum):
    """Where a job stands. Which state may follow which: `lifecycle.TRANSITIONS`."""

    PENDING = "pending"  # made, not yet released
    QUEUED = "queued"  # waits for a worker, or for its due time
    ASSIGNED = "assigned"  # claimed by a node, not yet started
    RUNNING = "running"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"


class AttemptOutcome(StrEnum):
    """How one attempt ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    RETRYING = "retrying"
    CANCELED = "canceled"
    PAUSED = "paused"
    SNOOZED = "snoozed"
    LOST = "lost"  # its lease ran out
    RELEASED = "released"  # given back by its node; burns no attempt


class Action(StrEnum):
    """What may be asked of one job. What each does in which state: `lifecycle.EFFECTS`."""

    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"
    RELEASE = "release"
    CLEAR = "clear"


DedupScope = Literal["until_finished", "forever"] | float  # seconds from the enqueueing
Request = Literal["cancel", "pause"]  # what the holder of a leased job may be asked for


class NewJob(NamedTuple):
    """What a caller wants done: a kind, and the options of `config.job_options`. `payload` is JSON
    text that `check_payload` has accepted.
    """

    kind: str
    payload: str = "{}"
    priority: int = 0
    run_at: datetime | None = None
    delay_seconds: float | None = None
    dedup_key: str | None = None
    dedup_scope: DedupScope = "until_finished"
    hold: bool = False
    max_attempts: int | None = None
    target: str | None = None
    webhook: str | None = None


class Enqueued(NamedTuple):
    """What became of a job that somebody wants done."""

    id: int
    is_new: bool  # False = it is the job that holds the key


class Claim(NamedTuple):
    """One job taken under a lease. `token` fences every later write about it."""

    id: int
    kind: str
    payload: str  # JSON text; decoded only inside the job's own error boundary
    attempt: int
    max_attempts: int | None  # the job's own budget, None = as its kind says
    forgiven: int  # claims so far that burned no attempt
    waited_seconds: float  # from its due time to this claim
    worker: int | None  # the worker it was claimed for; None = claimed ahead, state `assigned`
    token: UUID
    spent: str | None = None  # JSON text: what earlier attempts have spent of its budgets
    target: str | None = None


Caps = tuple[tuple[str, int], ...]  # (kind, how many of its jobs may be leased at once)


@attrs.frozen
class ClaimRequest:
    """One call for work. The token is made by the caller, fresh for each call."""

    token: UUID
    node: str
    workers: tuple[int, ...]  # idle workers: the first jobs are theirs and start at once
    ahead: int  # how many more may be taken for workers that will soon be idle
    lease_seconds: float
    caps: Caps = ()  # each kind at most once
    leased_max: int | None = None  # of all kinds together, in the whole store

    @property
    def batch(self) -> int:
        return len(self.workers) + self.ahead


class Verdict(NamedTuple):
    """What the end of an attempt makes of the attempt and of its job."""

    state: JobState  # what the job becomes
    outcome: AttemptOutcome
    delay_seconds: float | None = None  # for `queued`: due then; None = keeps its due time
    result: str | None = None  # JSON text
    error: str | None = None  # JSON text: {"type", "message"}
    reason: str | None = None
    forgive: bool = False  # this attempt burns none
    log: str | None = None  # what the attempt wrote
    spent: str | None = None  # JSON text, of all attempts together; None = as it was
    percent: float | None = None  # how far it came, where that is not yet written
    note: str | None = None  # goes with `percent`
    phase: PhaseEnd | None = None  # the phase that it ended in


class Settlement(NamedTuple):
    """The end of one attempt, to be written: whose it is, then the fields of its `Verdict` in their
    order. Local times (`trio.current_time()`) cross as ages.
    """

    id: int
    token: UUID
    attempt: int
    worker: int | None
    started_local: float | None  # None = never started
    ended_local: float
    state: JobState
    outcome: AttemptOutcome
    delay_seconds: float | None = None
    result: str | None = None
    error: str | None = None
    reason: str | None = None
    forgive: bool = False
    log: str | None = None
    spent: str | None = None
    percent: float | None = None
    note: str | None = None
    phase: PhaseEnd | None = None
    target: str | None = None  # of its claim
    kind: str = ""  # of its claim

    @property
    def run_seconds(self) -> float:
        started = self.started_local
        return 0.0 if started is None else self.ended_local - started


class Hold(NamedTuple):
    """A claim that its node wants to keep: what a renewal needs to know of it."""

    id: int
    token: UUID
    worker: int | None
    started_local: float | None  # None = not yet started


class Renewal(NamedTuple):
    """What became of the leases that were to be renewed: those not kept are lost."""

    kept: frozenset[int]
    requests: dict[int, Request]  # kept jobs whose holder is asked for something


class ProgressNote(NamedTuple):
    """How far a job has come. What is None stays as it was; a percent comes with its own note."""

    id: int
    token: UUID
    percent: float | None
    note: str | None
    spent: str | None  # JSON text, of all attempts together
    phase: str | None = None  # the phase it is in; `percent` is the job's, this is the phase's:
    phase_percent: float | None = None


@attrs.frozen
class ControlResult:
    """What an action came to. Where there is no such job both states are None."""

    found: bool
    state_before: JobState | None
    state_after: JobState | None
    requested: bool  # the job is leased: its holder has been asked, and will do it
    allowed: bool  # False = nothing was done, since the job's state does not allow it


class Hint(NamedTuple):
    """What may have happened in the store."""

    new_work: bool
    requests: frozenset[int]  # leased jobs whose holder is asked for something
    duties: bool = False  # somebody gave one up


NONE_TURNED: Mapping[int, JobState] = MappingProxyType({})


class Exchange(NamedTuple):
    """What one visit to the store brought."""

    # settlements that changed no row: the lease was lost, or they had been written before
    rejected: frozenset[int]
    # in claim order; the first ones belong to the request's workers, in their order
    claims: list[Claim]
    # jobs that the claim took out of its way, or that it did not see: there may be more to claim
    parked: int = 0
    turned: Mapping[int, JobState] = NONE_TURNED  # settled otherwise, since somebody had asked
    full: bool = False  # `leased_max` jobs are leased now: no claim takes more


@attrs.frozen
class ReapRule:
    """What happens to jobs of one kind whose lease ran out."""

    on_lease_lost: str  # requeue | fail | pause
    max_attempts: int  # for jobs without a budget of their own
    capped: bool = False  # only so many may run at once


@attrs.frozen
class Reaped:
    """A job whose lease ran out, and what became of it."""

    id: int
    kind: str
    attempt: int
    node: str
    state: JobState


@attrs.frozen
class Counts:
    """Jobs by state, exact, and how many were ever enqueued."""

    by_state: dict[JobState, int]
    enqueued_total: int
    due: int  # due and claimable: exact to a limit, beyond it queued less what is not yet due
    oldest_due_seconds: float
    paused_at: datetime | None
    paused_by: str | None
    targets_halted: int = 0  # by a paused or failed job: exact up to 1,000


@attrs.frozen
class AttemptRecord:
    attempt: int
    node: str | None
    worker: int | None
    started_at: datetime | None
    finished_at: datetime | None
    outcome: AttemptOutcome | None  # None = under way
    error: str | None  # JSON text
    log: str | None = None


ELSEWHERE = frozenset({"attempts", "phases", "webhook"})  # these of a record are no columns


@attrs.frozen
class JobRecord:
    """A job with its history, as the store has it."""

    id: int
    kind: str
    state: JobState
    payload: str
    result: str | None
    error: str | None
    reason: str | None
    priority: int
    attempt: int
    max_attempts: int | None
    forgiven: int
    created_at: datetime
    run_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    node: str | None
    worker: int | None
    lease_expires_at: datetime | None
    heartbeat_at: datetime | None
    attempts: tuple[AttemptRecord, ...]
    dedup_key: str | None = None
    request: Request | None = None  # what its holder is asked for
    progress: float | None = None  # of the latest attempt, in percent
    progress_note: str | None = None
    log: str | None = None  # of the latest attempt
    spent: str | None = None  # JSON text
    cleared_at: datetime | None = None
    target: str | None = None
    requested_at: datetime | None = None  # when its holder was asked
    phases: tuple[PhaseRecord, ...] = ()
    webhook: WebhookRecord | None = None
    stale_at: datetime | None = None


# What is read of a job's row: its record, but for what other tables hold, and how it last ended.
JOB_COLUMNS = (
    *(one.name for one in attrs.fields(JobRecord) if one.name not in ELSEWHERE),
    "last_outcome",
)


def job_record(columns: Mapping[str, Any], past: Sequence[AttemptRecord]) -> JobRecord:
    """`columns`: `JOB_COLUMNS` by name; `past`: the attempts before the latest."""
    fields = {**columns, "state": JobState(columns["state"]), "attempts": tuple(past)}
    last_outcome = fields.pop("last_outcome")
    record = JobRecord(**fields)
    if record.lease_expires_at is None and last_outcome is None:
        return record
    latest = AttemptRecord(
        record.attempt,
        record.node,
        record.worker,
        record.started_at,
        record.finished_at,
        AttemptOutcome(last_outcome) if last_outcome else None,
        record.error if last_outcome else None,
        record.log if last_outcome else None,
    )
    return attrs.evolve(record, attempts=(*past, latest))


@attrs.frozen
class JobFilter:
    """Which jobs to list; newest first."""

    states: tuple[JobState, ...] = ()
    kind: str | None = None
    limit: int = 50
    before_id: int | None = None  # only jobs with a smaller id: the next page
    target: str | None = None
