"""The times of starts: on one node they agree with the order in which its jobs began."""

import random
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
import trio
from attrs import evolve

from musterd.catalog.kinds import Python
from musterd.store.jobs import JobRecord
from tests.support.faulty_engine import Fault, What
from tests.support.stage import Stage, kind

# The result of each job says how many had begun before it.
MICROSECOND = timedelta(microseconds=1)
HANDLERS = """
import itertools
import random
import trio
numbers, rng = itertools.count(), random.Random(1)
async def short(job):
    number = next(numbers)
    await trio.sleep(rng.choice((0, 0.001, 0.02)))
    return number
"""


@pytest.fixture
def jittery(tmp_path: Path, stage: Stage) -> Stage:
    """A stage where each call takes its own time on its way to the store, or back."""
    (tmp_path / "numbered_handlers.py").write_text(HANDLERS)
    behaviour = Python("numbered_handlers", "short", "task", (tmp_path,))
    stage.kinds["short"] = evolve(kind("short"), behaviour=behaviour)
    rng = random.Random(1)

    def chance(operation: str) -> Fault | None:
        if operation not in ("claim", "settle", "renew") or rng.random() < 0.3:
            return None
        what: What = "slow_request" if rng.random() < 0.5 else "slow_reply"
        return Fault(what, rng.expovariate(50))

    stage.store.chance = chance
    return stage


async def numbered(stage: Stage) -> list[JobRecord]:
    """All jobs, in the order in which they began."""
    jobs = await stage.jobs()
    return sorted(jobs, key=lambda one: int(one.result or ""))


def assert_in_order(jobs: list[JobRecord]) -> None:
    starts = [one.started_at for one in jobs if one.started_at is not None]
    assert len(starts) == len(jobs)
    assert starts == sorted(starts)
    for job, started_at in zip(jobs, starts, strict=True):
        assert job.finished_at is not None
        assert job.created_at <= started_at <= job.finished_at


@pytest.mark.parametrize("workers", [1, 2, 7])
async def test_starts_are_in_the_order_in_which_jobs_began(jittery: Stage, workers: int) -> None:
    await jittery.start(workers__default_count=workers, workers__max_count=workers)
    for _ in range(20):
        await jittery.put("short", 30)
        await trio.sleep(0.1)
    await jittery.all_ended()
    assert_in_order(await numbered(jittery))


async def test_one_worker_never_runs_two_jobs_at_once(jittery: Stage) -> None:
    await jittery.start(workers__default_count=1, workers__max_count=1)
    await jittery.put("short", 300)
    await jittery.all_ended()
    jobs = await numbered(jittery)
    for before, after in pairwise(jobs):
        assert before.finished_at is not None
        assert after.started_at is not None
        assert before.finished_at - after.started_at <= MICROSECOND
