"""What a daemon tells systemd over the hours, and when it lets itself be ended."""

import itertools
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from musterd.manager.node.systemd import ServiceManager
from musterd.store.lifecycle import JobState
from tests.support.faulty_engine import Fault
from tests.support.notify_socket import NotifySocket
from tests.support.stage import Node, Stage, until

WATCHDOG_SECONDS = 30.0
READ_SECONDS = 0.25


@pytest.fixture
async def heard(stage: Stage, tmp_path: Path) -> AsyncGenerator[NotifySocket]:
    async with _reading(NotifySocket(str(tmp_path / "notify"))) as opened:
        stage.service_manager = ServiceManager(opened.address, WATCHDOG_SECONDS)
        yield opened


@asynccontextmanager
async def _reading(opened: NotifySocket) -> AsyncGenerator[NotifySocket]:
    async def read() -> None:
        while True:
            opened.read(trio.current_time())
            await trio.sleep(READ_SECONDS)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        yield opened
        nursery.cancel_scope.cancel()
    opened.close()


def fed_between(heard: NotifySocket, start: float, end: float) -> int:
    return sum(start <= one.at < end for one in heard.named("WATCHDOG"))


def longest_silence(heard: NotifySocket, start: float, end: float) -> float:
    """Between two signs of life."""
    fed = [start, *(one.at for one in heard.named("WATCHDOG") if start <= one.at < end), end]
    return max(after - before for before, after in itertools.pairwise(fed))


async def says_that_it_is_well(heard: NotifySocket, seconds: float) -> None:
    start = trio.current_time()
    await trio.sleep(seconds)
    assert longest_silence(heard, start, start + seconds) < 11


async def test_ready_follows_the_store_and_nothing_is_claimed_to_be_before(
    stage: Stage, heard: NotifySocket
) -> None:
    stage.store.away = True
    node = stage.start_soon()
    await trio.sleep(600)
    assert heard.named("READY") == []
    assert heard.values("STATUS")[-1].startswith("waiting for the store: open: connection refused")
    assert len(heard.named("EXTEND_TIMEOUT_USEC")) == pytest.approx(120, abs=10)
    stage.store.away = False
    await until(lambda: node.daemon.status().phase == "running")
    await trio.sleep(3)
    assert heard.values("READY") == ["1"]
    assert heard.values("STATUS")[-1] == "2/8 workers, 0 due"
    asked = len(heard.named("EXTEND_TIMEOUT_USEC"))
    await trio.sleep(600)
    assert len(heard.named("EXTEND_TIMEOUT_USEC")) == asked


async def test_a_node_at_work_is_well(stage: Stage, heard: NotifySocket) -> None:
    await stage.start()
    await stage.put("long", 4)
    await says_that_it_is_well(heard, 90)


async def test_renewals_that_vanish_are_ended_by_the_watchdog(
    stage: Stage, heard: NotifySocket
) -> None:
    """All else goes well: claims and settlements have a line of their own."""
    node = await stage.start()
    stage.store.chance = lambda name: Fault("slow_request", 1e6) if name == "renew" else None
    await stage.put("long", 2)
    start = trio.current_time()
    await trio.sleep(180)
    assert longest_silence(heard, start, start + 30) < 11
    assert fed_between(heard, start + 45, start + 180) == 0
    assert [one["message"] for one in node.events.named("watchdog not fed")]
    assert "could be renewed" in heard.values("STATUS")[-1]


async def test_they_are_tried_when_no_job_is_left_and_the_first_that_comes_through_is_enough(
    stage: Stage, heard: NotifySocket
) -> None:
    node = await stage.start()
    stage.store.chance = lambda name: Fault("slow_request", 1e6) if name == "renew" else None
    await stage.put("once")
    await until(lambda: node.events.named("watchdog not fed"), 60)
    assert (await stage.jobs())[0].state is JobState.FAILED
    stage.store.chance = lambda _: None
    await until(lambda: node.events.named("watchdog fed again"), 10)
    start, calls = trio.current_time(), stage.store.calls["renew"]
    await trio.sleep(60)
    assert longest_silence(heard, start, start + 60) < 11
    assert stage.store.calls["renew"] == calls


async def test_a_store_that_is_known_to_be_away_is_weather(
    stage: Stage, heard: NotifySocket
) -> None:
    await stage.start()
    await stage.put("long", 2)
    await trio.sleep(5)
    stage.store.away = True
    await says_that_it_is_well(heard, 600)
    assert "the store of default cannot be reached" in heard.values("STATUS")[-1]
    stage.store.away = False
    await says_that_it_is_well(heard, 60)


async def test_an_idle_node_is_well(stage: Stage, heard: NotifySocket) -> None:
    await stage.start()
    await says_that_it_is_well(heard, 900)


async def test_a_drain_says_how_long_and_asks_for_the_time(
    stage: Stage, heard: NotifySocket
) -> None:
    node = await stage.start()
    await stage.put("long")
    await trio.sleep(1)
    start = trio.current_time()
    node.daemon.stop()
    await trio.sleep(20)
    (stopping,) = heard.named("STOPPING")
    assert stopping.at - start < 1
    asked = [one.at for one in heard.named("EXTEND_TIMEOUT_USEC") if one.at >= start]
    assert asked[0] == stopping.at
    assert len(asked) in (4, 5)
    assert heard.values("STATUS")[-1].startswith("draining, 1 running, 4 m 4")
    assert longest_silence(heard, start, start + 20) < 11
    await node.ended.wait()


async def test_nobody_who_listens_is_no_harm(stage: Stage, tmp_path: Path) -> None:
    stage.service_manager = ServiceManager(str(tmp_path / "nobody"), WATCHDOG_SECONDS)
    node = await stage.start()
    await stage.put("report", 4)
    await stage.all_ended()
    await trio.sleep(60)
    assert len(node.events.named("systemd cannot be reached")) == 1
    await node.stop()


async def test_what_could_not_be_said_is_said_when_somebody_listens(
    stage: Stage, tmp_path: Path
) -> None:
    address = tmp_path / "notify"
    stage.service_manager = ServiceManager(str(address), WATCHDOG_SECONDS)
    node: Node = await stage.start()
    await trio.sleep(10)
    async with _reading(NotifySocket(str(address))) as heard:
        await trio.sleep(2)
        assert heard.values("READY") == ["1"]
    await node.stop()
