"""Which jobs a bulk action is about, and what the store says of them: values. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import attrs

from musterd.store.job import Action, JobState
from musterd.store.lifecycle import EFFECTS, ENDED, LEASED


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


class Look(NamedTuple):
    """What one look through a part of the jobs has found, in the order of their ids."""

    fitting: list[Candidate]
    through_id: int | None  # looked through up to this job; None = there was none left


class Step(NamedTuple):
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
