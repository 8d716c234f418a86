"""The queue as a whole: how long it is, who else works at it, whose turn a target is, and whether
an idle node may stop asking; the `queue` and `idle` parts of an engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol
from uuid import UUID

import attrs

from musterd.store.jobs import JobRecord
from musterd.store.lifecycle import JobState

BEHIND_BOUND = 10_000  # what stands behind is counted one by one up to here
FIRST_BEHIND = 10
WORK_BOUND = 10_000  # jobs that wait count as work for nodes up to here
LINE_MAX = 2_000  # rows of the line that one look reads


class Hint(NamedTuple):
    """What may have happened in the store."""

    new_work: bool
    requests: frozenset[int]  # leased jobs whose holder is asked for something
    duties: bool = False  # somebody gave one up


@attrs.frozen
class SpareCapacity:
    """How many more jobs the other nodes could run, by what they last said of themselves; and of
    these, those whose ids are lower than the asker's.
    """

    free: int = 0  # with idle workers, or with new ones
    free_before: int = 0
    unhired: int = 0  # with new workers only
    unhired_before: int = 0


class Waiting(NamedTuple):
    """Neighbours in line: jobs of one kind with one due time."""

    kind: str
    number: int
    last_id: int
    waited_seconds: float  # below 0: they become due in so long


@attrs.frozen
class Line:
    """The first jobs in line, in the order of claims, with those that become due soon; and how many
    more may stand behind them.
    """

    waiting: Sequence[Waiting] = ()
    unseen: int = 0


@attrs.frozen
class QueueView:
    """What the supervisor sees: bounded, however long the queue is."""

    due: int  # due and claimable, counted up to the limit asked for
    oldest_due_seconds: float  # how long the longest-waiting of them waits; 0 = none
    paused: bool
    parked: bool = False  # there are jobs that wait for their kind's cap; they are not in `due`
    others: SpareCapacity = SpareCapacity()  # what the other nodes could do
    lot: int = 0  # the same number for all who see the same first due job
    room: int | None = None  # how many more jobs may be leased; None = no bound was asked about
    line: Line | None = None  # None = it was not asked about


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
class TargetView:
    """Who has a target, and who waits for it. A job that no claim has met yet is not among them."""

    name: str
    holder: JobRecord  # it is leased, waits for its next attempt, halts the target, or is the next
    reserved: bool  # it is the next, or halts the target, without having been claimed for it
    behind: int  # how many wait, counted up to `BEHIND_BOUND`
    first_behind: tuple[int, ...]  # the first of them, in claim order

    @property
    def halted(self) -> bool:
        return self.holder.state in (JobState.PAUSED, JobState.FAILED)


class Queue(Protocol):
    """The queue of one store. Errors as for `Engine`."""

    async def observe(
        self,
        limit: int,
        me: UUID | None = None,
        leased_max: int | None = None,
        horizon_seconds: float | None = None,
    ) -> QueueView:
        """Counts due and claimable jobs up to `limit`; for the node `me`, how many more jobs the
        other nodes could run that live and are running; and, where there is a bound, how many more
        jobs may be leased. With `horizon_seconds` also reads the line, as far as jobs are due
        within so long.
        """
        ...

    async def next_due_seconds(self) -> float | None:
        """How long until the next queued job that is not yet due is; None = there is none."""
        ...

    async def counts(self) -> Counts:
        """Jobs by state. Costs the same however many there are."""
        ...

    async def waiting_kinds(self, bound: int) -> dict[str, int]:
        """How many of the first claimable jobs are of each kind: of those that are due, and of
        those that are not yet. Looks at about `bound` of both, however many there are.
        """
        ...

    async def work_ahead(self, horizon_seconds: float) -> int:
        """How many jobs nodes are wanted for, whether there are any nodes or not: those in hand,
        and up to `WORK_BOUND` of those that are due or become due within so long, unless the queue
        is paused. At least 1 where parked jobs have to be looked at, or a webhook is to be sent.
        """
        ...

    async def target(self, name: str) -> TargetView | None:
        """Who has this target, and who waits; None = nobody does, as far as claims have seen."""
        ...

    async def pause(self, by: str) -> bool:
        """No claim that starts after this takes a job. False = it was paused already (and by whom
        stays as it was).
        """
        ...

    async def resume(self) -> bool:
        """Claims go on. False = it was not paused."""
        ...

    async def wait_for_hint(self) -> Hint:
        """Returns when there may be new work, or a request about a leased job; never where there
        are no hints. One may be lost, doubled or late: polling and renewals are the truth. Raises
        `StoreUnavailable` when the source of hints broke; call again after a pause.
        """
        ...


@attrs.frozen
class IdleCheck:
    """`at_rest`: nothing becomes claimable without a hint, but by the passing of time: nothing is
    in hand on any node, or waits for room, and nobody is writing jobs. `due`: there are jobs to
    claim now; a paused queue has none. `next_due_seconds`: until the next job is due; None = there
    is none that is not yet due.
    """

    at_rest: bool
    due: bool
    next_due_seconds: float | None


class IdleChecks(Protocol):
    """One part of an engine."""

    async def check(self, me: UUID) -> IdleCheck | None:
        """Asked over the very connection that hints come by, so that an answer shows that it lives.
        None = hints are not to be relied on: there are none, or nothing came back, or what is there
        is not the store in which the node `me` has said that it lives.
        """
        ...
