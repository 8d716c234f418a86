"""When the desk looks for work, and how much it takes."""

import random

import pytest
import trio
from trio.testing import MockClock

from musterd.workers.appetite import Appetite


class NoDice(random.Random):
    def uniform(self, a: float, b: float) -> float:
        return (a + b) / 2


@pytest.fixture
def appetite() -> Appetite:
    return Appetite(poll_seconds=0.25, ahead_seconds=0.02, batch_max=500, rng=NoDice())


async def look(appetite: Appetite, taken: int, asked: int) -> bool:
    appetite.begin_look()
    await trio.lowlevel.checkpoint()
    return appetite.note_claim(taken, asked)


async def test_a_full_hand_asks_for_more(appetite: Appetite, mock_clock: MockClock) -> None:
    del mock_clock
    assert not await look(appetite, 4, 4)
    assert appetite.hungry


async def test_a_short_claim_that_parked_jobs_is_no_look_at_an_empty_queue(
    appetite: Appetite, mock_clock: MockClock
) -> None:
    del mock_clock
    appetite.begin_look()
    await trio.lowlevel.checkpoint()
    assert not appetite.note_claim(1, 4, parked=3)
    assert appetite.hungry
    assert appetite.short_at_local == float("-inf")


async def test_after_work_the_looks_follow_ever_later_up_to_the_poll(
    appetite: Appetite, mock_clock: MockClock
) -> None:
    del mock_clock
    await look(appetite, 1, 4)
    pauses = [appetite.next_poll_local - trio.current_time()]
    for _ in range(4):
        await look(appetite, 0, 4)
        pauses.append(appetite.next_poll_local - trio.current_time())
    assert pauses == pytest.approx([0.01, 0.04, 0.16, 0.25, 0.25])
    assert not appetite.hungry


async def test_only_the_first_short_look_says_that_the_queue_has_run_dry(
    appetite: Appetite, mock_clock: MockClock
) -> None:
    del mock_clock
    assert await look(appetite, 0, 4)
    assert not await look(appetite, 0, 4)
    appetite.hint()
    assert await look(appetite, 0, 4)
    assert await look(appetite, 1, 4)


async def test_a_hint_that_comes_during_a_look_is_not_forgotten(
    appetite: Appetite, mock_clock: MockClock
) -> None:
    del mock_clock
    appetite.begin_look()
    await trio.lowlevel.checkpoint()
    appetite.hint()
    assert not appetite.note_claim(0, 4)
    assert appetite.hungry
    await look(appetite, 0, 4)
    assert not appetite.hungry


@pytest.mark.parametrize(
    ("service_seconds", "hands", "ready", "room"),
    [
        (1.0, 8, 0, 0),  # one job takes longer than the time that may lie ready
        (0.0199, 8, 0, 8),
        (0.0199, 8, 8, 0),
        (0.00099, 8, 0, 161),
        (0.001, 8, 10_000, 0),
        (0.0, 8, 0, 1500),  # three batches at most
        (0.001, 0, 0, 0),
    ],
)
def test_no_more_is_claimed_ahead_than_the_hands_start_soon(
    appetite: Appetite, service_seconds: float, hands: int, ready: int, room: int
) -> None:
    for _ in range(2000):
        appetite.note_service(service_seconds)
    assert appetite.room_ahead(hands, ready) == room


def test_a_few_dozen_jobs_tell_that_they_are_brisk(appetite: Appetite) -> None:
    for _ in range(10):
        appetite.note_service(0.0001)
    assert not appetite.is_brisk
    for _ in range(30):
        appetite.note_service(0.0001)
    assert appetite.is_brisk


def test_then_one_job_among_many_changes_little(appetite: Appetite) -> None:
    for _ in range(1000):
        appetite.note_service(0.0001)
    appetite.note_service(0.02)
    assert appetite.is_brisk


def test_nothing_lies_ready_where_that_is_turned_off(appetite: Appetite) -> None:
    appetite.ahead_seconds = 0
    for _ in range(2000):
        appetite.note_service(0)
    assert appetite.room_ahead(8, 0) == 0


async def settle_down(appetite: Appetite) -> None:
    """Looks until they are as seldom as polls."""
    for _ in range(4):
        await look(appetite, 0, 4)


async def test_where_hints_are_trusted_one_more_look_is_the_last(
    appetite: Appetite, mock_clock: MockClock
) -> None:
    del mock_clock
    await settle_down(appetite)
    assert appetite.next_poll_local < float("inf")
    appetite.trust_hints()
    assert not appetite.calm
    await look(appetite, 0, 4)
    assert appetite.calm
    assert appetite.next_poll_local == float("inf")


async def test_a_look_that_was_begun_before_proves_nothing(
    appetite: Appetite, mock_clock: MockClock
) -> None:
    del mock_clock
    await settle_down(appetite)
    appetite.begin_look()
    appetite.trust_hints()
    appetite.note_claim(0, 4)
    assert not appetite.calm


@pytest.mark.parametrize("news", ["a hint", "work", "a full hand"])
async def test_whatever_is_new_ends_the_calm_and_the_trust(
    appetite: Appetite, mock_clock: MockClock, news: str
) -> None:
    del mock_clock
    await settle_down(appetite)
    appetite.trust_hints()
    await look(appetite, 0, 4)
    heard = appetite.news
    if news == "a hint":
        appetite.hint()
    else:
        await look(appetite, 1 if news == "work" else 4, 4)
    assert heard.is_set()
    await settle_down(appetite)
    await look(appetite, 0, 4)
    assert not appetite.calm
    assert appetite.next_poll_local == pytest.approx(trio.current_time() + 0.25)


async def test_a_lull_begins_when_looks_are_as_seldom_as_polls(
    appetite: Appetite, mock_clock: MockClock
) -> None:
    await settle_down(appetite)
    await appetite.lull()
    appetite.hint()
    with trio.move_on_after(10) as scope:
        mock_clock.autojump_threshold = 0
        await appetite.lull()
    assert scope.cancelled_caught
