"""The phases of a job: how far each has come, and what it is called."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol
from uuid import UUID

import attrs

from musterd.store.lifecycle import LEASED, JobState

ALL_PERCENT = 100


class PhaseState(StrEnum):
    """Where a phase stands. `pending` and `canceled` follow from the state of its job."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"


@attrs.frozen
class PhaseRecord:
    """A phase as readers see it, its state made whole by the state of its job."""

    name: str
    state: PhaseState
    progress: float  # in percent
    result: str | None = None  # JSON text
    attempts: int = 0  # how often it was begun
    started_at: datetime | None = None  # of the latest attempt
    finished_at: datetime | None = None


@attrs.frozen
class KindRule:
    """What a node says of a kind to those who have no catalog at hand."""

    phases: tuple[str, ...] = ()
    webhook: str | None = None
    priority: int = 0


def rules_text(rules: Mapping[str, KindRule]) -> str:
    """The rules as JSON, for a store that takes them all at once."""
    listed = [{"kind": kind, **attrs.asdict(rule)} for kind, rule in sorted(rules.items())]
    return json.dumps(listed)


class PhaseEnd(NamedTuple):
    """How the phase ended in which an attempt ended; goes with the settlement."""

    name: str
    state: PhaseState  # succeeded | failed; running where it was interrupted
    result: str | None = None  # JSON text
    progress: float | None = None  # in percent, where it did not succeed
    names: tuple[str, ...] = ()  # of all phases of its job, in order, where it succeeded


class PhaseStart(NamedTuple):
    """An attempt at a job with phases begins."""

    id: int
    token: UUID
    worker: int | None
    started_epoch: float
    names: tuple[str, ...]  # of its phases, in order


class PhaseStep(NamedTuple):
    """A phase is finished, and the next one begins. `next` is never None: the last phase ends with
    its job's settlement.
    """

    id: int
    token: UUID
    finished: str
    result: str | None  # JSON text
    next: str
    names: tuple[str, ...]  # of all phases of its job, in order
    spent: str | None = None  # JSON text, of all attempts together; None = as it was


Results = Mapping[str, str | None]  # of finished phases, by name: JSON text, None = nothing


class Phases(Protocol):
    """The phases of one store's jobs. Errors as for `Engine`. Both methods may be sent again after
    a lost reply: what was written is not written, counted or recorded a second time. A phase whose
    beginning the store has lost (a standby took over that had not got it) is finished all the same.
    """

    async def begin(self, starts: Sequence[PhaseStart]) -> Mapping[int, Results]:
        """Attempts begin: these jobs run, and the first phase of each that is not finished does.

        Gives what is finished, by job. What is known of phases of other names is forgotten. The
        lease of a job that is not in the answer is lost: nothing was written for it.
        """
        ...

    async def advance(self, steps: Sequence[PhaseStep]) -> frozenset[int]:
        """Writes that phases are finished, their results, and that the next ones run, each fenced
        by its token; with an event each. Returns the ids that took it, now or before.
        """
        ...


def shown_state(stored: PhaseState, job: JobState) -> PhaseState:
    """What a phase is called; the view `jobs` of each engine has the same table. A cancel, a pause,
    a retry write nothing about phases: of a job that waits, all that is not finished is still to
    come; of one that has ended, it never comes.
    """
    if stored is PhaseState.SUCCEEDED or job is JobState.SUCCEEDED:
        return PhaseState.SUCCEEDED
    if job is JobState.CANCELED:
        return PhaseState.CANCELED
    if job is JobState.FAILED:
        return PhaseState.PENDING if stored is PhaseState.PENDING else PhaseState.FAILED
    if job in LEASED and stored is PhaseState.RUNNING:
        return PhaseState.RUNNING
    return PhaseState.PENDING  # also what failed in an attempt before


def made_whole(phases: Sequence[PhaseRecord], job: JobState) -> tuple[PhaseRecord, ...]:
    """The phases as readers see them; `state` of what is given is the stored one."""
    return tuple(_whole(phase, job) for phase in phases)


def _whole(phase: PhaseRecord, job: JobState) -> PhaseRecord:
    state = shown_state(phase.state, job)
    result = phase.result if phase.state is PhaseState.SUCCEEDED else None
    progress = phase.progress
    if state is PhaseState.SUCCEEDED:
        progress = float(ALL_PERCENT)
    elif state is PhaseState.PENDING:
        progress = 0.0
    return attrs.evolve(phase, state=state, result=result, progress=progress)


def share_percent(finished: int, percent: float, count: int) -> float:
    """How far a job with `count` phases has come that is so far into the one after `finished`."""
    return (ALL_PERCENT * finished + percent) / count


def rounded(percent: float) -> int:
    """In whole percent, a half upwards."""
    return math.floor(percent + 0.5)
