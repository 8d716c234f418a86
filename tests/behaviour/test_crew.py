"""The crew: how many workers there are, when they come and who leaves."""

from collections.abc import Iterator

import pytest
import trio
import trio.testing

from musterd.manager.scaling.observer import Observation
from musterd.store.lifecycle import JobState
from musterd.workers.toolbox import DeterministicRunner, Toolbox
from tests.runners.rig import some_tools
from tests.support.stage import Stage, kind, until


async def test_the_crew_is_there_from_the_start(stage: Stage) -> None:
    node = await stage.start(workers__default_count=3)
    found = [(one.worker, one.state) for one in node.workers]
    assert found == [(1, "idle"), (2, "idle"), (3, "idle")]


async def test_a_burst_grows_the_crew_to_what_is_due_within_a_scale_interval(stage: Stage) -> None:
    node = await stage.start(workers__max_count=20)
    await trio.sleep(5)
    await stage.put("slow", 12)
    await trio.sleep(1.05)
    assert node.size == 12
    assert node.daemon.status().busy == 12


async def test_a_burst_that_no_hint_announces_grows_the_crew_all_the_same(stage: Stage) -> None:
    node = await stage.start(workers__max_count=20)
    stage.store.deaf = True
    await trio.sleep(5)
    await stage.put("slow", 12)
    await trio.sleep(2.05)
    assert node.size == 12


async def test_no_burst_grows_the_crew_beyond_max_count(stage: Stage) -> None:
    node = await stage.start(workers__max_count=5)
    await stage.put("report", 200)
    while await stage.jobs(JobState.QUEUED):
        assert len(node.workers) <= 5
        await trio.sleep(0.05)
    assert node.metric("scale_limited_total", reason="max") > 0


async def test_the_crew_keeps_its_size_for_the_window_then_shrinks_to_its_floor(
    stage: Stage,
) -> None:
    node = await stage.start(scaling__stabilization_seconds=10)
    await stage.put("slow", 8)
    await stage.all_ended()
    await until(lambda: node.size < 8)
    needed = max(one.at for one in node.journal if one.raw_wish == 8)
    shrank = next(one for one in node.journal if one.retired)
    assert shrank.at - needed == pytest.approx(10)
    await until(lambda: len(node.workers) == 2)
    await trio.sleep(60)
    assert len(node.workers) == 2


async def test_only_idle_workers_leave(stage: Stage) -> None:
    node = await stage.start(scaling__stabilization_seconds=2)
    await stage.put("slow", 4)  # to the oldest workers, so that the newest stay busy
    await stage.put("long", 4)
    await until(lambda: node.size == 8)
    await until(lambda: node.size == 4)
    assert sorted(stage.running_now()) == [5, 6, 7, 8]
    assert [one.state for one in node.workers] == ["busy"] * 4
    assert not node.events.named("lease lost; job stopped here")
    assert [one.attempt for one in await stage.jobs()] == [1] * 8


async def test_a_steady_load_does_not_make_the_crew_flap(stage: Stage) -> None:
    node = await stage.start()
    await stage.put("report", 1500)
    await trio.sleep(3)
    changes = [one for one in node.journal if one.hired or one.retired]
    await trio.sleep(30)
    assert [one for one in node.journal if one.hired or one.retired] == changes


async def test_a_store_that_is_away_leaves_the_crew_as_it_is(stage: Stage) -> None:
    node = await stage.start(scaling__stabilization_seconds=1, scaling__down_cooldown_seconds=0)
    await stage.put("slow", 7)
    await until(lambda: node.size == 7)
    stage.store.away = True
    await trio.sleep(20)
    assert node.size == 7
    last = node.journal[-1]
    assert (last.due, last.raw_wish, last.limited_by) == (None, None, "no_observation")
    stage.store.away = False
    await until(lambda: node.size == 2)


async def test_each_tick_is_in_the_journal_with_wish_and_clamp(stage: Stage) -> None:
    node = await stage.start(workers__max_count=4)
    await stage.put("slow", 9)
    await trio.sleep(1.5)
    (tick,) = node.journal
    assert (tick.due, tick.busy, tick.size_before) == (7, 2, 2)
    assert (tick.raw_wish, tick.desired, tick.limited_by) == (9, 4, "max")
    assert (tick.hired, tick.taken_back, tick.retired) == (2, 0, 0)
    await trio.sleep(30)
    assert len(node.journal) == 31
    assert (node.journal[-1].raw_wish, node.journal[-1].limited_by) == (0, "min")


