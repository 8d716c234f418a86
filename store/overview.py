"""The overview: jobs as a screen shows them, narrow and bounded, however many there are.

Jobs come in sorts, each along an index of its own: in hand, in line (in the order of claims), at
their kind's limit, behind another of their target, and at rest, the newest first.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple, Protocol

import attrs

from musterd.store.control import RESTING
from musterd.store.lifecycle import LEASED, JobState
from musterd.store.report import error_line

TEXT_LENGTH_MAX = 2_000  # of an error
NOTE_SHOWN_MAX = 200  # of a note, on a screen
TARGETS_NAMED = 3
COUNTED_MAX = 1_000  # halted targets and leases are counted up to here
FAILING_SECONDS = 3600.0  # failures that are older are no news
ENDS_LOOKED = 20  # of each kind of which jobs have failed, the latest
FAILING_KINDS_MAX = 200  # are looked at
SHOWN_FIRST = (
    *(JobState.RUNNING, JobState.ASSIGNED, JobState.QUEUED),
    *(JobState.PAUSED, JobState.FAILED),
)


@attrs.frozen
class OverviewFilter:
    """Which jobs. Of each sort the first `span` are looked at, and `bound` of them are given."""

    states: tuple[JobState, ...] = SHOWN_FIRST
    kind: str | None = None
    target: str | None = None
    bound: int = 100
    span: int = 100

    @property
    def leased(self) -> bool:
        return any(state in LEASED for state in self.states)

    @property
    def resting(self) -> tuple[JobState, ...]:
        """The states that are looked up one by one."""
        return tuple(state for state in self.states if state in RESTING)


class OverviewJob(NamedTuple):
    """A job without its payload, its result and its history."""

    id: int
    kind: str
    state: JobState
    target: str | None
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
    request: str | None  # what its holder is asked for
    progress: float | None  # in percent
    note: str | None
    error: str | None  # JSON text, cut
    reason: str | None
    parked: bool  # its kind is at its limit
    behind: bool  # another job of its target goes first

    @property
    def remark(self) -> str:
        """What there is to say of it, in one line."""
        said = self.note if self.state in LEASED else error_line(self.error) or self.reason
        return said or ""


@attrs.frozen
class OverviewView:
    """The jobs, sort by sort, at one moment of the store."""

    now: datetime
    jobs: tuple[OverviewJob, ...]


class KindEnds(NamedTuple):
    """How the latest jobs of a kind ended: those that failed, and all of them. A failed job that
    somebody resumed or cleared is dealt with, and one that halts its target is told of as such.
    """

    kind: str
    failed: int
    ended: int


@attrs.frozen
class Troubles:
    """What waits for somebody, and what is late: counted up to `COUNTED_MAX`."""

    halted_targets: int
    halted_first: tuple[str, ...]
    oldest_id: int | None  # the job in hand that has run the longest
    oldest_kind: str | None
    oldest_seconds: float | None
    leases_overdue: int  # have run out, and nobody has ended them
    failing: tuple[KindEnds, ...] = ()  # the kinds of which some of the latest jobs failed


class Overview(Protocol):
    """Errors as for `Engine`."""

    async def jobs(self, which: OverviewFilter) -> OverviewView: ...

    async def troubles(self) -> Troubles: ...


def in_order(jobs: list[OverviewJob], states: tuple[JobState, ...]) -> tuple[OverviewJob, ...]:
    """Those of the states; those in hand first, each sort in the order in which it came."""
    wanted = frozenset(states)
    return tuple(job for job in sorted(jobs, key=_sort_of) if job.state in wanted)


def _sort_of(job: OverviewJob) -> int:
    order = (JobState.QUEUED, JobState.PENDING, JobState.PAUSED, JobState.FAILED)
    if job.state in LEASED:
        return 0
    if job.state is JobState.QUEUED:
        return 1 + job.parked + 2 * job.behind
    return 4 + (order.index(job.state) if job.state in order else len(order))
