"""What a daemon's store says about its jobs, beside what then happens to them."""

from datetime import timedelta

import pytest
import trio

from musterd.store.lifecycle import Action
from musterd.store.nodes import HEARTBEAT_SECONDS, LIVE_SECONDS
from musterd.store.reasons import Code
from musterd.store.why import Why, why
from tests.support.history import claims_in_order
from tests.support.stage import Stage, kind, until


async def ask(stage: Stage, job_id: int) -> Why:
    seen = await stage.store.engine.jobs.why_facts(job_id)
    assert seen is not None
    return why(seen)


async def codes(stage: Stage, job_id: int) -> list[Code]:
    return [one.code for one in (await ask(stage, job_id)).reasons]


async def starts_in_its_band(stage: Stage, job_id: int) -> None:
    answer = await ask(stage, job_id)
    assert answer.start is not None
    assert answer.start.latest_seconds is not None, answer.start
    await stage.all_ended(1000)
    started_at = (await stage.job(job_id)).started_at
    assert started_at is not None
    waited_seconds = (started_at - answer.seen.now).total_seconds()
    assert answer.start.earliest_seconds <= waited_seconds <= answer.start.latest_seconds


async def test_a_node_says_that_it_lives_and_takes_its_leave(stage: Stage) -> None:
    node = await stage.start(workers__default_count=3)
    await trio.sleep(1)
    (seen,) = await stage.store.engine.nodes.all()
    assert (seen.name, seen.phase, seen.crew, seen.default_count) == ("north", "running", 3, 3)
    assert seen.named.keys() == stage.kinds.keys()
    before = stage.store.calls["beat"]
    await trio.sleep(100)
    assert (await stage.store.engine.nodes.all())[0].silent_seconds <= HEARTBEAT_SECONDS
    assert 18 <= stage.store.calls["beat"] - before <= 25
    await node.stop()
    assert await stage.store.engine.nodes.all() == []


async def test_a_node_that_drains_says_so_at_once(stage: Stage) -> None:
    node = await stage.start()
    await stage.put("slow")
    await trio.sleep(2)
    job_id = await stage.put_one("noop", delay_seconds=1)
    node.daemon.stop()
    await trio.sleep(1.5)
    assert await codes(stage, job_id) == [Code.NO_LIVE_NODE]
    await stage.start("south")
    await stage.all_ended()


async def test_a_killed_node_counts_as_dead_soon(stage: Stage) -> None:
    node = await stage.start()
    await trio.sleep(1)
    node.kill()
    job_id = await stage.put_one("noop")
    assert await codes(stage, job_id) == [Code.NEXT_UP], "nobody knows yet"
    await trio.sleep(LIVE_SECONDS)
    assert await codes(stage, job_id) == [Code.NO_LIVE_NODE]


async def test_beats_go_on_after_bad_weather(stage: Stage) -> None:
    node = await stage.start()
    await trio.sleep(1)
    stage.store.away = True
    await trio.sleep(100)
    stage.store.away = False
    await trio.sleep(5)
    (seen,) = await stage.store.engine.nodes.all()
    assert seen.is_live
    await node.stop()


async def test_a_crew_that_grew_is_known_soon(stage: Stage) -> None:
    await stage.start()
    await stage.put("long", 8)
    await trio.sleep(5)
    (seen,) = await stage.store.engine.nodes.all()
    assert seen.crew == 8
    job_id = await stage.put_one("noop")
    assert await codes(stage, job_id) == [Code.WORKERS_BUSY]
    assert "all 8 workers are busy" in (await ask(stage, job_id)).reasons[0].text


async def test_what_is_next_up_runs_in_a_moment(stage: Stage) -> None:
    await stage.start(workers__poll_interval_ms=250)
    await trio.sleep(5)
    stage.store.deaf = True
    job_id = await stage.put_one("noop")
    assert await codes(stage, job_id) == [Code.NEXT_UP]
    await trio.sleep(0.3)
    assert await codes(stage, job_id) == [Code.FINISHED]


