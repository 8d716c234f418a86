"""The life of a job, in one table. The database holds the same table as a trigger; a test compares
the two.

Each edge names what may cause it. `claim` leads to `running` at once where a worker is idle, to
`assigned` where the job waits at its node's desk; a job that ran before its start was written ends
straight from `assigned`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal


class JobState(StrEnum):
    """Where a job stands. Which state may follow which: `TRANSITIONS`."""

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
    """What may be asked of one job. What each does in which state: `EFFECTS`."""

    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"
    RELEASE = "release"
    CLEAR = "clear"

    @property
    def past(self) -> str:
        return f"{self.value}{'d' if self.value.endswith('e') else 'ed'}"


Request = Literal["cancel", "pause"]  # what the holder of a leased job may be asked for

P, Q, A, R = JobState.PENDING, JobState.QUEUED, JobState.ASSIGNED, JobState.RUNNING
Z, S, F, C = JobState.PAUSED, JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED

TRANSITIONS: dict[tuple[JobState, JobState], str] = {
    (P, Q): "release",
    (P, C): "cancel",
    (Q, A): "claim",
    (Q, R): "claim and start",
    (Q, C): "cancel",
    (Q, Z): "pause",
    (A, R): "start",
    (A, Q): "give back, or lease lost",
    (A, S): "settle",
    (A, F): "settle, or lease lost",
    (A, C): "settle",
    (A, Z): "pause, settle, or lease lost",
    (R, Q): "retry, snooze, give back, or lease lost",
    (R, S): "settle",
    (R, F): "settle, or lease lost",
    (R, C): "settle",
    (R, Z): "pause, or lease lost",
    (Z, Q): "resume",
    (Z, C): "cancel",
    (F, Q): "resume",
}

# What an action makes of a job that nobody holds; of a leased one it is a request to its holder,
# who settles it. An action that is not here is not allowed in that state.
EFFECTS: dict[tuple[Action, JobState], JobState] = {
    (Action.CANCEL, P): C,
    (Action.CANCEL, Q): C,
    (Action.CANCEL, Z): C,
    (Action.CANCEL, A): C,
    (Action.CANCEL, R): C,
    (Action.PAUSE, Q): Z,
    (Action.PAUSE, A): Z,
    (Action.PAUSE, R): Z,
    (Action.RESUME, Z): Q,
    (Action.RESUME, F): Q,
    (Action.RELEASE, P): Q,
    (Action.CLEAR, Z): C,
    (Action.CLEAR, F): F,
}

# Why a job is canceled or paused; the same words wherever it is done.
CANCELED_ON_REQUEST = "canceled on request"
PAUSED_ON_REQUEST = "Job was interrupted by user"
CLEARED_ON_REQUEST = "cleared on request"
REASONS: dict[Action, str | None] = {
    Action.CANCEL: CANCELED_ON_REQUEST,
    Action.PAUSE: PAUSED_ON_REQUEST,
    Action.RESUME: None,
    Action.RELEASE: None,
    Action.CLEAR: CLEARED_ON_REQUEST,
}

LEASED = frozenset({A, R})
ENDED = frozenset({S, F, C})
INITIAL = frozenset({P, Q})
