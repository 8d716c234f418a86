"""Progress on its way from a running job to the store."""

from collections.abc import Sequence
from typing import Any, cast
from uuid import uuid4

import trio

from musterd.store.engine import Engine
from musterd.store.errors import StoreUnavailable
from musterd.store.jobs import NewJob
from musterd.store.leases import ProgressNote
from musterd.store.sqlite.engine import SqliteEngine
from musterd.workers.outcome import Note
from musterd.workers.progress import ProgressWriter
from tests.contract.rigs import take_one
from tests.support.desks import make_desk
from tests.support.faulty_engine import PartOverlay


class Weather(PartOverlay):
    """Leases of a store that is away at times."""

    away = False
    rounds = 0

    async def note_progress(self, notes: Sequence[ProgressNote]) -> frozenset[int]:
        self.rounds += 1
        if self.away:
            raise StoreUnavailable("away", "unreachable")
        taken: frozenset[int] = await self.part.note_progress(notes)
        return taken


async def progress_of(engine: Engine, job_id: int) -> tuple[float | None, str | None]:
    record = await engine.jobs.get(job_id)
    assert record is not None
    return record.progress, record.progress_note


async def test_what_is_new_is_written_once_and_after_an_outage_the_newest(
    autojump_clock: trio.testing.MockClock,
) -> None:
    del autojump_clock
    engine = SqliteEngine(":memory:", lambda: 1000.0, busy_timeout_seconds=1)
    weather = Weather(engine.leases)
    engine.leases = cast(Any, weather)
    await engine.open()
    await engine.migrate()
    await engine.jobs.enqueue([NewJob("a")])
    claim = await take_one(engine)
    desk = make_desk()
    mine = claim._replace(worker=None)
    desk.book_claims([mine, mine._replace(id=77, token=uuid4())], 0.0)
    held = desk.held[claim.id]
    writer = ProgressWriter(desk, engine)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(writer.run)
        await trio.sleep(2.5)
        assert weather.rounds == 0
        held.note(Note(40.0, "half way"))
        await trio.sleep(3)
        assert weather.rounds == 0  # its start comes first
        held.note_start_written()
        await trio.sleep(3)
        assert weather.rounds == 1
        assert await progress_of(engine, claim.id) == (40.0, "half way")
        weather.away = True
        held.note(Note(50.0, None))
        await trio.sleep(1)
        held.note(Note(120.0, None))
        await trio.sleep(1)
        weather.away = False
        await trio.sleep(1.1)
        assert await progress_of(engine, claim.id) == (100.0, None)
        nursery.cancel_scope.cancel()
    await engine.close()
