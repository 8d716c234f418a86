"""Progress on its way from a running job to the store."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from uuid import uuid4

import trio

from musterd.store.engine import Engine
from musterd.store.errors import InputRefused, StoreUnavailable
from musterd.store.leases import ProgressNote
from musterd.workers.claiming.held import Held
from musterd.workers.outcome import Contained, Note
from musterd.workers.progress import ProgressWriter
from tests.support.desks import claimed_under, make_desk
from tests.support.faulty_engine import PartOverlay
from tests.support.stage import live_settings


class Weather(PartOverlay):
    """Leases of a store that is away, or slow, at times."""

    away = False
    slow_seconds = 0.0
    rounds = 0

    async def note_progress(self, notes: Sequence[ProgressNote]) -> frozenset[int]:
        self.rounds += 1
        await trio.sleep(self.slow_seconds)
        if self.away:
            raise StoreUnavailable("away", "unreachable")
        if any("odd" in (note.note or "") for note in notes):
            raise InputRefused("no store keeps that")
        taken: frozenset[int] = await self.part.note_progress(notes)
        return taken


async def progress_of(engine: Engine, job_id: int) -> tuple[float | None, str | None]:
    record = await engine.jobs.get(job_id)
    assert record is not None
    return record.progress, record.progress_note


@asynccontextmanager
async def a_running_job() -> AsyncGenerator[tuple[ProgressWriter, Held, Weather]]:
    engine, weather, claim = await claimed_under(Weather)
    desk = make_desk()
    mine = claim._replace(worker=None)
    desk.book_claims([mine, mine._replace(id=77, token=uuid4())], 0.0)
    held = desk.held[claim.id]
    held.start(1, (trio.current_time(), 0.0), claim.claimed_epoch)
    writer = ProgressWriter(desk, engine, live_settings())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(writer.run)  # noqa: ASYNC113 - the test waits for it
        yield writer, held, weather
        nursery.cancel_scope.cancel()
    await engine.close()


def claimed_again(old: Held) -> Held:
    """A newer claim of the same job, which has started."""
    new = Held(old.claim, trio.current_time(), float("inf"))
    new.start(2, (trio.current_time(), 0.0), old.claim.claimed_epoch)
    return new


async def test_what_is_new_is_written_at_once_and_after_an_outage_the_newest() -> None:
    async with a_running_job() as (writer, held, weather):
        job_id, engine = held.claim.id, writer.engine
        await trio.sleep(2.5)
        assert weather.rounds == 0
        writer.note(held, Note(40.0, "half way"))
        await trio.sleep(0.001)
        assert (weather.rounds, held.start_written) == (1, True)  # its start came first
        assert await progress_of(engine, job_id) == (40.0, "half way")
        for percent in range(41, 50):
            writer.note(held, Note(percent, None))
            await trio.sleep(0.01)
        assert weather.rounds == 1
        await trio.sleep(0.02)
        assert (weather.rounds, await progress_of(engine, job_id)) == (2, (49.0, None))
        weather.away = True
        writer.note(held, Note(50.0, None))
        await trio.sleep(1)
        writer.note(held, Note(120.0, None))
        await trio.sleep(1)
        weather.away = False
        await trio.sleep(2.2)
        assert await progress_of(engine, job_id) == (100.0, None)


async def test_the_last_word_is_written_before_the_end() -> None:
    async with a_running_job() as (writer, held, weather):
        job_id, engine = held.claim.id, writer.engine
        writer.note(held, Note(90.0, "nearly"))
        writer.note(held, Note(90.0, "last"))
        await trio.sleep(0.001)
        writer.note(held, Note(99.0, "very last"))
        writer.spend(held, '{"tokens": 5}')
        await writer.last_word(held)
        assert weather.rounds == 2  # it did not wait for its turn
        assert await progress_of(engine, job_id) == (99.0, "very last")
        record = await engine.jobs.get(job_id)
        assert record is not None
        assert record.spent == '{"tokens": 5}'
        weather.away = True
        writer.note(held, Note(100.0, "lost"))
        before = trio.current_time()
        await writer.last_word(held)
        assert trio.current_time() - before <= 1.0  # an end does not wait for the weather


async def test_a_last_word_that_nobody_waits_for_hurries_no_other() -> None:
    """A phase was cancelled meanwhile: the next word is waited for all the same."""
    async with a_running_job() as (writer, held, weather):
        job_id, engine = held.claim.id, writer.engine
        weather.slow_seconds = 0.5
        writer.note(held, Note(10.0, "first"))
        with trio.move_on_after(0.1):
            await writer.last_word(held)
        await trio.sleep(5)
        writer.note(held, Note(20.0, "second"))
        await writer.last_word(held)
        assert await progress_of(engine, job_id) == (20.0, "second")


async def test_a_note_that_no_store_takes_keeps_no_other_from_being_written() -> None:
    async with a_running_job() as (writer, held, _weather):
        found: list[Contained] = []
        writer.contained = found.append
        (other,) = [each for each in writer.desk.held.values() if each is not held]
        other.start(2, (trio.current_time(), 0.0), other.claim.claimed_epoch)
        other.note_start_written()
        writer.note(other, Note(10.0, "odd"))
        writer.note(held, Note(20.0, "good"))
        await trio.sleep(5)
        assert await progress_of(writer.engine, held.claim.id) == (20.0, "good")
        assert not other.has_news
        assert [(one.where, one.job_id) for one in found] == [("note", other.claim.id)]


async def test_news_of_an_old_claim_takes_no_place_of_a_newer_one_of_the_same_job() -> None:
    """The old claim's write fails late, when the job has been claimed again and has said more."""
    async with a_running_job() as (writer, old, weather):
        new = claimed_again(old)
        weather.slow_seconds, weather.away = 0.5, True
        writer.note(old, Note(10.0, "old"))
        await trio.sleep(0.1)
        writer.note(new, Note(20.0, "new"))
        old.lose()
        await trio.sleep(1)
        weather.away = False
        await trio.sleep(5)
        assert await progress_of(writer.engine, old.claim.id) == (20.0, "new")
        assert not new.has_news


async def test_the_end_of_an_old_claims_write_is_not_taken_for_the_last_word_of_a_newer_one() -> (
    None
):
    async with a_running_job() as (writer, old, weather):
        new = claimed_again(old)
        weather.slow_seconds = 0.5
        writer.note(old, Note(10.0, "old"))
        await trio.sleep(0.1)
        old.lose()
        writer.note(new, Note(20.0, "new"))
        await writer.last_word(new)
        assert await progress_of(writer.engine, old.claim.id) == (20.0, "new")