@pytest.mark.parametrize("workers", [1, 3, 8])
@pytest.mark.parametrize("ahead", [0, 1, 20, 100])
async def test_the_start_lies_in_the_band(stage: Stage, workers: int, ahead: int) -> None:
    await stage.start(
        workers__default_count=workers, workers__max_count=workers, limits__claim_ahead_ms=0
    )
    await stage.put("report", 10)
    await stage.put("brief", 10)
    await stage.all_ended()
    await trio.sleep(20)  # until the times are told
    await stage.put("report", workers)
    await until(lambda: len(stage.running_now()) == workers)
    await stage.put("brief", ahead // 2)
    await stage.put("report", ahead - ahead // 2)
    job_id = await stage.put_one("report")
    assert await codes(stage, job_id) == [Code.WORKERS_BUSY]
    await starts_in_its_band(stage, job_id)


async def serve_some(
    stage: Stage, name: str, count: int, *, workers: int, idle_seconds: float
) -> None:
    """A crew of at most four ends so many, and tells their times."""
    await stage.start(workers__default_count=workers, workers__max_count=4)
    await stage.put(name, count)
    await stage.all_ended()
    await trio.sleep(idle_seconds)


async def test_the_start_lies_in_the_band_while_the_crew_grows(stage: Stage) -> None:
    await serve_some(stage, "slow", 4, workers=1, idle_seconds=400)
    await stage.put("slow", 20)
    await trio.sleep(0.001)
    await starts_in_its_band(stage, await stage.put_one("slow"))


async def test_the_start_lies_in_the_band_with_times_that_vary(stage: Stage) -> None:
    await serve_some(stage, "varied", 100, workers=4, idle_seconds=20)
    await stage.put("varied", 200)
    await starts_in_its_band(stage, await stage.put_one("varied"))


async def test_the_start_lies_in_the_band_beside_jobs_with_a_limit(stage: Stage) -> None:
    stage.kinds["narrow"] = kind("narrow", 1_000, max_running=2)
    await stage.start(workers__default_count=4, workers__max_count=4)
    await stage.put("narrow", 2)
    await stage.put("report", 4)
    await stage.all_ended()
    await trio.sleep(20)
    await stage.put("narrow", 30, priority=1)
    await trio.sleep(0.5)
    await stage.put("report", 40)
    await starts_in_its_band(stage, await stage.put_one("report"))


async def test_exactly_so_many_are_claimed_before_it(stage: Stage) -> None:
    await stage.start(workers__default_count=2, workers__max_count=2)
    await stage.put("report", 50)
    await stage.put("report", 5, priority=3)
    await until(lambda: len(stage.running_now()) == 2)
    waiting = await stage.put("report", 20, priority=1)
    place = (await ask(stage, waiting[7])).position
    claimed = len(claims_in_order(stage.store.deeds))
    assert place is not None
    await stage.all_ended()
    order = claims_in_order(stage.store.deeds)[claimed:]
    assert order.index(waiting[7]) == place.number - 1


async def test_each_cause_that_is_removed_shows_the_next_and_then_it_runs(stage: Stage) -> None:
    stage.kinds["narrow"] = kind("narrow", 1_000, max_running=1)
    await stage.start(workers__default_count=1, workers__max_count=1)
    engine = stage.store.engine
    await trio.sleep(1)
    held = await stage.put_one("narrow")
    await until(lambda: stage.running_now() == [held])
    job_id = await stage.put_one("narrow", hold=True, delay_seconds=0.2)
    await engine.queue.pause("anna")
    seen = [Code.NOT_RELEASED, Code.NOT_DUE, Code.QUEUE_PAUSED, Code.KIND_LIMIT]
    assert await codes(stage, job_id) == seen
    await engine.control.apply(Action.RELEASE, job_id)
    assert await codes(stage, job_id) == seen[1:]
    await trio.sleep(0.3)
    assert await codes(stage, job_id) == seen[2:]
    await engine.queue.resume()
    assert await codes(stage, job_id) == seen[3:]
    await trio.sleep(1)
    assert await codes(stage, job_id) == [Code.RUNNING]
    await trio.sleep(1)
    assert await codes(stage, job_id) == [Code.FINISHED]


async def test_a_kind_that_no_node_knows_stays_the_first_reason(stage: Stage) -> None:
    await stage.start()
    await trio.sleep(1)
    job_id = await stage.put_one("ghost")
    for _ in range(20):
        await trio.sleep(3)
        assert (await codes(stage, job_id))[0] is Code.KIND_UNKNOWN
    stage.kinds["ghost"] = kind("ghost")
    await stage.start("south")
    await trio.sleep(1)
    assert await codes(stage, job_id) == [Code.NOT_DUE]


async def test_a_retry_waits_as_it_says(stage: Stage) -> None:
    await stage.start()
    job_id = await stage.put_one("flaky")
    await trio.sleep(0.5)
    reason = (await ask(stage, job_id)).reasons[0]
    assert (reason.code, (reason.what or {})["attempt"]) == (Code.NOT_DUE, 1)
    await stage.all_ended()
    (_, second, _) = (await stage.job(job_id)).attempts
    assert reason.until is not None
    assert second.started_at is not None
    assert abs(second.started_at - reason.until) < timedelta(seconds=0.01)
