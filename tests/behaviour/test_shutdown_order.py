"""The order in which a node ends: nothing new is begun, what runs may end, what was done is
written, and only then the store is closed; also where work does not obey.
"""

from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trio
from attrs import evolve

from musterd.catalog.kinds import Python
from musterd.store.lifecycle import JobState
from tests.support.faulty_engine import Fault
from tests.support.receiver import SIGNED, URL, received
from tests.support.stage import Node, Stage, kind, until

# What has ended for good when the drain begins, whatever of it there is.
BEGINS_NOTHING = ("observe", "retention_mark", "retention_delete", "retention_forget_leftovers")
# Which step comes after which: the last call of the first is before the last of the second.
STEPS = ("settle", "outbox_settle", "events_tell", "close")
IN_ORDER = tuple(combinations(STEPS, 2))
BUSY: dict[str, Any] = {
    "retention__stale_after_hours": 0.001,
    "workers__default_count": 2,
    "workers__max_count": 2,
}

PATIENT: dict[str, Any] = {"shutdown__abandon_seconds": 1000}


class Call(NamedTuple):
    at: float
    name: str


@pytest.fixture
def calls(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """What is asked of the store, in order, from now on."""
    made: list[Call] = []

    def note(name: str) -> Fault | None:
        made.append(Call(trio.current_time(), name))
        return None

    close = stage.store.close

    async def noted_close() -> None:
        note("close")
        await close()

    stage.store.chance = note
    monkeypatch.setattr(stage.store, "close", noted_close)
    return made


def after(calls: list[Call], moment: float) -> list[str]:
    return [call.name for call in calls if call.at > moment]


def check_order(names: list[str]) -> None:
    assert names[-1] == "close"
    assert names.count("close") == 1
    for first, then in IN_ORDER:
        if first in names and then in names:
            assert _last(names, first) < _last(names, then), (first, then)


def _last(names: list[str], name: str) -> int:
    return len(names) - 1 - names[::-1].index(name)


async def told_to_stop(stage: Stage, node: Node) -> float:
    """Gives the moment, with jobs in hand and jobs that wait."""
    await until(lambda: len(stage.running_now()) == 2)
    await trio.sleep(3)
    moment = trio.current_time()
    node.daemon.stop()
    return moment


async def test_what_runs_may_end_and_nothing_else_begins(stage: Stage, calls: list[Call]) -> None:
    node = await stage.start(**BUSY)
    await stage.put("noop", 5)
    await stage.all_ended()
    ids = await stage.put("slow", 5)
    moment = await told_to_stop(stage, node)
    assert "retention_mark" in [call.name for call in calls]
    await node.ended.wait()
    names = after(calls, moment)
    check_order(names)
    assert not set(names) & set(BEGINS_NOTHING)
    assert names.index("renew") < _last(names, "settle")  # leases are held to the end
    claims = [one for one in stage.store.deeds if one.what == "claim" and one.at > moment]
    assert claims == []
    done = [one for one in ids if await stage.state(one) is JobState.SUCCEEDED]
    assert len(done) == 2
    assert not await stage.jobs(JobState.ASSIGNED, JobState.RUNNING)


async def test_the_last_ends_are_told_and_then_the_nodes_own(
    stage: Stage, calls: list[Call]
) -> None:
    receiver = received(stage, 4.0)
    node = await stage.start(**BUSY, **SIGNED)
    await stage.put("slow", 2, webhook=URL)
    moment = await told_to_stop(stage, node)
    await node.ended.wait()
    names = after(calls, moment)
    assert set(STEPS) <= set(names)
    check_order(names)
    assert len(receiver.got) == 2
    told = (await stage.store.engine.events.read(0)).events
    assert [event.type for event in told][-1] == "node.stopped"
    assert [event.type for event in told].count("job.webhook_delivered") == 2


async def test_what_does_not_end_in_time_is_given_back_first(
    stage: Stage, calls: list[Call]
) -> None:
    node = await stage.start(**BUSY, shutdown__grace_period_seconds=10)
    await stage.put("long", 3)
    moment = await told_to_stop(stage, node)
    await node.ended.wait()
    names = after(calls, moment)
    check_order(names)
    assert not set(names) & set(BEGINS_NOTHING)
    assert 10 <= trio.current_time() - moment <= 10.2
    waiting = await stage.jobs(JobState.QUEUED)
    assert sorted(one.attempt for one in waiting) == [0, 1, 1]


async def test_a_second_stop_shortens_it_and_changes_no_order(
    stage: Stage, calls: list[Call]
) -> None:
    node = await stage.start(**BUSY)
    await stage.put("long", 3)
    moment = await told_to_stop(stage, node)
    await trio.sleep(1)
    await node.stop()
    check_order(after(calls, moment))
    assert trio.current_time() - moment <= 1.2


async def test_settlements_are_written_though_the_store_was_away(
    stage: Stage, calls: list[Call]
) -> None:
    node = await stage.start(**BUSY)
    ids = await stage.put("slow", 2)
    moment = await told_to_stop(stage, node)
    stage.store.broken.add("settle")
    await trio.sleep(4)
    stage.store.broken.clear()
    await node.ended.wait()
    check_order(after(calls, moment))
    assert {await stage.state(one) for one in ids} == {JobState.SUCCEEDED}


async def test_after_work_that_ignored_its_end_all_is_still_cleaned_up(
    stage: Stage, calls: list[Call], tmp_path: Path
) -> None:
    (tmp_path / "deaf_handlers.py").write_text(
        "import trio\n"
        "async def deaf(job):\n"
        "    with trio.CancelScope(shield=True):\n"
        "        await trio.sleep(100)\n"
    )
    behaviour = Python("deaf_handlers", "deaf", "task", (tmp_path,))
    stage.kinds["deaf"] = evolve(kind("deaf"), behaviour=behaviour)
    node = await stage.start(**BUSY, **PATIENT, shutdown__grace_period_seconds=10)
    ids = [await stage.put_one("deaf"), await stage.put_one("long")]
    moment = await told_to_stop(stage, node)
    await node.ended.wait()
    names = after(calls, moment)
    check_order(names)
    assert 90 <= trio.current_time() - moment <= 100  # there is no way to end it sooner
    assert _last(names, "renew") > names.index("settle")  # nobody starts it beside this one
    states = [await stage.state(one) for one in ids]
    assert states == [JobState.SUCCEEDED, JobState.QUEUED]
    assert node.daemon.status().phase == "stopped"
