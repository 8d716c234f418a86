"""The carrier: what goes together on a visit to the store."""

import random
from collections.abc import Sequence

import trio
from trio.testing import MockClock

from musterd.store.job import (
    AttemptOutcome,
    ClaimRequest,
    Exchange,
    JobState,
    NewJob,
    Settlement,
)
from musterd.store.sqlite.engine import SqliteEngine
from musterd.workers.carrier import Carrier
from musterd.workers.desk import Desk
from musterd.workers.desk_plan import DeskPlan
from musterd.workers.held import Held
from musterd.workers.outcome import Verdict, released
from tests.support.faulty_engine import Fault, FaultyEngine
from tests.unit.workers.test_desk import Heard


class Watched(FaultyEngine):
    """Knows what was settled together."""

    def __init__(self, engine: SqliteEngine, nursery: trio.Nursery) -> None:
        super().__init__(engine, nursery)
        self.visits: list[list[tuple[int, int]]] = []  # of each, (job, attempt)

    async def exchange(
        self, settlements: Sequence[Settlement], claim: ClaimRequest | None, now_local: float
    ) -> Exchange:
        self.visits.append([(one.id, one.attempt) for one in settlements])
        return await super().exchange(settlements, claim, now_local)


async def test_two_ends_of_one_job_do_not_go_together(autojump_clock: MockClock) -> None:
    """What the store refuses it names by jobs: who had sent both could not tell which was meant."""
    del autojump_clock
    heard = Heard()
    desk = Desk(DeskPlan("north", 30.0, 2.0, 0.25, 500, 0.0), heard, random.Random(1))
    engine = SqliteEngine(":memory:", trio.current_time, busy_timeout_seconds=1.0)
    await engine.open()
    await engine.migrate()
    await engine.enqueue([NewJob("k")])
    async with trio.open_nursery() as nursery:
        store = Watched(engine, nursery)
        carrier = Carrier(desk, store, trio.current_time, random.Random(1), lambda: None)
        nursery.start_soon(carrier.run)
        seat = desk.open_seat(1)
        first = await _next(desk)
        store.faults["settle"].append(Fault("reply_lost"))
        desk.settle(seat, first, released("a test wants it"))
        second = await _next(desk)  # claimed by the visit whose reply was lost
        desk.settle(seat, second, Verdict(JobState.SUCCEEDED, AttemptOutcome.SUCCEEDED))
        carrier.close()
        await carrier.finished.wait()
        nursery.cancel_scope.cancel()
    ends = [visit for visit in store.visits if visit]
    assert ends == [[(1, 1)], [(1, 1)], [(1, 2)]]
    assert [(one.attempt, one.state) for one in heard.ended] == [
        (1, JobState.QUEUED),
        (2, JobState.SUCCEEDED),
    ]
    assert heard.stale == 0
    await engine.close()


async def _next(desk: Desk) -> Held:
    with trio.fail_after(30):
        held = await desk.wait_for_claim(desk.seats[1])
    assert held is not None
    return held
