"""What nodes tell of themselves, and how they keep the log where nobody reads it."""

import logging
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import trio

from musterd.manager.duties.duty import Duty, DutyRun, Tally, serve
from musterd.manager.events.node_events import TRIMMED_ROWS, WAITING_MAX, EventKeeper
from musterd.store.event_pages import pages_between
from musterd.store.events import Event, EventFilter
from tests.support.event_log import Listener, MemoryLog, listening
from tests.support.stage import Node, Stage, live_settings, until

QUIET = logging.getLogger("musterd.tests.node_events")


async def told(stage: Stage, group: str) -> list[Event]:
    log = stage.store.engine.events
    newest = await log.order()
    return [
        one
        async for page in pages_between(log, EventFilter(types=frozenset({group})), 0, newest)
        for one in page
    ]


def names(events: list[Event]) -> list[str]:
    return [one.type for one in events]


@asynccontextmanager
async def following(node: Node) -> AsyncGenerator[Listener]:
    """A reader of the node's events, to whom it tells them to the end."""
    with listening() as one:
        async with trio.open_nursery() as nursery:
            # It may start at any time.
            nursery.start_soon(node.tenancy().node_events.feed.serve, one.reader)  # noqa: ASYNC113
            yield one
        one.take_in()


async def test_a_node_tells_its_start_its_drain_and_its_end(stage: Stage) -> None:
    node = await stage.start(workers__default_count=2)
    await trio.sleep(1)
    assert names(await told(stage, "node")) == ["node.started"]
    assert names(await told(stage, "worker")) == ["worker.hired"] * 2
    await stage.put("report")
    await trio.sleep(0.1)
    await node.stop()
    assert names(await told(stage, "node")) == ["node.started", "node.draining", "node.stopped"]
    assert names(await told(stage, "worker"))[2:] == ["worker.retired"] * 2
    every = [one.type for one in (await stage.store.engine.events.read(0)).events]
    assert every[-1] == "node.stopped"
    assert all(one.data["node"] == "north" for one in await told(stage, "worker"))


async def test_only_decisions_that_change_the_crew_are_told(stage: Stage) -> None:
    await stage.start(workers__default_count=1, workers__max_count=4)
    await trio.sleep(60)
    assert await told(stage, "scale") == []
    await stage.put("slow", 4)
    await stage.all_ended()
    await trio.sleep(60)
    decisions = [one.data for one in await told(stage, "scale")]
    assert sum(one["hired"] for one in decisions) == 3
    assert sum(one["retired"] for one in decisions) == 3
    assert {one["node"] for one in decisions} == {"north"}


async def test_dismissed_workers_are_told(stage: Stage) -> None:
    node = await stage.start(shutdown__grace_period_seconds=1)
    await stage.put("long")
    await until(lambda: node.daemon.status().busy)
    await node.stop()
    assert sorted(names(await told(stage, "worker")))[:1] == ["worker.dismissed"]


async def test_each_tenant_has_the_events_of_its_own(stage: Stage) -> None:
    await stage.add_tenants("acme")
    await stage.start(tenants__acme__workers__default_count=1)
    await trio.sleep(2)
    for store in stage.stores.values():
        await store.engine.events.order()
        found = [one.type for one in (await store.engine.events.read(0)).events]
        assert found.count("node.started") == 1


async def test_an_idle_node_asks_the_log_for_nothing(stage: Stage) -> None:
    await stage.start()
    await trio.sleep(200)
    before = calls_of_the_log(stage)
    await trio.sleep(1_000)
    assert calls_of_the_log(stage) == before


def calls_of_the_log(stage: Stage) -> int:
    calls = stage.store.calls
    return sum(count for name, count in calls.items() if name.startswith("events_"))


async def test_a_crew_of_thousands_is_told_as_a_whole(stage: Stage) -> None:
    node = await stage.start()
    await trio.sleep(2)
    for number in range(3_000):
        node.tenancy().node_events.event_writer.announce("worker.hired", worker=number)
    await trio.sleep(30)
    kept = [one.data["worker"] for one in await told(stage, "worker")][2:]
    assert kept == list(range(3_000))


