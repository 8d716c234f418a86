"""The feed of events: who gets what, and when."""

from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, asynccontextmanager

import attrs
import pytest
import trio

from musterd.manager.events import source
from musterd.manager.events.feed import Feed, FeedClosed
from musterd.manager.events.source import FRAMES_MAX, STUCK_SECONDS, Reader, SetBack, Source, Wire
from musterd.store.events import ALL_EVENTS, READ_AT_ONCE, EventFilter
from musterd.workers.outcome import Contained, log_contained
from tests.support.event_log import Listener, MemoryLog, feed_of, listening, mute_pipe

SOON_SECONDS = 1.0
DRIP_SECONDS = 0.18
QUICK_SECONDS = 3.0


@asynccontextmanager
async def running(
    log: MemoryLog, contained: Callable[[Contained], None] = log_contained
) -> AsyncGenerator[tuple[Feed, trio.Nursery]]:
    feed = feed_of(log, contained)
    async with trio.open_nursery() as nursery:
        await nursery.start(feed.run)
        yield feed, nursery
        nursery.cancel_scope.cancel()


async def log_of(count: int) -> MemoryLog:
    """One with so many events, in order."""
    log = MemoryLog()
    for _ in range(count):
        log.add()
    await log.order()
    return log


@asynccontextmanager
async def one_follows() -> AsyncGenerator[tuple[MemoryLog, Feed, Listener]]:
    log = MemoryLog()
    async with running(log) as (feed, nursery):
        with listening() as one:
            nursery.start_soon(feed.serve, one.reader)  # noqa: ASYNC113 - it may start any time
            yield log, feed, one


async def test_nobody_follows_and_nothing_is_asked() -> None:
    log = MemoryLog()
    async with running(log) as (feed, _):
        for _ in range(100):
            feed.news()
            await trio.sleep(1)
    assert log.calls == 0


async def test_each_event_once_in_order_from_where_the_reader_was() -> None:
    log = await log_of(1_500)
    async with running(log) as (feed, nursery):
        with listening(700) as old, listening(1_500) as new:
            nursery.start_soon(feed.serve, old.reader)
            nursery.start_soon(feed.serve, new.reader)
            await trio.sleep(SOON_SECONDS)
            log.add()
            await trio.sleep(SOON_SECONDS)
            assert old.ids() == list(range(701, 1_502))
            assert new.ids() == [1_501]


async def test_one_who_missed_more_than_the_ring_holds_reads_the_log() -> None:
    log = MemoryLog()
    async with running(log) as (feed, nursery):
        with listening(0) as first, listening(0) as late:
            nursery.start_soon(feed.serve, first.reader)
            await trio.sleep(SOON_SECONDS)
            for _ in range(25_000):
                log.add()
            await trio.sleep(SOON_SECONDS)
            assert first.ids() != []
            log.forget(100)
            late.reader.position = 100
            nursery.start_soon(feed.serve, late.reader)
            for _ in range(400):
                first.take_in()
                late.take_in()
                log.add()
                await trio.sleep(0.05)
            await trio.sleep(SOON_SECONDS)
            assert late.ids() == list(range(101, log.newest + 1))


async def test_one_whom_little_concerns_reads_a_long_log_once() -> None:
    log = await log_of(FRAMES_MAX + 10 * READ_AT_ONCE)
    log.add(job_id=7)
    async with running(log) as (feed, nursery):
        with listening(0, EventFilter(job_id=7)) as one:
            log.calls_max = 500
            nursery.start_soon(feed.serve, one.reader)
            await trio.sleep(SOON_SECONDS)
            assert one.ids() == [FRAMES_MAX + 10 * READ_AT_ONCE + 1]


async def test_news_are_told_at_once_and_not_only_at_the_next_look() -> None:
    async with one_follows() as (log, feed, one):
        await trio.sleep(10)
        log.add()
        feed.news()
        await trio.sleep(0.11)
        assert one.ids() == [1]


async def test_each_gets_what_fits_its_filter() -> None:
    log = MemoryLog()
    wanted = {
        EventFilter(job_id=2): [2],
        EventFilter(kind="mail"): [3],
        EventFilter(target="t"): [4],
        EventFilter(types=frozenset({"job.failed"})): [5],
        EventFilter(types=frozenset({"node"})): [6],
        EventFilter(types=frozenset({"job"}), kind="mail"): [3],
        ALL_EVENTS: [1, 2, 3, 4, 5, 6],
    }
    async with running(log) as (feed, nursery):
        heard = await _serve_each(feed, nursery, list(wanted))
        log.add()
        log.add(job_id=2)
        log.add(kind="mail")
        log.add(target="t")
        log.add("job.failed")
        log.add("node.started", None, kind=None)
        await trio.sleep(SOON_SECONDS)
        assert [one.ids() for one in heard] == list(wanted.values())
        assert {one.reader.position for one in heard} == {6}


