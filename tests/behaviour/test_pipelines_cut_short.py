"""A node that ends at any step whatever: no phase that the store has as finished runs again."""

from collections.abc import Iterator

import pytest
import trio

from musterd.store.events import EventFilter
from musterd.store.lifecycle import JobState
from tests.behaviour.test_cancelling import ending_at
from tests.support import pipelines
from tests.support.faulty_engine import Fault
from tests.support.pipelines import RUNS, pipeline, timed_phase
from tests.support.stage import Stage

AT_STEPS = sorted({*range(1, 200, 7), *range(200, 700, 31)})


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    pipelines.forget()
    yield
    pipelines.forget()


@pytest.mark.parametrize("kill", [True, False])
@pytest.mark.parametrize("at", AT_STEPS)
async def test_no_finished_phase_runs_again(stage: Stage, at: int, kill: bool) -> None:
    stage.kinds["video"] = pipeline("download", timed_phase("process", 50), "upload")
    slow = ("phases_begin", "phases_advance", "settle")
    stage.store.chance = lambda call: Fault("slow_reply", 0.003) if call in slow else None
    node = await stage.start(
        "north", workers__lease_timeout_seconds=2, workers__default_count=2,
        shutdown__grace_period_seconds=0.05,
    )  # fmt: skip
    with ending_at(node, at, kill=kill):
        ids = await stage.put("video", 4)
        with trio.move_on_after(10):
            await node.ended.wait()
    finished = set(stage.raw("select job_id, name from job_phases where state = 'succeeded'"))
    before = len(RUNS)
    if not node.ended.is_set():
        await node.stop()
    await stage.start("south", workers__lease_timeout_seconds=2)
    await stage.all_ended()
    assert finished.isdisjoint((job_id, name) for job_id, name, _ in RUNS[before:])
    for job_id in ids:
        job = await stage.job(job_id)
        assert job.state is JobState.SUCCEEDED
        assert [phase.state for phase in job.phases] == ["succeeded"] * 3
        page = await stage.store.engine.events.read(0, EventFilter(job_id))
        types = [event.type for event in page.events]
        assert types.count("job.phase_completed") == 3
        assert types.count("job.started") == job.attempt
