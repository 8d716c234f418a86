"""The values of the model: a job, a claim of it, and how an attempt may end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

import attrs

from musterd.store.lifecycle import Action, JobState

LEASED = (JobState.ASSIGNED, JobState.RUNNING)
ENDED = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED)


@attrs.define
class Job:
    """`attempts`: number and outcome of each. `phases`: by name, whether it is finished."""

    id: int
    kind: str
    target: str | None
    priority: int
    state: JobState
    run_at: float
    max_attempts: int | None
    key: str | None = None
    key_until: float | None = None  # None = until it has ended
    attempt: int = 0
    forgiven: int = 0
    lease_until: float | None = None
    finished_at: float | None = None
    request: Action | None = None
    progress: float | None = None
    is_cleared: bool = False
    is_stale: bool = False
    is_gone: bool = False
    attempts: list[tuple[int, str | None]] = attrs.field(factory=list[tuple[int, str | None]])
    phases: dict[str, bool] = attrs.field(factory=dict[str, bool])
    events: list[str] = attrs.field(factory=list[str])

    @property
    def place(self) -> tuple[int, float, int]:
        """In claim order."""
        return (-self.priority, self.run_at, self.id)

    @property
    def halts(self) -> bool:
        """Whether nobody may take its target for the first time."""
        failed = self.state is JobState.FAILED and not self.is_cleared
        return not self.is_gone and (self.state is JobState.PAUSED or failed)

    def holds_key(self, now: float) -> bool:
        if self.key_until is not None:
            return self.key_until > now
        return self.state not in ENDED


class Held(NamedTuple):
    """A claim that somebody holds, or once held. Each store has given its own token for it."""

    id: int
    attempt: int
    worker: int | None
    target: str | None
    tokens: tuple[UUID, ...]
    forged: bool = False


class Verdict(NamedTuple):
    """How an attempt ends."""

    state: JobState
    outcome: str
    forgive: bool = False
    has_started: bool = True
    delay_seconds: float | None = None
    percent: float | None = None
    finishes: str | None = None  # the phase that it ended in, and has finished
    names: tuple[str, ...] = ()  # of all phases, where it finishes one

    def among(self, phases: Sequence[str]) -> Verdict:
        """The same for a job with these phases, and the one that it finishes."""
        if self.finishes is None:
            return self
        return self._replace(names=tuple(dict.fromkeys((*phases, self.finishes))))
