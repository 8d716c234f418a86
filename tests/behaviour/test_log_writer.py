"""The log of a running job on its way to the store: how often, how much, and after bad weather."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trio

from musterd.store.errors import StoreUnavailable
from musterd.store.job_log import LogPosition
from musterd.store.leases import LogNote
from musterd.store.sqlite.engine import SqliteEngine
from musterd.workers.claiming.held import Held
from musterd.workers.joblog import JobLog
from musterd.workers.log_writer import NEW_BYTES_MAX, LogWriter
from musterd.workers.outcome import SUCCEEDED
from tests.support.desks import claimed_under, make_desk
from tests.support.faulty_engine import PartOverlay
from tests.support.stage import live_settings


class Weather(PartOverlay):
    """Leases of a store that is away at times; counts what it is sent."""

    away = False

    def __init__(self, part: Any) -> None:
        super().__init__(part)
        self.sent: list[LogNote] = []

    async def note_logs(self, notes: Sequence[LogNote]) -> frozenset[int]:
        self.sent += notes
        if self.away:
            raise StoreUnavailable("away", "unreachable")
        taken: frozenset[int] = await self.part.note_logs(notes)
        return taken


@asynccontextmanager
async def a_job_that_speaks() -> AsyncGenerator[tuple[SqliteEngine, Held, JobLog, Weather]]:
    engine, weather, claim = await claimed_under(Weather)
    desk = make_desk()
    desk.book_claims([claim], 1e9)
    held = desk.held[claim.id]
    held.start(1, (trio.current_time(), 0.0), 1000.0)
    writer = LogWriter(engine, live_settings())
    log = writer.begin(held)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(writer.run)  # noqa: ASYNC113 - the test waits for what it writes
        yield engine, held, log, weather
        nursery.cancel_scope.cancel()
    await engine.close()


async def lines_of(engine: SqliteEngine, held: Held) -> list[str]:
    found = await engine.jobs.log(held.claim.id, LogPosition())
    assert found is not None
    return [line.text for line in found.lines]


async def test_a_silent_job_writes_nothing(autojump_clock: object) -> None:
    del autojump_clock
    async with a_job_that_speaks() as (_, held, _log, weather):
        await trio.sleep(100)
        assert weather.sent == []
        assert not held.log_begun


async def test_what_ends_within_the_interval_writes_nothing(autojump_clock: object) -> None:
    del autojump_clock
    async with a_job_that_speaks() as (_, held, log, weather):
        log.add(b"short\n")
        await trio.sleep(0.9)
        held.end(1001.0, 0.9)
        await trio.sleep(10)
        assert weather.sent == []


async def test_lines_are_in_the_store_a_second_later_with_their_time(
    autojump_clock: object,
) -> None:
    del autojump_clock
    async with a_job_that_speaks() as (engine, held, log, _):
        await trio.sleep(5)
        log.add(b"first\n")
        await trio.sleep(0.9)
        assert await lines_of(engine, held) == []
        log.add(b"second\n")
        await trio.sleep(0.3)
        found = await engine.jobs.log(held.claim.id, LogPosition())
        assert found is not None
        assert [(line.at, line.text) for line in found.lines] == [
            ("1970-01-01T00:16:45.000Z", "first"),
            ("1970-01-01T00:16:45.900Z", "second"),
        ]


async def test_a_chatty_job_is_written_once_a_second_and_within_bounds(
    autojump_clock: object,
) -> None:
    del autojump_clock
    async with a_job_that_speaks() as (engine, held, log, weather):
        for number in range(1_000):
            log.add(b"%d %s\n" % (number, b"x" * 100) * 10)
            await trio.sleep(0.01)
        await trio.sleep(2)
        assert 8 <= len(weather.sent) <= 13
        assert max(len(note.text) for note in weather.sent) <= NEW_BYTES_MAX
        shown = await lines_of(engine, held)
        assert shown[-1].startswith("999 x")
        assert "older lines were not kept" in shown[0]


async def test_slow_lines_share_a_row_until_it_is_large(autojump_clock: object) -> None:
    del autojump_clock
    async with a_job_that_speaks() as (engine, held, log, weather):
        for number in range(100):
            log.add(b"line %d %s\n" % (number, b"x" * 60))
            await trio.sleep(1.5)
        assert await lines_of(engine, held) == [f"line {n} {'x' * 60}" for n in range(100)]
        assert len({note.first for note in weather.sent}) < 5
        assert max(len(note.text) for note in weather.sent) < 5_000


async def test_after_bad_weather_all_is_there(autojump_clock: object) -> None:
    del autojump_clock
    async with a_job_that_speaks() as (engine, held, log, weather):
        log.add(b"before\n")
        await trio.sleep(2)
        weather.away = True
        log.add(b"meanwhile\n")
        await trio.sleep(5)
        assert await lines_of(engine, held) == ["before"]
        weather.away = False
        await trio.sleep(2)
        assert await lines_of(engine, held) == ["before", "meanwhile"]
        log.add(b"after\n")
        await trio.sleep(2)
        assert await lines_of(engine, held) == ["before", "meanwhile", "after"]


async def test_lines_may_come_from_any_thread(autojump_clock: object) -> None:
    del autojump_clock
    async with a_job_that_speaks() as (engine, held, log, _):
        await trio.to_thread.run_sync(log.add, b"from a thread\n")
        await trio.sleep(2)
        assert await lines_of(engine, held) == ["from a thread"]


async def test_what_is_lost_writes_no_more(autojump_clock: object) -> None:
    del autojump_clock
    async with a_job_that_speaks() as (_, held, log, weather):
        log.add(b"mine\n")
        held.lose()
        await trio.sleep(5)
        assert weather.sent == []


async def test_nobody_is_told_of_lines_after_the_end(autojump_clock: object) -> None:
    """What would be told keeps the attempt in memory."""
    async with a_job_that_speaks() as (_, held, log, weather):
        held.with_progress(SUCCEEDED)
        log.say("too late")
        await trio.sleep(5)
        assert weather.sent == []
