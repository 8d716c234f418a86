"""The line in the model: who comes in, and whose turn it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import attrs

from musterd.store.lifecycle import JobState
from tests.stateful.model_job import LEASED, Job

P, Q, A, R = JobState.PENDING, JobState.QUEUED, JobState.ASSIGNED, JobState.RUNNING


class Wanted(NamedTuple):
    """A job that somebody wants done."""

    kind: str
    target: str | None
    priority: int
    delay_seconds: float | None
    hold: bool
    key: str | None
    scope: str | float
    max_attempts: int | None


class Taken(NamedTuple):
    """What is known of a claim."""

    id: int
    attempt: int
    max_attempts: int | None
    forgiven: int
    waited_seconds: float
    worker: int | None


@attrs.define
class Line:
    """`having`: who has each target: it was claimed, and has not ended since."""

    now: float
    caps: Mapping[str, int] = attrs.field(factory=dict[str, int])
    leased_max: int | None = None
    jobs: dict[int, Job] = attrs.field(factory=dict[int, Job])
    having: dict[str, int] = attrs.field(factory=dict[str, int])
    is_paused: bool = False

    def enqueue(self, wanted: Wanted) -> tuple[int, bool]:
        """Which job it is, and whether it is new."""
        for job in self.jobs.values():
            if wanted.key is not None and job.key == wanted.key and job.holds_key(self.now):
                return job.id, False
        run_at = self.now + (wanted.delay_seconds or 0)
        job = Job(
            len(self.jobs) + 1, wanted.kind, wanted.target, wanted.priority,
            P if wanted.hold else Q, run_at, wanted.max_attempts,
        )  # fmt: skip
        if wanted.key is not None:
            self._hand_key(job, wanted)
        self.jobs[job.id] = job
        job.events.append("enqueued")
        return job.id, True

    def _hand_key(self, job: Job, wanted: Wanted) -> None:
        for other in self.jobs.values():
            if other.key == wanted.key:
                other.key = None
        job.key = wanted.key
        if wanted.scope == "forever":
            job.key_until = float("inf")
        elif not isinstance(wanted.scope, str):
            job.key_until = self.now + wanted.scope

    def claim(self, workers: Sequence[int], ahead: int, lease_seconds: float) -> list[Taken]:
        taken: list[Taken] = []
        for job in self._claimable(len(workers) + ahead):
            worker = workers[len(taken)] if len(taken) < len(workers) else None
            job.attempt += 1
            job.state = A if worker is None else R
            job.lease_until = self.now + lease_seconds
            job.finished_at = None
            job.progress = None
            job.attempts.append((job.attempt, None))
            job.events.append("assigned" if worker is None else "started")
            if job.target is not None:
                self.having[job.target] = job.id
            waited = max(0.0, self.now - job.run_at)
            budget = (job.max_attempts, job.forgiven)
            taken.append(Taken(job.id, job.attempt, *budget, waited, worker))
        return taken

    def _claimable(self, count: int) -> list[Job]:
        """The first ones in claim order. Of a target the first one alone may run; if its kind has
        no room the others wait with it.
        """
        leased = [job for job in self.jobs.values() if job.state in LEASED]
        if self.leased_max is not None:
            count = min(count, self.leased_max - len(leased))
        room = {
            kind: cap - sum(job.kind == kind for job in leased) for kind, cap in self.caps.items()
        }
        closed = {job.target for job in self.jobs.values() if job.target and job.halts}
        found: list[Job] = []
        waiting = [one for one in self.jobs.values() if one.state is Q and one.run_at <= self.now]
        for job in sorted(waiting, key=lambda one: one.place):
            if len(found) >= count or self.is_paused:
                break
            if job.target is not None:
                holder = self.having.get(job.target)
                if holder != job.id and (holder is not None or job.target in closed):
                    continue
                closed.add(job.target)
            if room.get(job.kind, 1) > 0:
                found.append(job)
                room[job.kind] = room.get(job.kind, len(self.jobs)) - 1
        return found
