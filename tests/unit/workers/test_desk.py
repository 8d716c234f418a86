"""The desk's books: which claims are in this node's hands, and which are no longer."""

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from musterd.store.leases import Claim, Exchange, Verdict
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.phases import PhaseEnd, PhaseState
from musterd.workers.claiming.desk import Desk
from musterd.workers.claiming.held import Held, Seat
from musterd.workers.outcome import SUCCEEDED, Note, released
from tests.support.desks import Heard, be_brisk, claim, make_desk

FAILED = Verdict(JobState.FAILED, AttemptOutcome.FAILED)


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def desk(heard: Heard) -> Desk:
    return make_desk(heard)


async def book(desk: Desk, *claims: Claim) -> None:
    """As the loop does after a visit to the store."""
    await trio.lowlevel.checkpoint()
    desk.book_claims(claims, 0.0)


def start_one(desk: Desk) -> Seat:
    seat = desk.open_seat(1)
    assert desk.take(seat) is not None
    return seat


async def test_a_settlement_that_is_refused_takes_no_newer_claim_with_it(
    desk: Desk, heard: Heard, mock_clock: MockClock
) -> None:
    """Its lease was lost and its job came back to this very node: that claim must be renewed."""
    del mock_clock
    await book(desk, claim(5))
    seat = start_one(desk)
    first = desk.held[5]
    desk.settle(seat, first, released("a test"))
    ended = desk.take_ended()
    await book(desk, claim(5, attempt=2))
    desk.book_stale(ended)
    assert desk.held[5].claim.attempt == 2
    assert heard.stale == 1


async def test_a_lost_claim_that_is_dropped_takes_no_newer_one_with_it(
    desk: Desk, mock_clock: MockClock
) -> None:
    del mock_clock
    await book(desk, claim(5))
    seat = start_one(desk)
    first = desk.held[5]
    desk.lose(first)
    await book(desk, claim(5, attempt=2))
    desk.drop(seat, first)
    assert desk.held[5].claim.attempt == 2


async def test_a_claim_ends_an_older_one_of_the_same_job(
    desk: Desk, heard: Heard, mock_clock: MockClock
) -> None:
    del mock_clock
    await book(desk, claim(5))
    start_one(desk)
    first = desk.held[5]
    await book(desk, claim(5, attempt=2))
    assert first.lost
    assert heard.lost == [5]


async def test_a_claim_that_is_lost_before_its_start_is_gone_at_once(
    desk: Desk, heard: Heard, mock_clock: MockClock
) -> None:
    del mock_clock
    await book(desk, claim(5), claim(6))
    desk.lose(desk.held[5])
    assert list(desk.held) == [6]
    assert desk.ready_count == 1
    assert not desk.has_ended
    assert heard.lost == [5]


async def test_a_claim_that_is_lost_before_its_worker_takes_it_is_not_begun(
    desk: Desk, autojump_clock: MockClock
) -> None:
    del autojump_clock
    seat = desk.open_seat(1)
    begun: list[Held | None] = []

    async def work() -> None:
        begun.append(await desk.wait_for_claim(seat))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work)
        await trio.testing.wait_all_tasks_blocked()
        desk.book_claims([claim(5)], 0.0)
        desk.lose(desk.held[5])  # before the worker has come for it
        await trio.testing.wait_all_tasks_blocked()
        assert begun == []
        desk.book_claims([claim(6)], 0.0)
    (held,) = begun
    assert held is not None
    assert held.claim.id == 6


async def test_a_worker_that_takes_turns_lets_others_run_first(
    desk: Desk, mock_clock: MockClock
) -> None:
    del mock_clock
    await book(desk, claim(5), claim(6))
    seat = start_one(desk)
    with trio.testing.assert_checkpoints():
        held = await desk.take_turns(seat)
    assert held is not None
    assert held.claim.id == 6


async def test_a_claim_that_is_being_settled_is_not_lost(
    desk: Desk, heard: Heard, mock_clock: MockClock
) -> None:
    del mock_clock
    await book(desk, claim(5))
    held = desk.held[5]
    desk.settle(start_one(desk), held, Verdict(JobState.SUCCEEDED, AttemptOutcome.SUCCEEDED))
    desk.lose(held)
    assert not held.lost
    assert heard.lost == []


async def test_what_is_claimed_after_the_end_of_claiming_is_given_back(
    desk: Desk, mock_clock: MockClock
) -> None:
    del mock_clock
    desk.stop_claiming()
    await book(desk, claim(5), claim(6))
    given_back = {one.settlement.id: one.settlement for one in desk.take_ended()}
    assert sorted(given_back) == [5, 6]
    assert all(one.forgive and one.state is JobState.QUEUED for one in given_back.values())
    assert desk.load(is_first=True).request is None


