"""Pipelines in bad weather: requests, a store that is away, a lost lease, a shutdown."""

from collections import Counter

import attrs
import pytest
import trio

from musterd.store.lifecycle import Action, JobState
from musterd.workers.context import JobContext
from tests.support.faulty_engine import Fault, What
from tests.support.pipelines import DOES, NAMES, RUNS, error_of, events_of, ran, states
from tests.support.stage import Stage, until

pytestmark = pytest.mark.usefixtures("forgotten_phases")


@pytest.mark.parametrize("action", [Action.PAUSE, Action.CANCEL])
async def test_a_request_in_a_phase_keeps_what_is_finished(video: Stage, action: Action) -> None:
    async def process(job: JobContext) -> None:
        if job.attempt == 1:
            job.progress(10)
            await trio.sleep(1000)

    DOES.update(process=process)
    await video.start()
    job_id = await video.put_one("video")
    await until(lambda: len(RUNS) == 2)
    await trio.sleep(0.3)
    await video.store.engine.control.apply(action, job_id)
    await video.all_ended()
    rest = "canceled canceled" if action is Action.CANCEL else "pending pending"
    assert states(await video.job(job_id)) == f"succeeded {rest}"
    if action is Action.PAUSE:
        await video.store.engine.control.apply(Action.RESUME, job_id)
        await video.all_ended()
        assert ran() == ["download", "process", "process", "upload"]


async def test_a_phase_that_ends_while_its_job_is_paused_is_kept(video: Stage) -> None:
    """Its end is on its way to a store that is away, when the request comes."""
    await video.start()
    job_id = await video.put_one("video")
    await until(lambda: len(RUNS) == 1)
    video.store.broken.add("phases_advance")
    await trio.sleep(1)
    await video.store.engine.control.apply(Action.PAUSE, job_id)
    await video.all_ended()
    video.store.broken.clear()
    assert states(await video.job(job_id)) == "succeeded pending pending"
    await video.store.engine.control.apply(Action.RESUME, job_id)
    await video.all_ended()
    assert ran() == NAMES
    types = [type_ for type_, _ in await events_of(video, job_id)]
    assert types.count("phase_completed") == 3


@pytest.mark.parametrize("what", ["request_lost", "reply_lost", "slow_request", "slow_reply"])
@pytest.mark.parametrize("operation", ["phases_begin", "phases_advance", "settle"])
@pytest.mark.parametrize("times", [1, 4])
async def test_each_phase_runs_once_whatever_befalls_the_calls(
    video: Stage, what: What, operation: str, times: int
) -> None:
    await video.start()
    video.store.faults[operation] += [Fault(what, 0.7)] * times
    ids = await video.put("video", 3)
    await video.all_ended()
    for job_id in ids:
        job = await video.job(job_id)
        assert (job.state, job.attempt) == (JobState.SUCCEEDED, 1)
        assert [phase.attempts for phase in job.phases] == [1, 1, 1]
        types = Counter(type_ for type_, _ in await events_of(video, job_id))
        assert (types["started"], types["phase_completed"], types["succeeded"]) == (1, 3, 1)
    assert len(RUNS) == 9


async def test_a_phase_waits_for_a_store_that_is_away(video: Stage) -> None:
    await video.start()
    job_id = await video.put_one("video")
    await until(lambda: len(RUNS) == 1)
    video.store.away = True
    await trio.sleep(5)
    assert ran() == ["download"]
    video.store.away = False
    await video.all_ended()
    assert ran() == NAMES
    assert (await video.job(job_id)).attempt == 1


async def test_a_lease_that_is_lost_between_phases_finishes_none_twice(video: Stage) -> None:
    """One node is cut off while its first phase runs; another takes the job over."""
    await video.start("north", workers__lease_timeout_seconds=2)
    job_id = await video.put_one("video")
    await until(lambda: len(RUNS) == 1)
    video.store.broken |= {"renew", "phases_advance", "settle"}
    await trio.sleep(4)
    video.store.broken.clear()
    await video.start("south", workers__lease_timeout_seconds=2)
    await video.all_ended()
    job = await video.job(job_id)
    assert job.state is JobState.SUCCEEDED
    types = Counter(type_ for type_, _ in await events_of(video, job_id))
    assert types["phase_completed"] == 3
    counted = Counter(ran())  # the first end of a download never reached the store
    assert counted["download"] > 1
    assert (counted["process"], counted["upload"]) == (1, 1)


async def test_what_the_store_cannot_keep_fails_its_phase(video: Stage) -> None:
    async def download(_job: JobContext) -> str:
        await trio.sleep(0.1)
        return "x" * 2_000_000

    DOES.update(download=download)
    await video.start()
    job_id = await video.put_one("video")
    await video.all_ended()
    error, message = await error_of(video, job_id)
    assert error == "result_invalid"
    assert message.startswith("phase 'download': result: found 2000002 bytes, wanted at most")
    assert states(await video.job(job_id)) == "failed pending pending"


async def test_a_job_that_waits_shows_the_phases_of_its_kind(video: Stage) -> None:
    await video.start()
    await trio.sleep(1)
    job_id = await video.put_one("video", hold=True)
    assert states(await video.job(job_id)) == "pending pending pending"


async def test_a_dismissed_job_goes_on_where_it_was(video: Stage) -> None:
    async def process(job: JobContext) -> None:
        if job.attempt == 1:
            await trio.sleep(1000)

    DOES.update(process=process)
    node = await video.start("north", shutdown__grace_period_seconds=1)
    job_id = await video.put_one("video")
    await until(lambda: len(RUNS) == 2)
    await trio.sleep(0.5)
    await node.stop()
    assert states(await video.job(job_id)) == "succeeded pending pending"
    await video.start("south")
    await video.all_ended()
    assert ran() == ["download", "process", "process", "upload"]
    assert (await video.job(job_id)).forgiven == 1


async def test_a_kind_that_lost_its_phases_in_a_reload_is_told_so(video: Stage) -> None:
    node = await video.start()
    await trio.sleep(1)
    assert video.raw("select kind from kind_rules") == [("video",)]
    plain = attrs.evolve(video.kinds["noop"], name="video")
    reloader = node.daemon._reloader  # pyright: ignore[reportPrivateUsage] - as a reload would
    catalog = attrs.evolve(reloader.catalog, kinds=[plain])
    await reloader.reload(lambda: (reloader.settings.now, catalog))
    await trio.sleep(1)
    assert video.raw("select kind from kind_rules") == []
