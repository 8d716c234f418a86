"""The phases of jobs in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

from musterd.store.leases import Settlement
from musterd.store.lifecycle import JobState
from musterd.store.phases import PhaseRecord, PhaseStart, PhaseState, PhaseStep, Results, made_whole
from musterd.store.postgres.statements import (
    Params,
    Row,
    Run,
    epochs,
    given_params,
    numbers,
    texts,
    words,
)


class PostgresPhases:
    """See `store.phases` for what each method promises."""

    def __init__(self, run: Run) -> None:
        self._run = run

    async def begin(self, starts: Sequence[PhaseStart]) -> Mapping[int, Results]:
        in_order = sorted(starts, key=attrgetter("id"))
        params = {
            **given_params((start.id, start.token) for start in in_order),
            "started": numbers(start.id for start in in_order),
            "workers": numbers(start.worker for start in in_order),
            "started_epochs": epochs([start.started_epoch for start in in_order]),
            **_named([(start.id, start.names) for start in in_order]),
            "lease_seconds": None,
        }
        begun: dict[int, dict[str, str | None]] = {}
        for job_id, name, result in await self._run("begin_phases", params):
            finished = begun.setdefault(job_id, {})
            if name is not None:
                finished[name] = result
        return begun

    async def advance(self, steps: Sequence[PhaseStep]) -> frozenset[int]:
        in_order = sorted(steps, key=attrgetter("id"))
        params = {
            "ids": numbers(step.id for step in in_order),
            "tokens": words(step.token for step in in_order),
            "finished": texts(step.finished for step in in_order),
            "results": texts(step.result for step in in_order),
            "nexts": texts(step.next for step in in_order),
            **_named([(step.id, step.names) for step in in_order]),
            "spents": texts(step.spent for step in in_order),
        }
        return frozenset(row[0] for row in await self._run("advance_phases", params))


def phases_ended(settlements: Sequence[Settlement]) -> Params | None:
    """How the phases ended in which these attempts did; None = there are none. All settlements are
    in it, since all of their jobs are locked in one order.
    """
    if all(one.phase is None for one in settlements):
        return None
    in_order = sorted(settlements, key=attrgetter("id"))
    ends = [one.phase for one in in_order]
    both = zip(in_order, ends, strict=True)
    return {
        "ids": numbers(one.id for one in in_order),
        "every_token": words(one.token for one in in_order),
        "workers": numbers(one.worker for one in in_order),
        "started_epochs": epochs([one.started_epoch for one in in_order]),
        "names": texts(end and end.name for end in ends),
        "states": texts(end and end.state.value for end in ends),
        "results": texts(end and end.result for end in ends),
        "percents": numbers(end and end.progress for end in ends),
        **_named([(one.id, end.names or (end.name,)) for one, end in both if end is not None]),
    }


def _named(jobs: Sequence[tuple[int, Sequence[str]]]) -> Params:
    """The names of all phases of these jobs, in order."""
    return {
        "phase_ids": numbers(job_id for job_id, names in jobs for _ in names),
        "phase_names": texts(name for _, names in jobs for name in names),
    }


def phases_by_job(
    found: Iterable[Row], states: Mapping[int, JobState]
) -> Mapping[int, tuple[PhaseRecord, ...]]:
    """The phases of each job, their states made whole by the job's own."""
    known: dict[int, list[PhaseRecord]] = {}
    for job_id, name, state, progress, result, attempts, started_at, finished_at in found:
        record = PhaseRecord(
            name, PhaseState(state), progress or 0.0, result, attempts, started_at, finished_at
        )
        known.setdefault(job_id, []).append(record)
    return {job_id: made_whole(phases, states[job_id]) for job_id, phases in known.items()}
