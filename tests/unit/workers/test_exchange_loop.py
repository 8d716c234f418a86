"""The loop: what goes together on a visit to the store."""

import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast
from uuid import UUID

import attrs
import pytest
import trio
from trio.testing import MockClock

from musterd.config.settings import lease_plan
from musterd.store.errors import InputRefused, OutcomeUnknown
from musterd.store.jobs import NewJob
from musterd.store.leases import Claim, ClaimRequest, Ends, Exchange, Settlement, Verdict
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.queue import Hint
from musterd.store.sqlite.engine import SqliteEngine
from musterd.workers.claiming.desk import Desk
from musterd.workers.claiming.exchange_loop import ExchangeLoop
from musterd.workers.claiming.held import Held, Seat
from musterd.workers.idleness import listen
from musterd.workers.leases import LeaseKeeper
from musterd.workers.outcome import Contained, released
from tests.contract.job_tools import reap_by
from tests.support.desks import Heard, be_brisk, make_desk
from tests.support.faulty_engine import Fault, FaultyEngine, PartOverlay
from tests.support.stage import live_settings


class Watched(FaultyEngine):
    """Knows what was settled together."""

    def __init__(self, engine: SqliteEngine, nursery: trio.Nursery) -> None:
        super().__init__(engine, nursery)
        self.visits: list[list[tuple[int, int]]] = []  # of each, (job, attempt)
        self.held_up: set[int] = set()  # jobs that somebody else holds
        self.odd: list[Exception] = []  # what comes of the next replies
        self.leases = cast(Any, Visits(self.leases, self))

    @property
    def ends(self) -> list[int]:
        """How many went with each visit that settled."""
        return [len(visit) for visit in self.visits if visit]


class Visits(PartOverlay):
    def __init__(self, part: object, watched: Watched) -> None:
        super().__init__(part)
        self._watched = watched

    async def exchange(self, ends: Ends, claim: ClaimRequest | None) -> Exchange:
        self._watched.visits.append([(one.id, one.attempt) for one in ends.all()])
        ids = {one.id for one in ends.all()}
        held_up = ids & self._watched.held_up
        done: Exchange = await self.part.exchange(ends.of(ids - held_up), claim)
        if self._watched.odd:
            raise self._watched.odd.pop()
        return done._replace(held_up=frozenset(held_up))


SUCCESS = Verdict(JobState.SUCCEEDED, AttemptOutcome.SUCCEEDED)


@attrs.frozen
class Small:
    """One job in a store, and a loop under way."""

    desk: Desk
    store: Watched
    engine: SqliteEngine
    heard: Heard
    loop: ExchangeLoop
    faults: list[Contained] = attrs.field(factory=list[Contained])

    @property
    def ended(self) -> list[tuple[int, JobState]]:
        """Of each end that was written, the attempt and its state."""
        return [(one.attempt, one.state) for one in self.heard.ended]

    async def ends(self) -> list[list[tuple[int, int]]]:
        """Of each visit that settled, once all is written."""
        self.loop.close()
        await self.loop.finished.wait()
        return [visit for visit in self.store.visits if visit]

    async def begin(self) -> tuple[Desk, Seat, Held]:
        """Gives the job to worker 1."""
        seat = self.desk.open_seat(1)
        return self.desk, seat, await _next(self.desk)

    async def one_more(self) -> Held:
        """Another job, enqueued and claimed."""
        await self.engine.jobs.enqueue([NewJob("k")])
        self.desk.hint()
        return await _next(self.desk)


@asynccontextmanager
async def serving(
    desk: Desk, jobs: int
) -> AsyncGenerator[tuple[SqliteEngine, Watched, ExchangeLoop]]:
    engine = SqliteEngine(":memory:", trio.current_time, busy_timeout_seconds=1.0)
    await engine.open()
    await engine.migrate()
    await engine.jobs.enqueue([NewJob("k")] * jobs)
    async with trio.open_nursery() as nursery:
        store = Watched(engine, nursery)
        loop = ExchangeLoop(desk, store.leases, trio.current_time, random.Random(1), lambda: None)
        nursery.start_soon(loop.run)  # noqa: ASYNC113 - it may start at any time
        yield engine, store, loop
        nursery.cancel_scope.cancel()
    await engine.close()


@pytest.fixture
async def small() -> AsyncGenerator[Small]:
    heard = Heard()
    desk = make_desk(heard, limits__claim_ahead_ms=0)
    async with serving(desk, jobs=1) as (engine, store, loop):
        small = Small(desk, store, engine, heard, loop)
        loop.contained = small.faults.append
        yield small


async def test_the_worker_of_a_single_claim_begins_before_the_next_exchange(
    autojump_clock: MockClock,
) -> None:
    """What it ends at once goes with that one."""
    del autojump_clock
    desk = make_desk(limits__claim_ahead_ms=0)

    async def work(worker: int) -> None:
        seat = desk.open_seat(worker)
        while held := await desk.wait_for_claim(seat):
            desk.settle(seat, held, SUCCESS)

    async with serving(desk, jobs=0) as (engine, store, _), trio.open_nursery() as nursery:
        for worker in (1, 2):
            nursery.start_soon(work, worker)
        await trio.sleep(1)
        store.visits.clear()
        for _ in range(20):
            await engine.jobs.enqueue([NewJob("k")])
            desk.hint()
            await trio.sleep(0.005)
        assert [len(visit) for visit in store.visits] == [0, 1] * 20
        nursery.cancel_scope.cancel()


