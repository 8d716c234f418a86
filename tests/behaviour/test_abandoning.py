"""A node that ends while work goes on that was told to stop: it waits for it, but not for ever."""

from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import evolve

from musterd.catalog.kinds import Python
from musterd.store.lifecycle import JobState
from tests.support.receiver import SIGNED, URL, received
from tests.support.stage import Node, Stage, kind, until

HANDLERS = """
import trio
async def stubborn(job):
    with trio.CancelScope(shield=True):
        await trio.sleep(job.payload["seconds"])
"""
GRACE_SECONDS, ABANDON_SECONDS = 7.0, 30.0
STOPPING: dict[str, Any] = {
    "shutdown__grace_period_seconds": 10,
    "shutdown__abandon_seconds": ABANDON_SECONDS,
}
BOUND_SECONDS = 10 + GRACE_SECONDS + ABANDON_SECONDS


@pytest.fixture
def users(tmp_path: Path, stage: Stage) -> Stage:
    (tmp_path / "abandoning_handlers.py").write_text(HANDLERS)
    behaviour = Python("abandoning_handlers", "stubborn", "task", (tmp_path,))
    stage.kinds["stubborn"] = evolve(
        kind("stubborn"), behaviour=behaviour, grace_seconds=GRACE_SECONDS
    )
    return stage


async def stubborn(stage: Stage, seconds: float) -> int:
    job_id = await stage.put_one("stubborn", payload=f'{{"seconds": {seconds}}}')
    await until(stage.running_now)
    return job_id


def abandoned_jobs(node: Node) -> list[object]:
    return [told["job_id"] for told in node.events.named("job abandoned; its lease will expire")]


async def test_work_that_goes_on_is_left_behind_when_its_time_is_over(users: Stage) -> None:
    node = await users.start(**STOPPING)
    job_id = await stubborn(users, 1000)
    told_local = trio.current_time()
    node.daemon.stop()
    await node.abandoned.wait()
    assert BOUND_SECONDS < trio.current_time() - told_local < BOUND_SECONDS + 3
    assert abandoned_jobs(node) == [job_id]
    # Up to the last moment nobody else may have it.
    job = await users.job(job_id)
    assert (job.state, job.attempt) == (JobState.RUNNING, 1)
    node.kill()


async def test_work_that_ends_in_that_time_is_waited_for(users: Stage) -> None:
    node = await users.start(**STOPPING)
    await stubborn(users, BOUND_SECONDS - 2)
    node.daemon.stop()
    await node.ended.wait()
    assert (node.abandoned.is_set(), abandoned_jobs(node)) == (False, [])


async def test_a_second_signal_does_not_wait_for_the_grace_period(users: Stage) -> None:
    node = await users.start(**STOPPING)
    await stubborn(users, 1000)
    told_local = trio.current_time()
    node.daemon.stop()
    node.daemon.stop()
    await node.abandoned.wait()
    assert trio.current_time() - told_local < GRACE_SECONDS + ABANDON_SECONDS + 3
    node.kill()


async def test_all_else_ends_as_ever_before_the_process_does(users: Stage) -> None:
    """What others have done is written, and who waits for messages has them."""
    receiver = received(users)
    node = await users.start(**STOPPING, **SIGNED, workers__default_count=2)
    job_id = await stubborn(users, 1000)
    other = await users.put_one("slow", webhook=URL)
    await until(lambda: len(users.running_now()) == 2)
    node.daemon.stop()
    await node.abandoned.wait()
    assert abandoned_jobs(node) == [job_id]
    assert await users.state(other) is JobState.SUCCEEDED
    assert len(receiver.got) == 1
    told = (await users.store.engine.events.read(0)).events
    assert told[-1].type == "node.stopped"
    node.kill()