async def test_the_depth_policy_counts_only_what_waits(stage: Stage) -> None:
    node = await stage.start(scaling__policy='"depth"')
    await stage.put("slow", 5)
    await trio.sleep(1.05)
    (tick,) = node.journal
    assert (tick.due, tick.busy, tick.raw_wish, tick.desired) == (3, 2, 3, 3)


async def test_a_new_worker_is_hired_only_after_those_who_leave_are_taken_back(
    stage: Stage,
) -> None:
    node = await stage.start(workers__default_count=4)
    await stage.put("slow", 4)
    await until(lambda: len(stage.running_now()) == 4)
    crew = node.tenancy()._crew  # pyright: ignore[reportPrivateUsage] - a bound lowered at once
    assert crew.retire_beyond(2) == 2
    assert [one.state for one in node.workers] == ["busy", "busy", "retiring", "retiring"]
    change = crew.resize(5)
    assert (change.hired, change.taken_back, change.retired) == (1, 2, 0)
    assert [one.worker for one in node.workers] == [1, 2, 3, 4, 5]
    await stage.all_ended()
    assert [one.attempt for one in await stage.jobs()] == [1] * 4


async def test_with_no_floor_the_crew_comes_from_nothing_and_goes_to_nothing(stage: Stage) -> None:
    node = await stage.start(workers__default_count=0)
    assert not node.workers
    await stage.put("report", 3)
    await stage.all_ended(within_seconds=2.5)
    await until(lambda: not node.workers)


async def test_a_decision_that_comes_after_the_drain_began_hires_nobody(stage: Stage) -> None:
    node = await stage.start(workers__max_count=8)
    supervisor = node.tenancy()._supervisor  # pyright: ignore[reportPrivateUsage] - its tick is late
    await stage.put("report", 2)
    await trio.sleep(0.1)
    node.daemon.stop()
    await until(lambda: node.daemon.status().phase == "draining", 1)
    assert supervisor.tick(Observation(50)).hired == 0
    await node.ended.wait()
    assert supervisor.tick(Observation(50)).hired == 0
    assert node.workers == []


async def test_a_decision_that_comes_after_a_hard_end_hires_nobody(stage: Stage) -> None:
    node = await stage.start(workers__max_count=8)
    node.kill()
    await node.ended.wait()
    assert node.tenancy()._supervisor.tick(Observation(50)).hired == 0  # pyright: ignore[reportPrivateUsage] - as above


def _tasks(task: trio.lowlevel.Task | None = None) -> Iterator[trio.lowlevel.Task]:
    """All of this Trio run, below `task`."""
    above = task or trio.lowlevel.current_root_task()
    assert above is not None
    for nursery in above.child_nurseries:
        for child in nursery.child_tasks:
            yield child
            yield from _tasks(child)


def _nurseries_of_workers() -> list[int]:
    """How many each worker has open."""
    workers = [task for task in _tasks() if task.name.endswith("Crew._employ")]
    return [len(task.child_nurseries) for task in workers]


async def test_a_worker_is_a_nursery_from_its_hiring_to_its_leaving(stage: Stage) -> None:
    node = await stage.start(scaling__stabilization_seconds=2)
    await until(lambda: len(node.workers) == 2)
    assert _nurseries_of_workers() == [1, 1]
    await stage.put("slow", 4)
    await until(lambda: len(node.workers) == 4)
    assert _nurseries_of_workers() == [1, 1, 1, 1], "a job has none of its own"
    await until(lambda: len(node.workers) == 2)
    assert _nurseries_of_workers() == [1, 1]


class Stubborn(DeterministicRunner):
    """What it keeps between jobs takes its time to end."""

    closing = 0

    async def close(self) -> None:
        Stubborn.closing += 1
        try:
            await trio.sleep(5)
        finally:
            Stubborn.closing -= 1


async def test_after_a_reload_old_runners_are_closed_beside_the_next_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("musterd.workers.toolbox.DeterministicRunner", Stubborn)
    tools = [some_tools(), some_tools()]
    async with trio.open_nursery() as nursery:
        box = Toolbox(lambda: tools[0], nursery)
        before = box.runner(kind("tested", 1))
        del tools[0]
        assert box.is_outdated
        box.renew()
        assert box.runner(kind("tested", 1)) is not before
        await trio.testing.wait_all_tasks_blocked()
        assert Stubborn.closing == 1
        nursery.cancel_scope.cancel()  # the worker is dismissed: what closes may end
    assert Stubborn.closing == 0