async def test_two_ends_of_one_job_do_not_go_together(
    autojump_clock: MockClock, small: Small
) -> None:
    """What the store refuses it names by jobs: who had sent both could not tell which was meant."""
    del autojump_clock
    desk, seat, first = await small.begin()
    small.store.faults["settle"].append(Fault("reply_lost"))
    desk.settle(seat, first, released("a test wants it"))
    second = await _next(desk)  # claimed by the visit whose reply was lost
    desk.settle(seat, second, SUCCESS)
    assert await small.ends() == [[(1, 1)], [(1, 1)], [(1, 2)]]
    assert small.ended == [(1, JobState.QUEUED), (2, JobState.SUCCEEDED)]
    assert small.heard.stale == 0


async def test_an_end_that_is_held_up_is_tried_again_and_waited_for(
    autojump_clock: MockClock, small: Small
) -> None:
    """The worker goes on meanwhile, and a loop that is to end has it written first."""
    del autojump_clock
    desk, seat, held = await small.begin()
    small.store.held_up.add(1)
    desk.settle(seat, held, SUCCESS)
    await trio.sleep(0.1)
    desk.settle(seat, await small.one_more(), SUCCESS)
    await trio.sleep(0.9)
    assert small.store.visits.count([(1, 1)]) == 4
    small.loop.close()
    with trio.move_on_after(1):
        await small.loop.finished.wait()
    assert not small.loop.finished.is_set()
    assert [one.id for one in small.heard.ended] == [2]
    assert small.heard.held_up_ids == [1]
    small.store.held_up.clear()
    await small.loop.finished.wait()
    assert [one.id for one in small.heard.ended] == [2, 1]


async def test_a_reply_that_breaks_costs_that_visit(
    autojump_clock: MockClock, small: Small
) -> None:
    """What it had claimed is read back, what it had ended is found, and the loop goes on."""
    del autojump_clock
    desk, seat = small.desk, small.desk.open_seat(1)
    small.store.odd.append(ValueError("no such date"))
    held = await _next(desk)
    small.store.odd.append(KeyError("a fault of ours"))
    desk.settle(seat, held, SUCCESS)
    await trio.sleep(1)
    assert [one.where for one in small.faults] == ["exchange"] * 2
    assert [one.id for one in small.heard.ended] == [1]
    assert small.heard.stale == 0
    assert (await small.one_more()).claim.id == 2


