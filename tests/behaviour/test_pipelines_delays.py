"""Phases that only let time pass: no worker is held, and nothing of it is lost."""

import json
from datetime import UTC, datetime
from typing import cast

import pytest
import trio
from attrs import evolve

from musterd.catalog.kinds import Delay, Phase
from musterd.store.jobs import JobRecord
from musterd.store.lifecycle import Action, JobState
from musterd.store.report import job_object, report_text
from tests.support.pipelines import DOES, error_of, pipeline, ran
from tests.support.stage import Node, Stage, kind, until

pytestmark = pytest.mark.usefixtures("forgotten_phases")


def waiting(name: str, seconds: float | None, of: str = "") -> Phase:
    phase, _, field = of.partition("/")
    return Phase(name, evolve(kind("video"), behaviour=Delay(seconds, phase, field), phase=name))


def progress_of(job: JobRecord) -> dict[str, object]:
    """As every interface shows it."""
    return cast(dict[str, object], job_object(job, "default", 1)["progress"])


async def in_a_delay(stage: Stage) -> tuple[Node, int, float]:
    """A node, a job in a delay of ten minutes, and when that began."""
    stage.kinds["video"] = pipeline("reserve", waiting("pay", 600), "collect")
    node, began = await stage.start(), trio.current_time()
    job_id = await stage.put_one("video")
    await until(lambda: ran() == ["reserve"])
    return node, job_id, began


async def test_a_delay_holds_no_worker_and_burns_no_attempt(stage: Stage) -> None:
    node, job_id, began = await in_a_delay(stage)
    await trio.sleep(5)
    assert node.daemon.status().busy == 0
    job = await stage.job(job_id)
    assert job.state is JobState.QUEUED
    assert progress_of(job)["phase"] == "collect"
    assert progress_of(job)["until"] == job_object(job, "default", 1)["run_at"]
    assert "not before" in report_text(job, datetime.fromtimestamp(0, UTC))
    await stage.all_ended(800)
    assert 600 <= trio.current_time() - began <= 610
    job = await stage.job(job_id)
    assert (ran(), job.state) == (["reserve", "collect"], JobState.SUCCEEDED)
    assert [phase.result for phase in job.phases] == [
        '"reserve 1"', '{"delay_seconds": 600}', '"collect 2"'
    ]  # fmt: skip
    assert (job.attempt, job.forgiven) == (2, 1)
    assert progress_of(job)["until"] is None


async def test_a_delay_takes_its_time_from_an_earlier_result(stage: Stage) -> None:
    stage.kinds["video"] = pipeline("reserve", waiting("pay", None, "reserve/held"), "collect")
    DOES["reserve"] = lambda _job: {"held": 42.5}
    await stage.start()
    began = trio.current_time()
    await stage.put_one("video")
    await stage.all_ended(800)
    assert 42.5 <= trio.current_time() - began <= 46


@pytest.mark.parametrize("result", [{}, {"held": -1}, {"held": "9"}, {"held": True}, [1], None])
async def test_a_delay_that_cannot_be_computed_fails_the_job(stage: Stage, result: object) -> None:
    stage.kinds["video"] = pipeline("reserve", waiting("pay", None, "reserve/held"), "collect")
    DOES["reserve"] = lambda _job: result
    await stage.start()
    job_id = await stage.put_one("video")
    await stage.all_ended(800)
    type_, message = await error_of(stage, job_id)
    assert type_ == "delay_invalid"
    assert message.startswith("phase 'pay': 'held' of phase 'reserve': found ")


@pytest.mark.parametrize("place", ["first", "last"])
async def test_a_delay_may_be_the_first_phase_or_the_last(stage: Stage, place: str) -> None:
    phases = (waiting("pay", 30), "work") if place == "first" else ("work", waiting("pay", 30))
    stage.kinds["video"] = pipeline(*phases)
    await stage.start()
    began = trio.current_time()
    job_id = await stage.put_one("video")
    await stage.all_ended(800)
    assert 30 <= trio.current_time() - began <= 33
    job = await stage.job(job_id)
    assert (ran(), job.state) == (["work"], JobState.SUCCEEDED)
    assert job.result == ('"work 2"' if place == "first" else '{"delay_seconds": 30}')


async def test_a_delay_of_nothing_ends_no_attempt(stage: Stage) -> None:
    stage.kinds["video"] = pipeline("reserve", waiting("pay", 0), "collect")
    await stage.start()
    job_id = await stage.put_one("video")
    await stage.all_ended(800)
    assert (await stage.job(job_id)).attempt == 1
    assert ran() == ["reserve", "collect"]


async def test_a_job_in_a_delay_is_canceled_at_once(stage: Stage) -> None:
    _, job_id, _ = await in_a_delay(stage)
    await trio.sleep(1)
    await stage.store.engine.control.apply(Action.CANCEL, job_id)
    assert (await stage.job(job_id)).state is JobState.CANCELED
    await trio.sleep(700)
    assert ran() == ["reserve"]


async def test_a_job_that_is_paused_in_a_delay_waits_for_the_rest_of_it(stage: Stage) -> None:
    _, job_id, began = await in_a_delay(stage)
    await trio.sleep(100)
    await stage.store.engine.control.apply(Action.PAUSE, job_id)
    await trio.sleep(100)
    await stage.store.engine.control.apply(Action.RESUME, job_id)
    await stage.all_ended(800)
    assert 600 <= trio.current_time() - began <= 610
    assert ran() == ["reserve", "collect"]


async def test_a_delay_outlives_its_node(stage: Stage) -> None:
    node, job_id, began = await in_a_delay(stage)
    await trio.sleep(1)
    node.kill()
    await trio.sleep(50)
    await stage.start()
    await stage.all_ended(800)
    assert 600 <= trio.current_time() - began <= 615
    results = [json.loads(phase.result or "") for phase in (await stage.job(job_id)).phases]
    assert results == ["reserve 1", {"delay_seconds": 600}, "collect 2"]
