"""Jobs that take next to no time are relayed from worker to worker."""

import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from musterd.store.leases import Claim, Reaped, Settlement, Verdict
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.workers.claiming.desk import Desk
from musterd.workers.claiming.held import Held
from musterd.workers.observer import Ignored
from musterd.workers.worker import JOBS_A_TURN
from tests.support.stage import live_settings

DONE = Verdict(JobState.SUCCEEDED, AttemptOutcome.SUCCEEDED)


class Deaf:
    def claimed(self, kind: str, waited_seconds: Sequence[float]) -> None: ...

    def settled(self, settlements: Sequence[Settlement]) -> None: ...

    def stale_writes(self, count: int) -> None: ...

    def lease_lost(self, job_id: int, kind: str, attempt: int) -> None: ...

    def request_ignored(self, ignored: Ignored) -> None: ...

    def reaped(self, reaped: Sequence[Reaped]) -> None: ...


def make_desk(ahead_seconds: float = 0.02) -> Desk:
    settings = live_settings(limits__claim_ahead_ms=round(1000 * ahead_seconds))
    return Desk("north", settings, tuple, Deaf(), random.Random(1))


def be_brisk(desk: Desk) -> None:
    for _ in range(1_000):
        desk.pacing.note_service(0.0)
    assert desk.pacing.is_brisk


def lay_ready(desk: Desk, count: int) -> None:
    claims = [
        Claim(number, "k", "{}", 1, None, 0, 0.0, None, UUID(int=1)) for number in range(count)
    ]
    desk.book_claims(claims, 0.0)


Begun = list[tuple[int, int]]  # worker, job


@asynccontextmanager
async def crew(
    desk: Desk, size: int, waits: Callable[[int], bool] = lambda _: False
) -> AsyncGenerator[Begun]:
    """Workers as in `workers.worker`, whose jobs end at once, or never if they wait."""
    begun: Begun = []

    async def work(number: int) -> None:
        seat, jobs = desk.open_seat(number), 0
        held: Held | None = desk.take(seat)
        while held or (held := await desk.wait_for_claim(seat)):
            begun.append((number, held.claim.id))
            if waits(held.claim.id):
                await trio.sleep_forever()
            desk.settle(seat, held, DONE)
            jobs += 1
            held = desk.take(seat) if jobs % JOBS_A_TURN else await desk.take_turns(seat)

    async with trio.open_nursery() as nursery:
        for number in range(1, size + 1):
            nursery.start_soon(work, number)
            await wait_all_tasks_blocked()
        yield begun
        nursery.cancel_scope.cancel()


async def test_work_is_asked_for_one_worker_and_for_nobody_while_some_lies_ready(
    mock_clock: MockClock,
) -> None:
    del mock_clock
    desk = make_desk()
    be_brisk(desk)
    async with crew(desk, 10, waits=lambda _: True):
        lay_ready(desk, 1)
        await wait_all_tasks_blocked()
        request = desk.request()
        assert request is not None
        assert (request.workers, request.batch) == ((2,), 500)
        lay_ready(desk, 20)
        again = desk.request()
        assert again is not None
        assert again.workers == ()


@pytest.mark.parametrize(
    ("ahead_seconds", "runs", "in_hand"),
    [(0.0, 1_000, 1), (0.02, 0, 1), (0.02, 1_000, 0)],
    ids=["nothing is claimed ahead", "jobs take their time", "nothing is in hand"],
)
async def test_else_work_is_asked_for_all_who_are_idle(
    mock_clock: MockClock, ahead_seconds: float, runs: int, in_hand: int
) -> None:
    del mock_clock
    desk = make_desk(ahead_seconds)
    for _ in range(runs):
        desk.pacing.note_service(0.0)
    async with crew(desk, 10, waits=lambda _: True):
        lay_ready(desk, in_hand)
        await wait_all_tasks_blocked()
        request = desk.request()
        assert request is not None
        assert request.workers == tuple(range(1 + in_hand, 11))


async def test_jobs_that_never_wait_are_done_in_order_by_one_after_the_other(
    mock_clock: MockClock,
) -> None:
    del mock_clock
    desk = make_desk()
    be_brisk(desk)
    async with crew(desk, 10) as begun:
        lay_ready(desk, 5 * JOBS_A_TURN)
        await wait_all_tasks_blocked()
    assert [job for _, job in begun] == list(range(5 * JOBS_A_TURN))
    turns = [begun[first][0] for first in range(0, len(begun), JOBS_A_TURN)]
    assert turns == [1, 2, 3, 4, 5]


async def test_whoever_has_to_wait_keeps_nobody_from_working(mock_clock: MockClock) -> None:
    del mock_clock
    desk = make_desk()
    be_brisk(desk)
    async with crew(desk, 10, waits=lambda job: job % 3 == 0) as begun:
        lay_ready(desk, 28)
        await wait_all_tasks_blocked()
    assert [job for _, job in begun] == list(range(28))
    assert len({worker for worker, job in begun if job % 3 == 0}) == 10


async def test_one_that_was_called_and_leaves_calls_the_next(mock_clock: MockClock) -> None:
    del mock_clock
    desk = make_desk()
    be_brisk(desk)
    async with crew(desk, 3) as begun:
        lay_ready(desk, 5)
        seat = desk.seats[1]
        seat.retiring = True
        seat.ring()
        await wait_all_tasks_blocked()
    assert {worker for worker, _ in begun} == {2}
    assert len(begun) == 5


async def test_a_crew_of_one_goes_on_by_itself(mock_clock: MockClock) -> None:
    del mock_clock
    desk = make_desk()
    be_brisk(desk)
    async with crew(desk, 1) as begun:
        lay_ready(desk, 3 * JOBS_A_TURN)
        await wait_all_tasks_blocked()
    assert len(begun) == 3 * JOBS_A_TURN