async def test_a_fault_after_a_claim_was_booked_hands_no_job_out_twice(
    autojump_clock: MockClock, small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is read back is in hand already, and its attempt goes on."""
    del autojump_clock
    desk, book_look = small.desk, small.desk.book_look
    odd = [KeyError("a fault of ours")]

    def breaks_once(*args: Any, **more: Any) -> bool:
        if odd:
            raise odd.pop()
        return book_look(*args, **more)

    monkeypatch.setattr(desk, "book_look", breaks_once)
    seat, other = desk.open_seat(1), desk.open_seat(2)
    held = await _next(desk)
    with trio.move_on_after(5):
        assert await desk.wait_for_claim(other) is None, "the same attempt runs twice"
    assert (held.lost, len(small.faults)) == (False, 1)
    desk.settle(seat, held, SUCCESS)
    await trio.sleep(1)
    assert [one.id for one in small.heard.ended] == [1]


async def test_what_cannot_be_read_back_is_left_to_its_lease(
    autojump_clock: MockClock, small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    del autojump_clock

    async def unreadable(token: UUID) -> list[Claim]:
        await trio.lowlevel.checkpoint()
        raise InputRefused(f"{token}: no such date")

    small.store.odd.append(ValueError("no such date"))
    monkeypatch.setattr(small.store.leases, "claims_under", unreadable)
    small.desk.open_seat(1)
    with trio.move_on_after(5):
        await _next(small.desk)
    assert [one.where for one in small.faults] == ["exchange"] * 2
    assert (await small.one_more()).claim.id == 2


async def test_a_hint_that_breaks_costs_a_poll(autojump_clock: MockClock, small: Small) -> None:
    del autojump_clock
    wait, broken = small.store.queue.wait_for_hint, [ValueError("no number")]

    class Queue(PartOverlay):
        async def wait_for_hint(self) -> Hint:
            if broken:
                raise broken.pop()
            return await wait()

    small.store.queue = cast(Any, Queue(small.store.queue))
    keeper = LeaseKeeper(
        small.desk, small.store, lease_plan(live_settings().now), trio.current_time, small.heard
    )
    async with trio.open_nursery() as nursery:
        args = small.store, small.desk, keeper, lambda: None, random.Random(1)
        nursery.start_soon(listen, *args, small.faults.append)
        await trio.sleep(5)
        assert [one.where for one in small.faults] == ["hint"]
        nursery.cancel_scope.cancel()


async def test_nor_do_they_where_the_lease_of_the_first_was_lost(
    autojump_clock: MockClock, small: Small
) -> None:
    """A node that was frozen ends a job that has been taken from it, and that it has again."""
    del autojump_clock
    desk, seat, other = small.desk, small.desk.open_seat(1), small.desk.open_seat(2)
    first = await _next(desk)
    await trio.sleep(31)
    await small.engine.leases.reap(reap_by("requeue"))
    desk.poll()
    second = await _next(desk)
    desk.settle(seat, first, SUCCESS)
    desk.settle(other, second, SUCCESS)
    assert await small.ends() == [[(1, 1)], [(1, 2)]]
    assert small.ended == [(2, JobState.SUCCEEDED)]
    assert small.heard.stale == 1


async def test_a_refused_end_keeps_nothing_of_what_was_refused(
    autojump_clock: MockClock, small: Small
) -> None:
    """Whichever of its values it is: the job ends all the same."""
    del autojump_clock

    def refuses(one: Settlement) -> bool:
        return one.error is None or (one.spent, one.log, one.percent, one.note) != (None,) * 4

    small.store.refuses = refuses
    desk, seat, held = await small.begin()
    odd = SUCCESS._replace(spent='{"a": 1}', log="odd", percent=5.0, note="odd")
    desk.settle(seat, held, odd)
    await trio.sleep(5)
    assert small.ended == [(1, JobState.FAILED)]
    assert not small.heard.lost


async def test_an_end_that_no_store_takes_is_forgotten_with_its_lost_replies(
    autojump_clock: MockClock, small: Small
) -> None:
    del autojump_clock
    desk, seat, held = await small.begin()
    uncertain: list[int] = []

    def refuses(_: Settlement) -> bool:
        uncertain.append(len(cast(Any, small.loop)._uncertain))
        if len(uncertain) == 1:
            raise OutcomeUnknown("lost", "unreachable")
        return True

    small.store.refuses = refuses
    desk.settle(seat, held, SUCCESS)
    await trio.sleep(5)
    assert uncertain[:2] == [0, 1]
    assert not desk.has_ended
    assert not cast(Any, small.loop)._uncertain


BATCH = 4


@attrs.frozen
class Busy:
    desk: Desk
    seat: Seat
    store: Watched
    heard: Heard

    async def end(self, jobs: int) -> None:
        """Does so many of those that lie ready; a second later what can be written is."""
        for _ in range(jobs):
            held = self.desk.take(self.seat)
            assert held is not None
            self.desk.settle(self.seat, held, SUCCESS)
        await trio.sleep(1)


@pytest.fixture
async def busy() -> AsyncGenerator[Busy]:
    """Three batches lie ready, and the reply to the first settlement will take ten seconds."""
    heard = Heard()
    desk = make_desk(
        heard,
        workers__poll_interval_ms=60_000,
        limits__claim_batch=BATCH,
        limits__claim_ahead_ms=1_000,
    )
    be_brisk(desk)
    seat = desk.open_seat(1)
    async with serving(desk, jobs=50) as (_, store, loop):
        await trio.sleep(1)
        store.visits.clear()
        store.faults["settle"].append(Fault("slow_reply", 10.0))
        yield Busy(desk, seat, store, heard)
        loop.close()
        await loop.finished.wait()


async def test_a_second_visit_leaves_with_a_whole_batch(
    autojump_clock: MockClock, busy: Busy
) -> None:
    del autojump_clock
    await busy.end(1)
    await busy.end(BATCH - 1)
    assert busy.store.ends == [1]  # not for less
    await busy.end(1)
    assert busy.store.ends == [1, BATCH]
    assert len(busy.heard.ended) == BATCH  # its reply is here, the first one's is not
    await busy.end(BATCH)
    assert busy.store.ends == [1, BATCH, BATCH]


async def test_less_than_a_batch_leaves_when_the_visit_under_way_is_back(
    autojump_clock: MockClock, busy: Busy
) -> None:
    del autojump_clock
    await busy.end(1)
    await busy.end(2)
    await trio.sleep(7)
    assert busy.store.ends == [1]
    await trio.sleep(2)
    assert busy.store.ends == [1, 2]
    assert len(busy.heard.ended) == 3


async def test_what_ends_while_two_visits_are_under_way_is_written_all_the_same(
    autojump_clock: MockClock, busy: Busy
) -> None:
    del autojump_clock
    busy.store.faults["settle"].append(Fault("reply_lost"))
    await busy.end(1)
    await busy.end(BATCH)
    await busy.end(1)
    await trio.sleep(60)
    assert sorted(one.id for one in busy.heard.ended) == list(range(1, BATCH + 3))
    assert busy.heard.stale == 0


async def _next(desk: Desk) -> Held:
    with trio.fail_after(30):
        held = await desk.wait_for_claim(desk.seats[1])
    assert held is not None
    return held
