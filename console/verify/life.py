"""What the log has told of one job so far, and how the life of a job that rests is kept in one
number. Pure.
"""

from __future__ import annotations

from datetime import datetime

import attrs

from musterd.store.job import JobState

STATES = tuple(JobState)
_PLACE = {state: place for place, state in enumerate(STATES)}
_ATTEMPT_BITS, _STATE_BITS = 32, 3
_ATTEMPT_MASK, _STATE_MASK = (1 << _ATTEMPT_BITS) - 1, (1 << _STATE_BITS) - 1

# What an event makes of its job. `job.enqueued` says it itself where it is not queued.
BECOMES: dict[str, JobState] = {
    "job.enqueued": JobState.QUEUED,
    "job.released": JobState.QUEUED,
    "job.assigned": JobState.ASSIGNED,
    "job.started": JobState.RUNNING,
    "job.retrying": JobState.QUEUED,
    "job.requeued": JobState.QUEUED,
    "job.succeeded": JobState.SUCCEEDED,
    "job.failed": JobState.FAILED,
    "job.canceled": JobState.CANCELED,
    "job.paused": JobState.PAUSED,
    "job.resumed": JobState.QUEUED,
}


@attrs.define(eq=False, init=False)
class Life:
    """`state`, `attempt` None = the log begins later than the job. `last`: the position of the
    event that made it what it is; `claimed`: that of its latest claim. `is_known`: whether it has
    its target can be told.
    """

    state: JobState | None
    attempt: int | None
    last: int
    claimed: int
    node: str | None
    target: str | None
    due: datetime | None
    phases: tuple[str, ...]
    is_known: bool
    has_ended: bool
    is_cleared: bool
    is_stale: bool

    def __init__(self, state: JobState | None, attempt: int | None, last: int) -> None:
        self.state, self.attempt, self.last = state, attempt, last
        self.claimed = 0
        self.node = self.target = self.due = None
        self.phases = ()
        self.is_known = self.has_ended = self.is_cleared = self.is_stale = False

    @property
    def halts(self) -> bool:
        return self.target is not None and (
            self.state is JobState.PAUSED or (self.state is JobState.FAILED and not self.is_cleared)
        )


def packed(life: Life) -> int | None:
    """A job that has ended in one number; None = there is more to remember of it."""
    state, attempt = life.state, life.attempt
    if state is JobState.FAILED and (life.target is not None or life.phases):
        return None  # it may go on where it was
    if state is None or not life.has_ended or attempt is None or attempt > _ATTEMPT_MASK:
        return None
    flags = life.is_stale << 1 | life.is_cleared
    return ((life.last << _ATTEMPT_BITS | attempt) << 2 | flags) << _STATE_BITS | _PLACE[state]


def unpacked(number: int) -> Life:
    rest = number >> _STATE_BITS
    state, flags, rest = STATES[number & _STATE_MASK], rest & 3, rest >> 2
    life = Life(state, rest & _ATTEMPT_MASK, rest >> _ATTEMPT_BITS)
    life.has_ended = True
    life.is_stale, life.is_cleared = bool(flags & 2), bool(flags & 1)
    return life


def packed_state(number: int) -> JobState:
    return STATES[number & _STATE_MASK]


def packed_attempt(number: int) -> int:
    return number >> _STATE_BITS + 2 & _ATTEMPT_MASK