async def _serve_each(
    feed: Feed, nursery: trio.Nursery, filters: list[EventFilter]
) -> list[Listener]:
    async def serve(
        which: EventFilter, task_status: trio.TaskStatus[Listener] = trio.TASK_STATUS_IGNORED
    ) -> None:
        with listening(0, which) as one:
            task_status.started(one)
            await feed.serve(one.reader)

    return [await nursery.start(serve, which) for which in filters]


async def test_a_ping_each_fifteen_seconds_says_how_far_it_looked() -> None:
    log = MemoryLog()
    async with running(log) as (feed, nursery):
        with listening(0, EventFilter(job_id=9)) as one:
            nursery.start_soon(feed.serve, one.reader)
            for _ in range(45):
                log.add()
                await trio.sleep(1)
            await trio.sleep(SOON_SECONDS)
            pings = one.hear()
            assert [ping["event"] for ping in pings] == ["ping"] * 3
            for ping, wanted in zip(pings, (15, 30, 45), strict=True):
                assert ping["id"] == ping["data"]["position"] == pytest.approx(wanted, abs=2)


async def test_who_does_not_read_is_cut_off_and_holds_up_nobody() -> None:
    log = MemoryLog()
    async with running(log) as (feed, nursery):
        with listening() as quick, mute_pipe() as fileno:
            slow = Reader(ALL_EVENTS, 0, Wire(lambda: fileno, chunked=True))
            nursery.start_soon(feed.serve, slow)
            nursery.start_soon(feed.serve, quick.reader)
            await trio.sleep(SOON_SECONDS)
            for _ in range(2_000):
                log.add()
            for _ in range(20):
                quick.take_in()
                await trio.sleep(0.1)
            assert len(quick.ids()) == 2_000
            assert slow.ending is None
            await trio.sleep(STUCK_SECONDS)
            assert slow.ending == "slow"
            assert list(feed.readers) == [quick.reader]


async def test_who_leaves_is_forgotten() -> None:
    async with one_follows() as (log, feed, one):
        await trio.sleep(SOON_SECONDS)
        one.leave()
        log.add()
        await trio.sleep(SOON_SECONDS)
        assert one.reader.ending == "gone"
        assert feed.readers == {}
        calls = log.calls
        await trio.sleep(100)
        assert log.calls == calls


async def test_a_store_that_is_away_costs_no_event_and_no_reader() -> None:
    async with one_follows() as (log, _, one):
        log.add()
        await trio.sleep(SOON_SECONDS)
        log.away = True
        log.add()
        calls = log.calls
        await trio.sleep(60)
        assert log.calls - calls < 30
        log.away = False
        await trio.sleep(10)
        assert one.ids() == [1, 2]
        assert [frame["id"] for frame in one.hear()] == [1, 1, 1, 1, 1, 2]


async def test_one_who_comes_while_the_store_is_away_gets_all_later() -> None:
    log = MemoryLog()
    log.add()
    await log.order()
    log.away = True
    async with running(log) as (feed, nursery):
        with listening() as one:
            nursery.start_soon(feed.serve, one.reader)
            await trio.sleep(20)
            assert [frame["event"] for frame in one.hear()] == ["ping"]
            log.away = False
            await trio.sleep(10)
            assert one.ids() == [1]


async def test_the_end_is_told_all_there_was() -> None:
    async with one_follows() as (log, feed, one):
        await trio.sleep(SOON_SECONDS)
        log.add("node.stopped", None)
        await feed.close()
        assert one.ids() == [1]
        assert one.reader.ending == "closed"
        with pytest.raises(FeedClosed):
            await feed.begin(None)


async def test_a_snapshot_stands_before_what_it_may_not_have_seen() -> None:
    log = MemoryLog()
    feed = feed_of(log)
    log.add()
    start = await feed.begin(None)
    assert (start.position, start.gap) == (1, False)
    assert start.counts is not None
    log.add()
    calls = log.calls
    assert (await feed.begin(None)).position == 1  # the same one for all who come within a second
    assert log.calls == calls
    await trio.sleep(1)
    assert (await feed.begin(None)).position == 2


