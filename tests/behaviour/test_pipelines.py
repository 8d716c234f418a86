"""Pipelines under the real daemon: phases in order, each finished once, whatever happens."""

import json

import pytest
import trio

from musterd.catalog.kinds import Phase
from musterd.store.job_log import plain
from musterd.store.lifecycle import JobState
from musterd.store.report import overall
from musterd.workers.context import Cancel, Fatal, JobContext, Retry, Snooze
from tests.support.pipelines import (
    DOES,
    NAMES,
    RUNS,
    error_of,
    events_of,
    pipeline,
    ran,
    states,
    timed_phase,
    told_phase,
)
from tests.support.stage import Stage, until

pytestmark = pytest.mark.usefixtures("forgotten_phases")


async def test_phases_run_in_order_and_the_last_result_is_the_jobs(video: Stage) -> None:
    await video.start()
    job_id = await video.put_one("video")
    await video.all_ended()
    job = await video.job(job_id)
    assert ran() == NAMES
    assert (job.state, job.result) == (JobState.SUCCEEDED, '"upload 1"')
    assert [phase.result for phase in job.phases] == [f'"{name} 1"' for name in NAMES]
    assert [phase.attempts for phase in job.phases] == [1, 1, 1]
    types = [type_ for type_, _ in await events_of(video, job_id)]
    assert types == ["enqueued", "started", *["phase_completed"] * 3, "succeeded"]


async def test_deterministic_phases_mix_with_others(stage: Stage) -> None:
    stage.kinds["video"] = pipeline(timed_phase("wait", 300), "process", timed_phase("rest", 0))
    await stage.start()
    job_id = await stage.put_one("video")
    await stage.all_ended()
    job = await stage.job(job_id)
    assert [phase.result for phase in job.phases] == [
        *('{"duration_ms": 300}', '"process 1"', '{"duration_ms": 0}')
    ]
    begun = [phase.started_at for phase in job.phases]
    assert begun == sorted(begun, key=str)


async def test_later_phases_read_what_earlier_ones_returned(video: Stage) -> None:
    seen: list[object] = []

    def upload(job: JobContext) -> object:
        seen.append([job.phase, job.phase_result("download"), job.phase_result("process")])
        for name in ("uplaod", "upload"):
            try:
                job.phase_result(name)
            except LookupError as error:
                seen.append(str(error))
        return None

    async def nothing(_job: JobContext) -> None:
        await trio.lowlevel.checkpoint()

    DOES.update(upload=upload, process=nothing)
    await video.start()
    job_id = await video.put_one("video")
    await video.all_ended()
    assert seen == [
        ["upload", "download 1", None],
        "kind 'video' has no phase 'uplaod': its phases are download, process, upload",
        "phase 'upload' has not finished; finished are: download, process",
    ]
    assert (await video.job(job_id)).result is None


async def test_a_retry_begins_with_the_phase_that_failed(video: Stage) -> None:
    def process(job: JobContext) -> object:
        if job.attempt < 3:
            raise Retry(in_seconds=1, message="busy")
        return job.phase_result("download")

    DOES.update(process=process)
    await video.start()
    job_id = await video.put_one("video")
    await until(lambda: len(RUNS) == 2)
    await trio.sleep(0.5)
    waiting = await video.job(job_id)
    assert states(waiting) == "succeeded pending pending"
    assert "phase 'process': busy" in str(waiting.error)
    await video.all_ended()
    job = await video.job(job_id)
    assert ran() == ["download", "process", "process", "process", "upload"]
    assert [phase.attempts for phase in job.phases] == [1, 3, 1]
    assert job.phases[1].result == '"download 1"'


@pytest.mark.parametrize(
    ("error", "state", "shown"),
    [
        (Fatal("no"), JobState.FAILED, "succeeded failed pending"),
        (Cancel("not wanted"), JobState.CANCELED, "succeeded canceled canceled"),
        (ValueError("odd"), JobState.FAILED, "succeeded failed pending"),
    ],
)
async def test_what_a_phase_raises_ends_the_job(
    stage: Stage, error: Exception, state: JobState, shown: str
) -> None:
    def process(_job: JobContext) -> object:
        raise error

    DOES.update(process=process)
    stage.kinds["video"] = pipeline(*NAMES)
    await stage.start()
    job_id = await stage.put_one("video")
    await stage.all_ended()
    job = await stage.job(job_id)
    assert (job.state, states(job)) == (state, shown)
    if state is JobState.FAILED:
        assert (await error_of(stage, job_id))[1] == f"phase 'process': {error}"


async def test_a_snooze_runs_the_phase_again_and_burns_no_attempt(video: Stage) -> None:
    def process(job: JobContext) -> int:
        if job.attempt == 1:
            raise Snooze(2.0)
        return job.attempt

    DOES.update(process=process)
    await video.start()
    job_id = await video.put_one("video", max_attempts=1)
    await video.all_ended()
    job = await video.job(job_id)
    assert [one.outcome for one in job.attempts] == ["snoozed", "succeeded"]
    assert ran() == ["download", "process", "process", "upload"]


