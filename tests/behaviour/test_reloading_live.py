"""What a reload changes about a node that runs, and what it leaves as it was."""

from typing import Any

import trio

from musterd.manager.reload.outcome import ReloadTaken
from musterd.store.lifecycle import JobState
from tests.support.reloading import reload, reloader_of, running
from tests.support.stage import Stage, kind, until

RETRYABLE: dict[str, Any] = {"retryable": True, "fail_first": 1}


# -- jobs, and the kinds they started with


async def test_a_job_that_runs_keeps_the_kind_it_started_with(stage: Stage) -> None:
    node = await stage.start()
    job_id = await running(stage, "slow")
    await reload(node, kind("slow", 60_000, outcome="fail", time_limit_seconds=1.0))
    await stage.all_ended(within_seconds=8)
    assert await stage.state(job_id) is JobState.SUCCEEDED
    later = await stage.put_one("slow")
    await stage.all_ended()
    assert await stage.state(later) is JobState.FAILED


async def test_its_next_attempt_goes_by_the_new_kind(stage: Stage) -> None:
    """Whether there is one, and when, is still said by the kind of the attempt that failed."""
    stage.kinds["twice"] = kind("twice", 1_000, **RETRYABLE)
    node = await stage.start()
    job_id = await running(stage, "twice")
    await reload(node, kind("twice", 1_000, outcome="cancel"))
    await stage.all_ended()
    job = await stage.job(job_id)
    assert (job.state, job.attempt) == (JobState.CANCELED, 2)


async def test_jobs_of_a_kind_that_is_gone(stage: Stage) -> None:
    """What runs goes on; what waits, waits for a node that knows it."""
    node = await stage.start(workers__default_count=1, workers__max_count=1)
    runs = await running(stage, "slow")
    waits = await stage.put_one("slow")
    await reload(node, gone="slow", workers__default_count=1, workers__max_count=1)
    await trio.sleep(8)
    assert await stage.state(runs) is JobState.SUCCEEDED
    job = await stage.job(waits)
    assert (job.state, job.max_attempts) != (JobState.FAILED, None)
    assert job.state is JobState.QUEUED
    await reload(node, kind("slow", 10), workers__default_count=1, workers__max_count=1)
    await stage.all_ended()
    assert await stage.state(waits) is JobState.SUCCEEDED


# -- settings that apply


async def test_a_shorter_poll_interval_applies_at_once(stage: Stage) -> None:
    node = await stage.start(workers__poll_interval_ms=60_000, workers__default_count=1)
    await trio.sleep(2)
    await reload(node, workers__poll_interval_ms=100, workers__default_count=1)
    job_id = await stage.put_one("noop")  # the stage's store gives no hints
    await until(lambda: True)
    await stage.all_ended(within_seconds=1)
    assert await stage.state(job_id) is JobState.SUCCEEDED


async def test_numbers_of_the_next_claim_apply(stage: Stage) -> None:
    node = await stage.start()
    await reload(node, limits__claim_batch=3, limits__claim_ahead_ms=0)
    desk = node.tenancy()._desk  # pyright: ignore[reportPrivateUsage]
    asked = desk.load(is_first=True)
    assert asked.request is not None
    assert asked.request.batch <= 3
    assert asked.request.ahead == 0
    desk.unload(asked)
    await stage.put("noop", 40)
    await stage.all_ended()


async def test_a_shorter_error_applies_to_a_worker_that_is_there(stage: Stage) -> None:
    node = await stage.start(workers__default_count=1, workers__max_count=1)
    await reload(node, limits__max_error_bytes=64, workers__default_count=1, workers__max_count=1)
    job_id = await stage.put_one("broken", payload='"' + "x" * 100 + '"')
    await stage.all_ended()
    assert len((await stage.job(job_id)).error or "") < 64 + 40


async def test_another_grace_period_applies_to_the_next_drain(stage: Stage) -> None:
    node = await stage.start()
    job_id = await running(stage, "long")
    await reload(node, shutdown__grace_period_seconds=2, shutdown__interrupted="pause")
    start = trio.current_time()
    await node.stop()
    assert trio.current_time() - start < 4
    assert await stage.state(job_id) is JobState.PAUSED


async def test_another_policy_of_scaling_applies(stage: Stage) -> None:
    node = await stage.start()
    await reload(node, scaling__policy="depth")
    await until(lambda: node.journal and node.journal[-1].policy == "depth")


async def test_another_level_of_the_log_applies(stage: Stage) -> None:
    node = await stage.start()
    await reload(node, log__level="warning")
    assert reloader_of(node).plan.log.level == 30


async def test_each_thing_that_is_different_has_a_line(stage: Stage) -> None:
    node = await stage.start()
    outcome = await reload(
        node, kind("slow", 9), kind("fresh"), gone="noop",
        workers__max_count=9, store__pool_size=7, http__token="a-long-secret",
    )  # fmt: skip
    assert isinstance(outcome, ReloadTaken)
    lines = node.events.lines
    assert ("setting changed", {"key": "workers.max_count", "from": "8", "to": "9",
        "applies": "at once"}) in lines  # fmt: skip
    assert ("needs a restart", {"key": "store.pool_size", "from": "4", "to": "7"}) in lines
    assert ("kind added", {"kind": "fresh"}) in lines
    assert ("kind removed", {"kind": "noop"}) in lines
    (slow, _) = node.events.named("kind changed")
    assert (slow["kind"], slow["from"], slow["to"]) == ("slow", "5000", "9")
    assert "a-long-secret" not in str(lines)


async def test_what_waits_for_a_restart_is_named_at_each_reload(stage: Stage) -> None:
    node = await stage.start()
    for generation in (2, 3):
        outcome = await reload(node, store__pool_size=7)
        assert isinstance(outcome, ReloadTaken)
        assert (outcome.result, outcome.generation) == ("unchanged", generation)
        assert outcome.changes.restart == ("store.pool_size",)
