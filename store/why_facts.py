"""Where a job stands: all that decides whether it can run now, as one moment of the store shows it.

Values only; `store/why.py` draws the conclusions.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import attrs

from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.nodes import NodeRecord

LINE_BOUND = 10_000  # jobs before a job are counted up to here
LEASED_BOUND = 2_000  # jobs in hand that are looked at
NODES_BOUND = 200


@attrs.frozen
class JobFacts:
    """The job's own row. `last_outcome` is how the last of its ended attempts ended."""

    id: int
    kind: str
    state: JobState
    priority: int
    run_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    attempt: int
    node: str | None
    worker: int | None
    lease_expires_at: datetime | None
    request: str | None
    requested_at: datetime | None
    reason: str | None
    error: str | None  # JSON text
    target: str | None
    parked: bool
    cleared_at: datetime | None
    last_outcome: AttemptOutcome | None


@attrs.frozen
class TargetJob:
    """Another job of the same target that has it to itself, or halts it."""

    id: int
    state: JobState
    since: datetime | None
    run_at: datetime
    reason: str | None
    holds: bool  # the target is its own


@attrs.frozen
class Line:
    """The first `LINE_BOUND` claimable jobs, by kind: those before this job, and all of them. Of a
    target only the job whose turn it is; `of_target` of this job's own are before it.
    """

    before: Mapping[str, int]
    all: Mapping[str, int]
    of_target: int
    is_whole: bool  # no more than the bound are claimable
    includes_it: bool  # this job is among those that were looked at


@attrs.frozen
class Leased:
    """A job in somebody's hand. `ran_seconds` None = it has not started."""

    id: int
    kind: str
    node: str
    worker: int | None
    ran_seconds: float | None


@attrs.frozen
class WhyFacts:
    """Everything about one job, read in one transaction. `nodes` are the live ones."""

    job: JobFacts
    now: datetime
    paused_at: datetime | None
    paused_by: str | None
    in_target: tuple[TargetJob, ...]
    behind_before: int  # jobs of its target before it that wait for the target, to the bound
    parked_before: int  # jobs of its kind before it that wait for the kind's cap, to the bound
    line: Line
    leased: tuple[Leased, ...]  # at most `LEASED_BOUND`
    leased_total: int
    nodes: tuple[NodeRecord, ...]
    parked_kinds: frozenset[str]
