"""What the phases of a job are called: it follows from what is stored of each, and from the state
of the job. Pure. The view `jobs` of each engine has the same table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from musterd.store.jobs import JobRecord
from musterd.store.lifecycle import LEASED, JobState
from musterd.store.phases import PhaseRecord, PhaseState

ALL_PERCENT = 100


def shown_state(stored: PhaseState, job: JobState) -> PhaseState:
    """What a phase is called. A cancel, a pause, a retry write nothing about phases: of a job that
    waits, all that is not finished is still to come; of one that has ended, it never comes.
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


def overall(record: JobRecord) -> int:
    """How far a job has come, in whole percent; a half is rounded up."""
    if record.state is JobState.SUCCEEDED:
        return ALL_PERCENT
    finished = sum(phase.state is PhaseState.SUCCEEDED for phase in record.phases)
    at_least = share_percent(finished, 0.0, len(record.phases)) if record.phases else 0.0
    return rounded(max(record.progress or 0.0, at_least))


def current(record: JobRecord) -> str | None:
    """The phase that a job is in, or in which it stopped: the first that is not finished, once the
    job has begun its phases.
    """
    if not any(phase.attempts for phase in record.phases):
        return None
    rest = (each.name for each in record.phases if each.state is not PhaseState.SUCCEEDED)
    return next(rest, None)


def share_percent(finished: int, percent: float, count: int) -> float:
    """How far a job with `count` phases has come that is so far into the one after `finished`."""
    return (ALL_PERCENT * finished + percent) / count


def rounded(percent: float) -> int:
    """In whole percent, a half upwards."""
    return math.floor(percent + 0.5)