async def test_what_is_told_while_the_store_is_away_is_bounded_and_counted(stage: Stage) -> None:
    node = await stage.start()
    await trio.sleep(2)
    event_writer = node.tenancy().node_events.event_writer
    stage.store.broken.add("events_tell")
    for number in range(WAITING_MAX + 5):
        event_writer.announce("worker.hired", worker=number)
    calls = stage.store.calls["events_tell"]
    await trio.sleep(60)
    assert 3 < stage.store.calls["events_tell"] - calls < 20
    stage.store.broken.clear()
    await trio.sleep(60)
    kept = [one.data["worker"] for one in await told(stage, "worker")][2:]
    assert kept == list(range(5, WAITING_MAX + 5))
    assert node.events.named("node events dropped") == [{"count": 5}]


async def test_a_drain_without_a_store_does_not_wait_for_it(stage: Stage) -> None:
    node = await stage.start()
    await trio.sleep(2)
    stage.store.broken |= {"events_tell", "events_order"}
    begun = trio.current_time()
    async with following(node) as one:
        await trio.sleep(1)
        await node.stop()
    assert one.reader.ending is not None
    assert trio.current_time() - begun < 8


async def test_readers_of_a_node_that_drains_are_told_to_its_end(stage: Stage) -> None:
    node = await stage.start()
    await trio.sleep(2)
    async with following(node) as one:
        await stage.put("report")
        await trio.sleep(0.1)
        await node.stop()
    heard = [frame["event"] for frame in one.heard()]
    assert heard[-1] == "node.stopped"
    assert "job.succeeded" in heard
    assert one.reader.ending == "closed"


async def test_events_of_a_job_reach_a_reader_at_once(stage: Stage) -> None:
    node = await stage.start()
    await trio.sleep(2)
    async with following(node) as one:
        await trio.sleep(1)
        await stage.put("noop")
        await trio.sleep(0.15)
        heard = [frame["event"] for frame in one.hear()]
        await node.stop()
    assert heard[-1] == "job.succeeded"


class Kept(MemoryLog):
    """Says what was asked of it, and when."""

    def __init__(self) -> None:
        super().__init__()
        self.ordered: list[float] = []
        self.trims: list[float] = []
        self.old_rows = 0

    async def order(self) -> int:
        self.ordered.append(trio.current_time())
        return await super().order()

    async def trim(self, keep_seconds: float, rows_max: int) -> int:
        await super().trim(keep_seconds, rows_max)
        self.trims.append(trio.current_time())
        gone = min(self.old_rows, rows_max)
        self.old_rows -= gone
        return gone


class Deaf:
    """Hears of duties, and tells nobody."""

    def acquired(self, duties: Sequence[str]) -> None:
        pass

    def released(self, duties: Sequence[str], why: str) -> None:
        pass

    def ran(self, duty: str, run: DutyRun) -> None:
        pass


async def keep(log: Kept, *waits: float) -> None:
    """Runs a keeper; after each of the waits something happens."""
    keeper = EventKeeper(log, live_settings(events__keep_hours=2), random.Random(1))
    trimming = Duty("events", keeper.trim, keeper.trim_seconds, lambda: TRIMMED_ROWS, keeper.wait)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keeper.run)
        nursery.start_soon(serve, trimming, Tally(), Deaf(), random.Random(2), QUIET)
        for seconds in waits:
            await trio.sleep(seconds)
            keeper.news()
        await trio.sleep(1)
        nursery.cancel_scope.cancel()


async def test_what_this_node_has_drafted_is_put_in_order_a_little_later() -> None:
    log = Kept()
    await keep(log, 10.0, 0.1, 0.1, 20.0, 5.0)
    assert [round(when) for when in log.ordered] == [13, 33]


async def test_what_is_too_old_goes_in_batches_and_seldom_where_nothing_happens() -> None:
    log = Kept()
    log.old_rows = 3_500
    await keep(log, 20_000.0)
    assert log.old_rows == 0
    first = [when for when in log.trims if when < 100]
    assert 4 <= len(first) <= 5
    assert len(log.trims) - len(first) <= 8
    busy = Kept()
    await keep(busy, *[10.0] * 60)
    assert 8 <= len(busy.trims) <= 12


async def test_a_log_that_is_away_is_looked_after_later() -> None:
    log = Kept()
    log.away = True
    await keep(log, 1.0, 100.0)
    log.away = False
    await keep(log, 1.0, 100.0)
    assert log.trims != []
