"""Acting on one job or on many: which jobs a bulk action selects, what became of them; the
`control` part of an engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

import attrs

from musterd.store.lifecycle import EFFECTS, ENDED, LEASED, Action, JobState


@attrs.frozen
class ControlResult:
    """What an action came to. Where there is no such job both states are None."""

    found: bool
    state_before: JobState | None
    state_after: JobState | None
    requested: bool  # the job is leased: its holder has been asked, and will do it
    allowed: bool  # False = nothing was done, since the job's state does not allow it


@attrs.frozen
class Selection:
    """Jobs that fit in every respect; what is empty or None asks for nothing.

    A job's age counts from its end where it has ended, else from its creation. Failed jobs that
    are cleared are never meant: somebody has seen to them.
    """

    states: tuple[JobState, ...]
    kinds: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    priorities: tuple[int, ...] = ()
    older_seconds: float | None = None
    until_id: int | None = None  # only jobs up to this id: those that come later are not meant

    @property
    def walks(self) -> bool:
        """Whether all jobs must be looked through: no index by id knows the queued ones."""
        return not set(self.states) <= LEASED | RESTING

    @property
    def resting(self) -> tuple[JobState, ...]:
        """The states that are looked up in the index of resting jobs."""
        return () if self.walks else tuple(one for one in self.states if one in RESTING)

    @property
    def leased(self) -> bool:
        """Whether leased jobs are looked up in their own index."""
        return not self.walks and any(one in LEASED for one in self.states)


class Candidate(NamedTuple):
    """A job that fits."""

    id: int
    kind: str
    state: JobState


class SelectedJobs(NamedTuple):
    """What one look through a part of the jobs has found, in the order of their ids."""

    fitting: list[Candidate]
    through_id: int | None  # looked through up to this job; None = there was none left


class BulkResult(NamedTuple):
    """What a bulk action did to the jobs it was given; those in none of these no longer fit."""

    done: frozenset[int]  # with those whose holder was asked
    requested: frozenset[int]  # leased: their holders have been asked, and will do it
    refused: frozenset[int]  # their state does not allow it
    busy: frozenset[int]  # somebody else is writing to them: to be tried again


class Facts(NamedTuple):
    """What decides whether a job fits."""

    state: JobState
    kind: str
    target: str | None
    priority: int
    created_at: datetime
    finished_at: datetime | None
    cleared_at: datetime | None


class Obstacle(StrEnum):
    """What keeps a job from being deleted."""

    UNFINISHED = "unfinished"
    HALTS = "halts"  # its target
    UNTOLD = "untold"  # a message waits to be sent
    BUSY = "busy"  # one of its messages is being sent again at this moment


class Deletion(NamedTuple):
    """What became of a request. `state` is that before; None = there is no such job."""

    state: JobState | None
    target: str | None = None
    obstacle: Obstacle | None = None  # None = the job is gone

    @property
    def is_done(self) -> bool:
        return self.state is not None and self.obstacle is None


def obstacle_of(state: JobState, *, halts: bool, is_untold: bool) -> Obstacle | None:
    if state not in ENDED:
        return Obstacle.UNFINISHED
    if halts:
        return Obstacle.HALTS
    return Obstacle.UNTOLD if is_untold else None


class Control(Protocol):
    """Errors as for `Engine`."""

    async def apply(self, action: Action, job_id: int) -> ControlResult:
        """Does to one job what `lifecycle.EFFECTS` allows. Of a leased job it is a request, which
        its holder hears of at once by a hint, at the latest with its next renewal, and which no
        claim, retry or reap loses; a cancel goes before a pause.

        A resumed job is due now and has its whole budget of attempts again. A failed job that is
        cleared stays failed, and no longer halts its target.
        """
        ...

    async def select(self, which: Selection, after_id: int, span: int) -> SelectedJobs:
        """Looks through at most `span` jobs of the selection's states with greater ids, in the
        order of their ids. Begin with 0 and go on where it ended.
        """
        ...

    async def apply_many(self, action: Action, ids: Sequence[int], which: Selection) -> BulkResult:
        """Does to those of these jobs that still fit what `control` does to one, in one
        transaction. Never waits for a job that somebody else is writing to.
        """
        ...


RESTING = frozenset({JobState.PENDING, JobState.PAUSED, JobState.FAILED, JobState.CANCELED})


def states_for(action: Action) -> tuple[JobState, ...]:
    """The states in which a job may be told to do that."""
    return tuple(state for one, state in EFFECTS if one is action)


def fits(which: Selection, job: Facts, now: datetime) -> bool:
    """Whether a job is meant. `until_id` is the caller's matter."""
    return (
        job.state in which.states
        and job.cleared_at is None
        and (not which.kinds or job.kind in which.kinds)
        and (not which.targets or job.target in which.targets)
        and (not which.priorities or job.priority in which.priorities)
        and _is_old_enough(which.older_seconds, job, now)
    )


def _is_old_enough(older_seconds: float | None, job: Facts, now: datetime) -> bool:
    if older_seconds is None:
        return True
    has_ended = job.state in ENDED and job.finished_at is not None
    since = job.finished_at if has_ended and job.finished_at else job.created_at
    return (now - since).total_seconds() > older_seconds
