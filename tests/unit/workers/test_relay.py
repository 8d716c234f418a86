"""Jobs that take next to no time are relayed from worker to worker."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from uuid import UUID

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from musterd.store.leases import Claim, ClaimRequest, Verdict
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.workers.claiming.desk import Desk
from musterd.workers.claiming.held import LOOKS_A_TURN, TURN_SECONDS, Held
from musterd.workers.worker import JOBS_A_LOOK
from tests.support.desks import be_brisk, make_desk

JOBS_A_TURN = JOBS_A_LOOK * LOOKS_A_TURN
DONE = Verdict(JobState.SUCCEEDED, AttemptOutcome.SUCCEEDED)


def asked(desk: Desk) -> ClaimRequest | None:
    load = desk.load(is_first=True)
    desk.unload(load)
    return load.request


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
            held = desk.take(seat) if jobs % JOBS_A_LOOK else await desk.take_turns(seat)

    async with trio.open_nursery() as nursery:
        for number in range(1, size + 1):
            nursery.start_soon(work, number)
            await wait_all_tasks_blocked()
        yield begun
        nursery.cancel_scope.cancel()


@pytest.fixture
def brisk(mock_clock: MockClock) -> Desk:
    """A desk whose jobs take hardly any time."""
    del mock_clock
    desk = make_desk()
    be_brisk(desk)
    return desk


async def test_work_is_asked_for_one_worker_and_for_nobody_while_some_lies_ready(
    brisk: Desk,
) -> None:
    async with crew(brisk, 10, waits=lambda _: True):
        lay_ready(brisk, 1)
        await wait_all_tasks_blocked()
        request = asked(brisk)
        assert request is not None
        assert (request.workers, request.batch) == ((2,), 500)
        lay_ready(brisk, 20)
        again = asked(brisk)
        assert again is not None
        assert again.workers == ()


@pytest.mark.parametrize(
    ("ahead_seconds", "is_brisk", "in_hand"),
    [(0.0, True, 1), (0.02, False, 1), (0.02, True, 0)],
    ids=["nothing is claimed ahead", "jobs take their time", "nothing is in hand"],
)
async def test_else_work_is_asked_for_all_who_are_idle(
    mock_clock: MockClock, ahead_seconds: float, is_brisk: bool, in_hand: int
) -> None:
    del mock_clock
    desk = make_desk(limits__claim_ahead_ms=round(1000 * ahead_seconds))
    if is_brisk:
        be_brisk(desk)
    async with crew(desk, 10, waits=lambda _: True):
        lay_ready(desk, in_hand)
        await wait_all_tasks_blocked()
        request = asked(desk)
        assert request is not None
        assert request.workers == tuple(range(1 + in_hand, 11))


async def test_jobs_that_never_wait_are_done_in_order_by_one_after_the_other(
    brisk: Desk,
) -> None:
    async with crew(brisk, 10) as begun:
        lay_ready(brisk, 5 * JOBS_A_TURN)
        await wait_all_tasks_blocked()
    assert [job for _, job in begun] == list(range(5 * JOBS_A_TURN))
    turns = [begun[first][0] for first in range(0, len(begun), JOBS_A_TURN)]
    assert turns == [1, 2, 3, 4, 5]


async def test_a_turn_ends_in_time_where_jobs_keep_the_loop_busy(
    brisk: Desk, mock_clock: MockClock
) -> None:
    def computes(job: int) -> bool:
        del job
        mock_clock.jump(TURN_SECONDS / JOBS_A_LOOK)
        return False

    async with crew(brisk, 10, waits=computes) as begun:
        lay_ready(brisk, 3 * JOBS_A_LOOK)
        await wait_all_tasks_blocked()
    assert [begun[first][0] for first in range(0, len(begun), JOBS_A_LOOK)] == [1, 2, 3]


async def test_whoever_has_to_wait_keeps_nobody_from_working(brisk: Desk) -> None:
    async with crew(brisk, 10, waits=lambda job: job % 3 == 0) as begun:
        lay_ready(brisk, 28)
        await wait_all_tasks_blocked()
    assert [job for _, job in begun] == list(range(28))
    assert len({worker for worker, job in begun if job % 3 == 0}) == 10


async def test_one_that_was_called_and_leaves_calls_the_next(brisk: Desk) -> None:
    async with crew(brisk, 3) as begun:
        lay_ready(brisk, 5)
        seat = brisk.seats[1]
        seat.retire()
        await wait_all_tasks_blocked()
    assert {worker for worker, _ in begun} == {2}
    assert len(begun) == 5


async def test_a_crew_of_one_goes_on_by_itself(brisk: Desk) -> None:
    async with crew(brisk, 1) as begun:
        lay_ready(brisk, 3 * JOBS_A_TURN)
        await wait_all_tasks_blocked()
    assert len(begun) == 3 * JOBS_A_TURN