async def test_what_has_lain_ready_too_long_is_given_back_and_what_is_fresh_is_not(
    desk: Desk, mock_clock: MockClock
) -> None:
    await book(desk, claim(5))
    mock_clock.jump(1.0)
    await book(desk, claim(6))
    desk.give_back_stale(0.5)
    assert desk.ready_count == 2, "the first comes before a fresh one, which somebody takes soon"
    mock_clock.jump(0.6)
    desk.give_back_stale(0.5)
    assert desk.ready_count == 0
    given_back = {one.settlement.id: one.settlement for one in desk.take_ended()}
    assert sorted(given_back) == [5, 6]
    assert all(one.forgive and one.state is JobState.QUEUED for one in given_back.values())


async def test_at_rest_one_job_is_asked_for_then_as_many_as_there_are_workers(desk: Desk) -> None:
    async with trio.open_nursery() as nursery:
        seats = [desk.open_seat(worker) for worker in (1, 2, 3)]
        for seat in seats:
            nursery.start_soon(desk.wait_for_claim, seat)
            await trio.testing.wait_all_tasks_blocked()
        asked: list[tuple[int, ...]] = []
        for taken in (0, 0, 1, 0):
            asked.append(look(desk, taken))
            desk.hint()
        held = Held(claim(7), 0.0, 0.0)
        held.start(1, (0.0, 0.0), 0.0)
        desk.settle(seats[0], held, SUCCEEDED)
        asked.append(look(desk, 0))  # an end goes with it
        nursery.cancel_scope.cancel()
    assert asked == [(1, 2, 3), (1,), (1,), (1, 2, 3), (1, 2, 3)]


def look(desk: Desk, taken: int) -> tuple[int, ...]:
    """An exchange that brings so many jobs; says whom it asked for."""
    load = desk.load(is_first=True)
    assert load.request is not None
    answer = Exchange(frozenset(), [claim(one) for one in range(taken)])
    desk.book_look(load, answer, beside_another=False)
    desk.unload(load)
    return load.request.workers


async def test_a_call_beside_another_asks_for_neither_its_workers_nor_its_room(desk: Desk) -> None:
    be_brisk(desk)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.wait_for_claim, desk.open_seat(1))
        await trio.testing.wait_all_tasks_blocked()
        asked: list[tuple[tuple[int, ...], int] | None] = []
        for is_first in (True, False, False, False):
            request = desk.load(is_first=is_first).request
            asked.append((request.workers, request.ahead) if request else None)
        assert asked == [((1,), 499), ((), 500), ((), 500), None]
        nursery.cancel_scope.cancel()


def test_an_end_takes_along_what_was_spent_and_is_not_in_the_store() -> None:
    held, spent = Held(claim(7), 0.0, 0.0), '{"tokens": 3}'
    held.spend(spent)
    assert held.with_progress(released("its node shut down")).spent == spent
    held.news_written(None, spent)
    assert held.with_progress(released("its node shut down")).spent is None


def test_an_end_takes_along_how_far_its_own_phase_came_and_not_another_one() -> None:
    held, name = Held(claim(7), 0.0, 0.0), "fetch"
    held.end_phase(PhaseEnd(name, PhaseState.FAILED))
    held.note(Note(20.0, None, name, 40.0))
    assert held.with_progress(FAILED).phase == PhaseEnd(name, PhaseState.FAILED, progress=40.0)
    held.phase = PhaseEnd("send", PhaseState.FAILED)
    assert held.with_progress(FAILED).phase == held.phase


async def test_a_job_after_one_that_was_dropped_begins_when_it_is_taken(
    mock_clock: MockClock,
) -> None:
    """Not when its worker's last job ended: by then its lease was not even there."""
    desk = make_desk()
    await book(desk, claim(1))
    seat = start_one(desk)
    desk.settle(seat, desk.held[1], SUCCEEDED)
    assert desk.take(seat) is None
    mock_clock.jump(1000)
    desk.book_claims([claim(2), claim(3)], 0.0)
    for _ in range(2):
        late = desk.take(seat)
        assert late is not None
        assert (late.started_late, late.started_local) == (True, trio.current_time())
        desk.drop(seat, late)


def test_what_was_noted_in_a_phase_that_has_ended_is_no_news() -> None:
    """Else it is written again and again."""
    held = Held(claim(7), 0.0, 0.0)
    held.note(Note(50, None))
    held.news_written(*held.news())
    assert not held.has_news
    held.advance()
    assert (held.has_news, held.news()) == (False, (None, None))


async def test_an_end_after_a_sleep_of_the_machine_has_the_stores_time(
    mock_clock: MockClock,
) -> None:
    """Trio's clock stands still in a sleep, the store's does not."""
    del mock_clock
    slept = 0.0
    desk = make_desk(boottime=lambda: trio.current_time() + slept)
    desk.hear_time(1000.0, trio.current_time())
    await book(desk, claim(5))
    seat = start_one(desk)
    slept = 600.0
    desk.settle(seat, desk.held[5], released("a test"))
    (ended,) = desk.take_ended()
    assert ended.settlement.ended_epoch == pytest.approx(1600.0)
