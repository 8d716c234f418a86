"""What it means to run a claim: the promise between an attempt and whatever does the work."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import attrs

from musterd.catalog.behaviour import JSON
from musterd.catalog.kinds import WorkKind
from musterd.store.leases import Claim
from musterd.workers.context import PhaseFacts
from musterd.workers.outcome import Outcome


class Note(NamedTuple):
    """Progress of a job under way: in percent, with a word about it."""

    percent: float
    note: str | None
    phase: str | None = None  # of which `phase_percent` tells; `percent` is the whole job's
    phase_percent: float | None = None


@attrs.define(eq=False)
class Traces:
    """What is known of an attempt even if it is cancelled: a runner leaves it here on its way."""

    log: str | None = None
    spent: str | None = None  # JSON text


class Assignment(NamedTuple):
    """One claim, ready to be run."""

    claim: Claim
    kind: WorkKind
    payload: JSON
    remaining_seconds: Callable[[], float]  # how long the lease may still be trusted
    tell: Callable[[Note], None]  # takes a note of progress; returns at once
    traces: Traces = Traces()  # a fresh one for each attempt, where somebody wants to read it
    phase: PhaseFacts | None = None  # where `kind` is one phase of a kind


class Runner(Protocol):
    """Does the work of one kind of behaviour, for one worker, one job at a time."""

    async def run(self, assignment: Assignment) -> Outcome:
        """Runs the job to its end. Whatever the job does wrong is an Outcome, never an exception.

        Cancelled, it stops the work first (TERM, the kind's `grace_seconds`, KILL) and only then
        lets the cancel out; nothing of the job is left running.
        """
        ...

    async def close(self) -> None:
        """Gives back what it keeps between jobs. Bounded; safe to call twice."""
        ...
