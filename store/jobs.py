"""The jobs of a store: what callers ask for, what readers see, and the `jobs` part of an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol

import attrs

from musterd.store.control import RESTING
from musterd.store.job_log import LogPage, LogPosition
from musterd.store.lifecycle import LEASED, AttemptOutcome, JobState, Request
from musterd.store.outbox import WebhookRecord
from musterd.store.phases import PhaseRecord
from musterd.store.why_facts import WhyFacts

DedupScope = Literal["until_finished", "forever"] | float  # seconds from the enqueueing


class NewJob(NamedTuple):
    """What a caller wants done: a kind, and the options of `config.job_options`. `payload` is JSON
    text that `check_payload` has accepted.
    """

    kind: str
    payload: str = "{}"
    priority: int | None = None  # None = as the nodes say of its kind
    run_at: datetime | None = None
    delay_seconds: float | None = None
    dedup_key: str | None = None
    dedup_scope: DedupScope = "until_finished"
    hold: bool = False
    max_attempts: int | None = None
    target: str | None = None
    webhook: str | None = None
    traceparent: str | None = None


class Enqueued(NamedTuple):
    """What became of a job that somebody wants done."""

    id: int
    is_new: bool  # False = it is the job that holds the key


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
    log: str | None = None  # of the latest attempt; while it runs, what is known of it
    spent: str | None = None  # JSON text
    cleared_at: datetime | None = None
    target: str | None = None
    requested_at: datetime | None = None  # when its holder was asked
    phases: tuple[PhaseRecord, ...] = ()
    webhook: WebhookRecord | None = None
    stale_at: datetime | None = None
    schedule: str | None = None  # the schedule that made it,
    scheduled_for: datetime | None = None  # and for which slot; None = none, by hand
    traceparent: str | None = None  # of whoever made it
    updated_at: datetime | None = None  # the latest of all its moments, the last renewal included


BRIEF_CHARACTERS = 1_000  # of a message, a reason
# What is read of a job's row: its record, but for what other tables hold, and how it last ended.
JOB_COLUMNS = (
    *(one.name for one in attrs.fields(JobRecord) if one.name not in ELSEWHERE),
    "last_outcome",
)


def job_record(columns: Mapping[str, Any], past: Sequence[AttemptRecord]) -> JobRecord:
    """`columns`: `JOB_COLUMNS` by name; `past`: the attempts before the latest."""
    fields: dict[str, Any] = {
        **columns,
        "state": JobState(columns["state"]),
        "attempts": tuple(past),
    }
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
        record.log,
    )
    return attrs.evolve(record, attempts=(*past, latest))


SPAN = 10_000  # jobs that one look comes by, at most
# Ids follow the times at which jobs are made, but for those that one long statement makes and those
# whose clock was set: where a walk begins and ends by the time, it goes so much further.
MARGIN_SECONDS = 60.0


@attrs.frozen
class JobFilter:
    """Which jobs to list; newest first. What is None or empty asks for nothing."""

    states: tuple[JobState, ...] = ()
    kind: str | None = None
    limit: int = 50
    before_id: int | None = None  # only jobs with a smaller id: the next page
    after_id: int | None = None  # only jobs with a greater id
    target: str | None = None
    dedup_key: str | None = None
    error: str | None = None  # stands in its error, whatever the case of the letters A to Z
    since: datetime | None = None  # made from then on,
    until: datetime | None = None  # and before then
    by_end: bool = False  # ended, not made
    span: int = SPAN

    @property
    def walks(self) -> bool:
        """Whether all jobs are walked through: no index by id knows queued or succeeded ones."""
        return not self.states or not set(self.states) <= LEASED | RESTING

    @property
    def lines_up(self) -> bool:
        """Whether a look along the line of queued jobs spares the walk, if the line is short."""
        return JobState.QUEUED in self.states and JobState.SUCCEEDED not in self.states

    @property
    def resting(self) -> tuple[JobState, ...]:
        """The states that have an index of their own, of jobs at rest."""
        return tuple(one for one in self.states if one in RESTING)

    @property
    def looked_max(self) -> int:
        """How many jobs each walk comes by, at most: where each fits, no more than asked for."""
        wanted = (self.kind, self.target, self.dedup_key, self.error, self.since, self.until)
        passes_by = any(one is not None for one in wanted) or (bool(self.states) and self.walks)
        return max(self.span, self.limit) if passes_by else self.limit


@attrs.frozen
class JobLook:
    """What one look has found, and how far it came."""

    jobs: list[JobRecord]
    through_id: int | None  # it came down to this job; None = there is none left
    through_at: datetime | None  # when that was made
    looked: int  # jobs that it came by; where there is none left, maybe more


class Jobs(Protocol):
    """Makes jobs and reads them. Errors as for `Engine`."""

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[int]:
        """Makes all of the jobs or none; returns their ids in order, in place of a job whose key is
        held that of its holder. Wakes idle workers. Raises `InputRefused` for values the store
        refuses.
        """
        ...

    async def enqueue_keyed(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """As `enqueue`, and says which jobs are new. Of callers at the same time with the same key
        one makes the job.
        """
        ...

    async def get(self, job_id: int) -> JobRecord | None:
        """One job with all of its attempts, or None."""
        ...

    async def look(self, which: JobFilter) -> JobLook:
        """Jobs with their attempts, newest first, at most `which.limit` of the first `which.span`
        that a walk comes by: its cost is bounded, however many jobs there are. Go on before
        `through_id` (see `store.searching`).
        """
        ...

    async def find(self, which: JobFilter) -> list[JobRecord]:
        """The jobs of one look."""
        ...

    async def briefs(self, ids: Sequence[int]) -> list[JobRecord]:
        """Those of these jobs that are there, in any order, as they stand: without payload, result,
        spent, logs, webhook and earlier attempts; long texts are cut, and only jobs in hand have
        their phases.
        """
        ...

    async def log(self, job_id: int, after: LogPosition) -> LogPage | None:
        """What the job has logged behind a position, also while it runs; None = there is no such
        job.
        """
        ...

    async def traceparents(self, ids: Sequence[int]) -> Mapping[int, str]:
        """Those of these jobs that have one."""
        ...

    async def why_facts(self, job_id: int) -> WhyFacts | None:
        """Where a job stands, all of it at one moment; None = there is no such job. Costs the same
        however many jobs there are.
        """
        ...