@pytest.mark.parametrize(("last_id", "usable"), [(4, False), (5, True), (9, True), (10, False)])
async def test_an_id_that_the_log_does_not_have_gets_a_snapshot(last_id: int, usable: bool) -> None:
    log = await log_of(9)
    log.forget(5)
    start = await feed_of(log).begin(last_id)
    assert start.gap is not usable
    assert (start.counts is None) is usable
    assert start.position == (last_id if usable else 9)


async def test_what_two_failovers_have_lost_is_known_of_both() -> None:
    log = await log_of(10)
    source = Source("default", log)
    await source.look([])
    for newest in (5, 4):
        log.lose(newest)
        with pytest.raises(SetBack):
            await source.look([])
        await source.look([])
    lost = [source.was_lost(position) for position in (4, 5, 8, 10, 11)]
    assert lost == [False, True, True, True, False]


async def test_a_log_that_has_lost_its_end_ends_all_streams() -> None:
    """After a failover positions are given out again: who stands beyond begins with a snapshot."""
    log = await log_of(10)
    async with running(log) as (feed, nursery):
        with listening(5) as one:
            nursery.start_soon(feed.serve, one.reader)
            await trio.sleep(SOON_SECONDS)
            assert one.ids()[-1] == 10
            log.lose(8)
            await trio.sleep(10)
            assert one.reader.ending == "closed"
        for _ in range(5):
            log.add()
        with listening(8) as other:
            nursery.start_soon(feed.serve, other.reader)
            await trio.sleep(SOON_SECONDS)
            assert other.ids() == list(range(9, 14))
            begun = {last_id: (await feed.begin(last_id)).gap for last_id in (8, 9, 10, 11)}
            assert begun == {8: False, 9: True, 10: True, 11: False}


class Broken(Wire):
    """Nobody knows why."""

    def flush(self) -> bool:
        raise RuntimeError("this wire is broken")


@pytest.mark.parametrize("behind", [True, False])
async def test_what_breaks_for_one_reader_costs_no_other(behind: bool) -> None:
    log = await log_of(100)
    faults: list[Contained] = []
    async with running(log, faults.append) as (feed, nursery):
        with listening(100) as other, mute_pipe() as fileno:
            position = 0 if behind else 100
            broken = Reader(ALL_EVENTS, position, Broken(lambda: fileno, chunked=False))
            nursery.start_soon(feed.serve, other.reader)
            await trio.sleep(SOON_SECONDS)
            nursery.start_soon(feed.serve, broken)
            await trio.sleep(SOON_SECONDS)
            log.add()
            await trio.sleep(SOON_SECONDS)
            assert broken.ending == "slow"
            assert other.ids() == [101]
    assert [(one.where, str(one.error)) for one in faults] == [("feed", "this wire is broken")]


async def test_a_log_that_cannot_be_read_is_tried_again() -> None:
    log, faults = MemoryLog(), list[Contained]()
    async with running(log, faults.append) as (feed, nursery):
        with listening() as one:
            nursery.start_soon(feed.serve, one.reader)
            await trio.sleep(SOON_SECONDS)
            log.breaks = ValueError("no event is like this")
            log.add()
            await trio.sleep(SOON_SECONDS)
            log.breaks = None
            await trio.sleep(10)
            assert one.ids() == [1]
    assert {str(one.error) for one in faults} == {"no event is like this"}


@attrs.define(eq=False)
class Dripping(Reader):
    """Takes something each time before anyone has lost patience with it."""

    taken_local: float = 0.0

    def can_take(self) -> bool:
        if not super().can_take() or trio.current_time() - self.taken_local < DRIP_SECONDS:
            return False
        self.taken_local = trio.current_time()
        return True


async def test_those_who_take_little_at_a_time_do_not_hold_up_who_takes_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(source, "FRAMES_MAX", 1)  # the ring is too short for all of them
    monkeypatch.setattr(source, "PORTION_BYTES", 100)  # a page of the log has many portions
    log = await log_of(1_000)
    async with running(log) as (feed, nursery):
        with ExitStack() as stack:
            for _ in range(3 * source.PAGES_AT_ONCE):
                slow = stack.enter_context(listening())
                drips = Dripping(ALL_EVENTS, 0, slow.reader.wire)
                nursery.start_soon(feed.serve, drips)
            await trio.sleep(SOON_SECONDS)
            quick = stack.enter_context(listening())
            nursery.start_soon(feed.serve, quick.reader)
            for _ in range(30):
                await trio.sleep(QUICK_SECONDS / 30)
                quick.take_in()
            assert len(quick.ids()) == 1_000
