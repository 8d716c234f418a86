"""Jobs that are to be canceled or paused while they run, and work that does not care."""

from pathlib import Path

import pytest
import trio
from attrs import evolve

from musterd.catalog.kinds import Python, WorkKind
from musterd.store.job_log import plain
from musterd.store.lifecycle import Action, JobState
from tests.support.stage import Node, Stage, kind, until

HANDLERS = """
import trio
async def stubborn(job):
    with trio.CancelScope(shield=True):
        await trio.sleep(100)
    job.log("done after all")
    return "finished"
async def breaks(job):
    try:
        await trio.sleep(100)
    finally:
        raise RuntimeError("disturbed")
async def careful(job):
    try:
        await trio.sleep(100)
    except trio.Cancelled:
        with trio.CancelScope(shield=True):
            await trio.sleep(1)
    return "saved"
"""
STOPS = [(Action.CANCEL, JobState.CANCELED), (Action.PAUSE, JobState.PAUSED)]
stops = pytest.mark.parametrize(("action", "end"), STOPS)


@pytest.fixture
def users(tmp_path: Path, stage: Stage) -> Stage:
    (tmp_path / "ignoring_handlers.py").write_text(HANDLERS)
    for name in ("stubborn", "breaks", "careful"):
        stage.kinds[name] = _task(name, tmp_path)
    return stage


def _task(name: str, folder: Path) -> WorkKind:
    behaviour = Python("ignoring_handlers", name, "task", (folder,))
    return evolve(kind(name), behaviour=behaviour)


async def started(stage: Stage, name: str) -> int:
    job_id = await stage.put_one(name)
    await until(stage.running_now)
    return job_id


def finished(node: Node, name: str, outcome: str) -> float:
    return node.metric("jobs_finished_total", tenant="default", kind=name, outcome=outcome)


@stops
async def test_work_that_ignores_it_is_told_of_and_ends_as_was_asked(
    users: Stage, action: Action, end: JobState
) -> None:
    node = await users.start(workers__lease_timeout_seconds=10)
    job_id = await started(users, "stubborn")
    await users.store.control.apply(action, job_id)
    await trio.sleep(6.9)
    assert (node.daemon.status().ignored, node.events.named("request ignored")) == ([], [])
    await trio.sleep(60)
    (ignored,) = node.daemon.status().ignored
    assert (ignored.job_id, ignored.kind, ignored.attempt) == (job_id, "stubborn", 1)
    assert ignored.request == action
    assert 66 < ignored.seconds < 68
    (told,) = node.events.named("request ignored")
    assert (told["job_id"], told["request"]) == (job_id, action)
    job = await users.job(job_id)
    assert (job.state, job.attempt) == (JobState.RUNNING, 1)
    assert job.requested_at is not None
    await until(lambda: not users.running_now(), 60)
    await trio.sleep(0.1)
    job = await users.job(job_id)
    assert (job.state, job.result, plain(job.log)) == (end, None, "done after all\n")
    assert [one.outcome for one in job.attempts] == [end.value]
    assert list(node.daemon.status().ignored) == []


async def test_success_in_the_time_that_it_has_to_stop_is_success(users: Stage) -> None:
    await users.start()
    job_id = await started(users, "careful")
    await users.store.control.apply(Action.CANCEL, job_id)
    await users.all_ended()
    job = await users.job(job_id)
    assert (job.state, job.result) == (JobState.SUCCEEDED, '"saved"')


@stops
async def test_an_error_of_disturbed_work_is_no_failure(
    users: Stage, action: Action, end: JobState
) -> None:
    await users.start()
    job_id = await started(users, "breaks")
    await users.store.control.apply(action, job_id)
    await until(lambda: not users.running_now())
    await trio.sleep(0.1)
    job = await users.job(job_id)
    assert (job.state, job.error) == (end, None)
    assert "disturbed" in (job.log or "")


@stops
async def test_without_hints_the_holder_hears_with_its_next_renewal(
    stage: Stage, action: Action, end: JobState
) -> None:
    stage.store.deaf = True
    await stage.start()
    job_id = await started(stage, "long")
    await trio.sleep(7.3)
    before = trio.current_time()
    await stage.store.control.apply(action, job_id)
    await until(lambda: not stage.running_now())
    assert trio.current_time() - before <= 2.05
    await trio.sleep(0.1)
    job = await stage.job(job_id)
    assert [one.outcome for one in job.attempts] == [end.value]
    assert (job.state, job.attempt - job.forgiven) == (end, 1 if action is Action.CANCEL else 0)


async def test_a_pause_and_then_a_cancel_cancels(users: Stage) -> None:
    await users.start()
    job_id = await started(users, "stubborn")
    await users.store.control.apply(Action.PAUSE, job_id)
    await trio.sleep(1)
    await users.store.control.apply(Action.CANCEL, job_id)
    await until(lambda: not users.running_now(), 120)
    await trio.sleep(0.1)
    assert await users.state(job_id) is JobState.CANCELED


@stops
async def test_the_node_tells_what_the_store_made_of_a_retry(
    stage: Stage, action: Action, end: JobState
) -> None:
    """It had not heard of the request when it settled."""
    stage.store.deaf = True
    node = await stage.start()
    job_id = await started(stage, "flaky")
    await stage.store.control.apply(action, job_id)
    await until(lambda: not stage.running_now())
    await trio.sleep(0.1)
    job = await stage.job(job_id)
    assert (job.state, [one.outcome for one in job.attempts]) == (end, ["failed"])
    assert node.metric("job_retries_total", kind="flaky", tenant="default") == 0
    assert finished(node, "flaky", "canceled") == (1 if end is JobState.CANCELED else 0)
    (told,) = node.events.named("attempt settled")
    assert told["outcome"] == "failed"
