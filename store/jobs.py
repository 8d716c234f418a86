"""The jobs of a store: what callers ask for, what readers see, and the `jobs` part of an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol

import attrs

from musterd.store.job_log import LogPage, LogPosition
from musterd.store.lifecycle import AttemptOutcome, JobState, Request
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


@attrs.frozen
class JobFilter:
    """Which jobs to list; newest first."""

    states: tuple[JobState, ...] = ()
    kind: str | None = None
    limit: int = 50
    before_id: int | None = None  # only jobs with a smaller id: the next page
    target: str | None = None


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

    async def find(self, which: JobFilter) -> list[JobRecord]:
        """Jobs with their attempts, newest first, at most `which.limit`."""
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
