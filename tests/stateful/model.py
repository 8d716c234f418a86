"""What a store promises, in plain Python: a dict of jobs, and rules that know nothing of SQL.

Each method does what the engine's of the same name does, and gives the answer that is wanted of it.
A lease is known by the number of the attempt, which only grows: tokens are the stores' own matter.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import attrs

from musterd.store.lifecycle import Action, JobState
from tests.stateful.model_job import ENDED, LEASED, Held, Job, Verdict
from tests.stateful.model_line import Line

P, Q, A, R = JobState.PENDING, JobState.QUEUED, JobState.ASSIGNED, JobState.RUNNING
Z, S, F, C = JobState.PAUSED, JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED

# What may be asked of a job in which state, and what it becomes; docs/states.md has this table.
ALLOWED: dict[Action, dict[JobState, JobState]] = {
    Action.CANCEL: {P: C, Q: C, A: A, R: R, Z: C},
    Action.PAUSE: {Q: Z, A: A, R: R},
    Action.RESUME: {Z: Q, F: Q},
    Action.RELEASE: {P: Q},
    Action.CLEAR: {Z: C, F: F},
}
ON_LOST = {"requeue": Q, "fail": F, "pause": Z}
TOLD_OF = {Action.RESUME: "resumed", Action.RELEASE: "released"}


class Done(NamedTuple):
    """What an action came to."""

    before: JobState | None
    after: JobState | None
    requested: bool
    allowed: bool


@attrs.define
class Model(Line):
    """The whole of it."""

    def standing(self, held: Held) -> Job | None:
        """The job, if it is still leased under this claim."""
        job = self.jobs[held.id]
        stands = job.state in LEASED and job.attempt == held.attempt and not held.forged
        return job if stands else None

    def settle(self, held: Held, verdict: Verdict) -> tuple[bool, JobState | None]:
        """Whether it was rejected, and what the job became if that is not what was wanted."""
        job = self.standing(held)
        if job is None:
            return True, None
        if job.state is A and verdict.has_started:
            job.events.append("started")
        if verdict.percent is not None:
            job.progress = verdict.percent
            job.events.append("progress")
        self._end_phase(job, verdict)
        state, outcome = verdict.state, verdict.outcome
        if state in (Q, Z) and job.request is not None:
            state = C if job.request is Action.CANCEL else Z
            outcome = "failed" if outcome == "retrying" else outcome
        if verdict.forgive:
            job.forgiven += 1
            job.max_attempts = None if job.max_attempts is None else job.max_attempts + 1
        if state is Q and verdict.delay_seconds is not None:
            job.run_at = self.now + verdict.delay_seconds
        job.finished_at = self.now
        self._end_attempt(job, state, outcome)
        return False, state if state is not verdict.state else None

    def _end_phase(self, job: Job, verdict: Verdict) -> None:
        name = verdict.finishes
        if name is not None and not job.phases.get(name):  # also one whose beginning was lost
            job.phases[name] = True
            job.events.append("phase_completed")

    def _end_attempt(self, job: Job, state: JobState, outcome: str) -> None:
        job.attempts[-1] = (job.attempt, outcome)
        if state is Q:
            job.events.append("retrying" if outcome == "retrying" else "requeued")
        else:
            job.events.append(state.value)
        job.request = job.lease_until = None
        self._become(job, state)

    def _become(self, job: Job, state: JobState) -> None:
        job.state = state
        gone = state in (S, C) or (state is F and job.is_cleared)
        if gone and job.target is not None and self.having.get(job.target) == job.id:
            del self.having[job.target]

    def renew(
        self, held: Held, lease_seconds: float, *, has_started: bool
    ) -> tuple[bool, str | None]:
        """Whether it was kept, and what its holder is asked for."""
        job = self.standing(held)
        if job is None or job.lease_until is None or job.lease_until <= self.now:
            return False, None  # one that has run out is lost, reaped or not
        job.lease_until = self.now + lease_seconds
        if job.state is A and has_started:
            job.state = R
            job.events.append("started")
        return True, None if job.request is None else job.request.value

    def note_progress(self, held: Held, percent: float | None) -> bool:
        job = self.standing(held)
        if job is not None and percent is not None:
            job.progress = percent
            job.events.append("progress")
        return job is not None

    def begin_phases(self, held: Held, names: Sequence[str]) -> list[str] | None:
        """What is finished; None = its lease is lost."""
        job = self.standing(held)
        if job is None:
            return None
        job.phases = {name: job.phases.get(name, False) for name in names}
        if job.state is A:
            job.state = R
            job.events.append("started")
        return self._reach(job)

    def advance(self, held: Held, finished: str) -> bool:
        job = self.standing(held)
        if job is None:
            return False
        if not job.phases.get(finished):
            job.phases[finished] = True
            job.events.append("phase_completed")
            self._reach(job)
        return True

    def _reach(self, job: Job) -> list[str]:
        done = [name for name, is_finished in job.phases.items() if is_finished]
        job.progress = max(job.progress or 0.0, 100 * len(done) / len(job.phases))
        return done

    def reap(self, rule: str, max_attempts: int, batch: int) -> list[tuple[int, int, JobState]]:
        reaped: list[tuple[int, int, JobState]] = []
        for job in self.jobs.values():
            if job.lease_until is None or job.lease_until > self.now or len(reaped) == batch:
                continue
            budget = job.max_attempts
            if budget is None:
                budget = max_attempts + job.forgiven
            state = ON_LOST[rule] if job.attempt < budget else F
            if job.request is not None:
                state = C if job.request is Action.CANCEL else Z
            job.finished_at = self.now
            self._end_attempt(job, state, "lost")
            reaped.append((job.id, job.attempt, state))
        return reaped

    def control(self, action: Action, job_id: int) -> Done:
        job = self.jobs.get(job_id)
        if job is None or job.is_gone:
            return Done(None, None, requested=False, allowed=False)
        before, after = job.state, ALLOWED[action].get(job.state)
        if after is None or (action is Action.PAUSE and job.request is Action.CANCEL):
            return Done(before, before, requested=False, allowed=False)
        if before in LEASED:
            job.request = action
            return Done(before, before, requested=True, allowed=True)
        if action is Action.CLEAR and before is F:
            if not job.is_cleared:
                job.events.append("cleared")
            job.is_cleared = True
        else:
            self._move(job, action, after)
        self._become(job, after)
        return Done(before, after, requested=False, allowed=True)

    def _move(self, job: Job, action: Action, after: JobState) -> None:
        job.events.append(TOLD_OF.get(action, after.value))
        job.is_stale = False
        job.is_cleared = action is Action.CLEAR
        if after is C:
            job.finished_at = self.now
        if action is Action.RESUME:
            asked_for = job.run_at if (job.attempt, "snoozed") in job.attempts else self.now
            job.run_at = max(asked_for, self.now)
            used = job.attempt - job.forgiven
            job.max_attempts = None if job.max_attempts is None else job.max_attempts + used
            job.forgiven = job.attempt

    def control_many(
        self, action: Action, ids: Sequence[int], states: Collection[JobState]
    ) -> dict[int, Done]:
        """What was done to those that fit."""
        meant = [self.jobs[one] for one in sorted(set(ids)) if one in self.jobs]
        return {
            job.id: self.control(action, job.id)
            for job in meant
            if not job.is_gone and job.state in states and not job.is_cleared
        }  # fmt: skip

    def mark(self, age_seconds: float) -> int:
        ripe = [job for job in self._ripe(age_seconds) if not job.is_stale]
        for job in ripe:
            job.is_stale = True
            job.events.append("stale")
        return len(ripe)

    def delete(self, age_seconds: float) -> int:
        ripe = [job for job in self._ripe(age_seconds) if job.is_stale]
        for job in ripe:
            job.is_gone = True
            job.events.append("deleted")
        return len(ripe)

    def _ripe(self, age_seconds: float) -> list[Job]:
        return [
            job for job in self.jobs.values()
            if job.state in ENDED and not job.is_gone
            and not (job.target is not None and job.halts)
            and job.finished_at is not None and job.finished_at <= self.now - age_seconds
        ]  # fmt: skip
