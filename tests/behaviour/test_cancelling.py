"""A node that ends at any step whatever leaves a store from which all goes on."""

from collections.abc import Generator
from contextlib import contextmanager

import pytest
import trio
from trio.abc import Instrument
from trio.lowlevel import Task

from musterd.store.lifecycle import JobState
from tests.support.faulty_engine import Fault
from tests.support.stage import Node, Stage


class Steps(Instrument):
    """Counts the steps of all tasks, and at the n-th does what it was told to."""

    def __init__(self, node: Node, at: int, *, kill: bool) -> None:
        self._node, self._left, self._kill = node, at, kill

    def before_task_step(self, task: Task) -> None:
        del task
        self._left -= 1
        if self._left:
            return
        if self._kill:
            self._node.kill()
        else:
            self._node.daemon.stop()


@contextmanager
def ending_at(node: Node, at: int, *, kill: bool) -> Generator[None]:
    steps = Steps(node, at, kill=kill)
    trio.lowlevel.add_instrument(steps)
    yield
    trio.lowlevel.remove_instrument(steps)


async def play(stage: Stage, at: int, *, kill: bool) -> list[int]:
    """A node at work that ends at that step, jobs short and long, claimed ahead and not."""
    stage.store.chance = lambda operation: (
        Fault("slow_reply", 0.003) if operation in ("claim", "settle") else None
    )
    node = await stage.start(
        "north", workers__lease_timeout_seconds=2, workers__default_count=3,
        shutdown__grace_period_seconds=1,
    )  # fmt: skip
    with ending_at(node, at, kill=kill), trio.fail_after(30):
        ids = await stage.put("noop", 6) + await stage.put("brief", 6) + await stage.put("flaky", 1)
        ids += await stage.put("slow", 1)
        await node.ended.wait()
    return ids


SOME_STEPS = sorted({*range(1, 120, 3), *range(120, 600, 23)})


@pytest.mark.parametrize("at", SOME_STEPS)
async def test_a_node_that_stops_at_any_step_leaves_no_job_behind(stage: Stage, at: int) -> None:
    ids = await play(stage, at, kill=False)
    assert not await stage.jobs(JobState.ASSIGNED, JobState.RUNNING)
    for job_id in ids:
        job = await stage.job(job_id)
        burnt = sum(one.outcome == "retrying" for one in job.attempts)
        assert job.state is JobState.SUCCEEDED or job.attempt - job.forgiven == burnt


@pytest.mark.parametrize("at", SOME_STEPS)
async def test_a_node_that_is_killed_at_any_step_loses_no_job(stage: Stage, at: int) -> None:
    ids = await play(stage, at, kill=True)
    await stage.start("south", workers__lease_timeout_seconds=2)
    await stage.all_ended(within_seconds=30)
    assert {await stage.state(one) for one in ids} == {JobState.SUCCEEDED}