async def test_only_a_retryable_phase_is_tried_again(stage: Stage) -> None:
    phases = [timed_phase("one", 10), timed_phase("two", 10, outcome="fail")]
    stage.kinds["video"] = pipeline(*phases, retryable=True)
    await stage.start()
    job_id = await stage.put_one("video")
    await stage.all_ended()
    job = await stage.job(job_id)
    assert (job.state, job.attempt) == (JobState.FAILED, 1)
    assert (await error_of(stage, job_id))[1].startswith("phase 'two': kind 'video' fails")


async def test_each_phase_has_its_own_list_of_errors_to_retry(stage: Stage) -> None:
    def raise_value_error(_job: JobContext) -> None:
        raise ValueError("odd")

    DOES.update(one=raise_value_error)
    own = told_phase("one", retry_on=())
    stage.kinds["video"] = pipeline(own, retry_on=("ValueError",))
    await stage.start()
    first = await stage.put_one("video")
    await stage.all_ended()
    assert (await stage.job(first)).attempt == 1


@pytest.mark.parametrize(
    ("process", "whole_seconds", "said"),
    [
        (timed_phase("process", 5_000, time_limit_seconds=1.0), 100.0, "took longer"),
        (timed_phase("process", 800), 1.0, "attempt 1 took longer"),
    ],
    ids=["of its own", "of its kind, for all phases"],
)
async def test_a_time_limit_bounds_a_phase(
    stage: Stage, process: Phase, whole_seconds: float, said: str
) -> None:
    download, upload = timed_phase("download", 800), timed_phase("upload", 800)
    stage.kinds["video"] = pipeline(download, process, upload, time_limit_seconds=whole_seconds)
    await stage.start()
    job_id = await stage.put_one("video")
    await stage.all_ended()
    wanted = f"phase 'process': {said} than its time limit of 1 s"
    assert await error_of(stage, job_id) == ("time_limit", wanted)
    assert states(await stage.job(job_id)) == "succeeded failed pending"


async def test_progress_is_17_42_and_93_percent_and_never_goes_back(video: Stage) -> None:
    async def tell(job: JobContext) -> None:
        percent = {"download": 50, "process": 25, "upload": 80}[str(job.phase)]
        job.progress(percent, str(job.phase))
        job.progress(percent / 2)
        job.progress(percent, str(job.phase))
        await trio.sleep(3)

    DOES.update(dict.fromkeys(NAMES, tell))
    await video.start()
    job_id = await video.put_one("video")
    seen: list[tuple[int, str | None]] = []
    while (job := await video.job(job_id)).state is not JobState.SUCCEEDED:
        seen += [(overall(job), job.progress_note)]
        await trio.sleep(0.1)
    whole = [percent for percent, _ in seen]
    assert whole == sorted(whole)
    assert {*seen} >= {(17, "download"), (42, "process"), (93, "upload")}
    assert overall(job) == 100
    progress = [data for type_, data in await events_of(video, job_id) if type_ == "progress"]
    assert progress == [
        {"overall": whole, "phase": name, "progress": percent, "note": name}
        for whole, name, percent in zip((17, 42, 93), NAMES, (50.0, 25.0, 80.0), strict=True)
    ]


async def test_the_last_word_before_a_failure_is_not_lost(video: Stage) -> None:
    def process(job: JobContext) -> None:
        job.progress(60, "nearly")
        raise Fatal("no")

    DOES.update(process=process)
    await video.start()
    job_id = await video.put_one("video")
    await video.all_ended()
    job = await video.job(job_id)
    assert (overall(job), job.progress_note, job.phases[1].progress) == (53, "nearly", 60.0)
    types = [type_ for type_, _ in await events_of(video, job_id)]
    assert types[-2:] == ["progress", "failed"]


async def test_budgets_are_for_all_phases_and_attempts_together(stage: Stage) -> None:
    def spend(job: JobContext) -> None:
        job.spend(tokens=4)
        if job.phase == "process" and job.attempt == 1:
            raise Retry(in_seconds=1)

    DOES.update(dict.fromkeys(NAMES, spend))
    stage.kinds["video"] = pipeline(
        *(told_phase(name, budgets={"tokens": 15}) for name in NAMES), budgets={"tokens": 15}
    )
    await stage.start()
    job_id = await stage.put_one("video")
    await stage.all_ended()
    job = await stage.job(job_id)
    assert json.loads(job.spent or "") == {"tokens": 16}  # 4 each, the second phase twice
    error, message = await error_of(stage, job_id)
    assert (error, message.partition(":")[0]) == ("budget_exceeded", "phase 'upload'")


async def test_one_log_tells_of_all_phases_in_order(video: Stage) -> None:
    async def log(job: JobContext) -> None:
        job.log(f"in {job.phase}")
        await trio.sleep(0.1)

    DOES.update(download=log, upload=log)
    await video.start()
    job_id = await video.put_one("video")
    await video.all_ended()
    found = (await video.job(job_id)).log
    assert plain(found) == "phase download\nin download\nphase upload\nin upload\n"
