"""What must be true of two stores and the model after each step, and at the end."""

from __future__ import annotations

import itertools
from typing import Any

import trio

from musterd.store.jobs import JobRecord
from musterd.store.lifecycle import JobState
from tests.contract import target_tools
from tests.contract.event_tools import state_told
from tests.stateful.lockstep import Asked, Lockstep
from tests.stateful.model import Model
from tests.stateful.model_job import ENDED, LEASED, Job

Row = tuple[Any, ...]


async def compare_stands(both: Lockstep, model: Model) -> None:
    await trio.lowlevel.checkpoint()
    expected = [_stand(job) for job in model.jobs.values() if not job.is_gone]
    for one in both.both:
        found = [(one.number(row[0]), *row[1:]) for row in one.store.stands()]
        assert found == expected, f"{one.engine.name}:\n{_difference(found, expected)}"
    check_laws(model)


def _difference(found: list[Row], expected: list[Row]) -> str:
    wrong = [f"  found {row}" for row in found if row not in expected]
    return "\n".join(wrong + [f"  wanted {row}" for row in expected if row not in found])


def _stand(job: Job) -> Row:
    request = None if job.request is None else job.request.value
    budget = (job.max_attempts, job.forgiven)
    times = (job.run_at, job.finished_at, job.lease_until)
    about = (job.id, job.state, job.attempt)
    return (*about, *budget, request, *times, job.is_cleared, job.is_stale)


def check_laws(model: Model) -> None:
    """What the model itself may never say: a mistake of its own would hide the stores'."""
    leased = [job for job in model.jobs.values() if job.state in LEASED]
    targets = [job.target for job in leased if job.target is not None]
    assert len(targets) == len(set(targets)), "two jobs of a target are in hand"
    for job in model.jobs.values():
        assert (job.lease_until is not None) is (job.state in LEASED)
        assert [number for number, _ in job.attempts] == list(range(1, job.attempt + 1))


async def compare_all(both: Lockstep, model: Model) -> None:
    """As readers see it: jobs, counts, events."""
    records: list[JobRecord] = await both.ask("records", Asked.records)
    by_number = {one.id: one for one in records}
    for job in model.jobs.values():
        assert (job.id not in by_number) is job.is_gone
        if not job.is_gone:
            assert _seen(by_number[job.id]) == _wanted(job)
    await _compare_counts(both, model)
    await _compare_events(both, model)
    for one in both.both:
        target_tools.check(one.store)
        assert one.store.faults() == []


def _seen(record: JobRecord) -> Row:
    attempts = [(one.attempt, one.outcome and one.outcome.value) for one in record.attempts]
    finished = [one.name for one in record.phases if one.result is not None]
    return (attempts, record.progress or 0.0, finished)


def _wanted(job: Job) -> Row:
    finished = [name for name, is_finished in job.phases.items() if is_finished]
    return (job.attempts, job.progress or 0.0, finished)


async def _compare_counts(both: Lockstep, model: Model) -> None:
    counted = dict.fromkeys(JobState, 0)
    for job in model.jobs.values():
        counted[job.state] += not job.is_gone
    waiting = [job for job in model.jobs.values() if job.state is JobState.QUEUED]
    later = [job.run_at - model.now for job in waiting if job.run_at > model.now]
    halted = {job.target for job in model.jobs.values() if job.target and job.halts}

    async def count(one: Asked) -> tuple[Any, ...]:
        counts = await one.engine.queue.counts()
        seconds = await one.engine.queue.next_due_seconds()
        by_state = {JobState(state): number for state, number in counts.by_state.items()}
        total = (counts.enqueued_total, counts.targets_halted, counts.paused_at is not None)
        return by_state, total, None if seconds is None else round(seconds, 3)

    by_state, total, seconds = await both.ask("counts", count)
    assert {state: by_state.get(state, 0) for state in JobState} == counted
    assert total == (len(model.jobs), len(halted), model.is_paused)
    assert seconds == (min(later) if later else None)


async def _compare_events(both: Lockstep, model: Model) -> None:
    events = await both.ask("events", Asked.told)
    for job in model.jobs.values():
        told = [one for one in events if one.job_id == job.id]
        assert [one.type.removeprefix("job.") for one in told] == job.events
        states = [state for one in told if (state := state_told(one)) is not None]
        assert states[-1] is job.state, "the last event says another state than the job has"
        if job.state in ENDED and not job.is_cleared:
            assert all(one != other for one, other in itertools.pairwise(states))
