"""When the desk looks for work, and how much it takes."""

import math
import random

import pytest
import trio
from trio.testing import MockClock

from musterd.workers.claiming.pacing import ClaimPacing, Look
from musterd.workers.idleness import Idleness, IdleState
from tests.support.stage import live_settings


class NoDice(random.Random):
    def uniform(self, a: float, b: float) -> float:
        return (a + b) / 2


@pytest.fixture
def idleness() -> Idleness:
    return Idleness()


@pytest.fixture
def pacing(idleness: Idleness) -> ClaimPacing:
    return ClaimPacing(live_settings(), idleness, NoDice())


def end(pacing: ClaimPacing, begun: Look, taken: int, more: int = 0) -> bool:
    """A look that asked for 4 jobs comes back."""
    return pacing.end_look(begun, taken, 4, more, full=False)


async def look(pacing: ClaimPacing, taken: int) -> bool:
    begun = pacing.begin_look()
    await trio.lowlevel.checkpoint()
    return end(pacing, begun, taken)


async def test_a_full_hand_asks_for_more(pacing: ClaimPacing, mock_clock: MockClock) -> None:
    del mock_clock
    assert not await look(pacing, 4)
    assert pacing.is_due


async def test_a_short_claim_that_parked_jobs_is_no_look_at_an_empty_queue(
    pacing: ClaimPacing, mock_clock: MockClock
) -> None:
    del mock_clock
    await trio.lowlevel.checkpoint()
    assert not end(pacing, pacing.begin_look(), 1, more=3)
    assert pacing.is_due
    assert not pacing.has_run_dry(math.inf)


async def test_after_work_the_looks_follow_ever_later_up_to_the_poll(
    pacing: ClaimPacing, mock_clock: MockClock
) -> None:
    del mock_clock
    await look(pacing, 1)
    pauses = [pacing.planned_local - trio.current_time()]
    for _ in range(4):
        await look(pacing, 0)
        pauses.append(pacing.planned_local - trio.current_time())
    assert pauses == pytest.approx([0.01, 0.04, 0.16, 0.25, 0.25])
    assert not pacing.is_due


async def test_one_job_is_expected_where_the_last_look_left_nothing(
    pacing: ClaimPacing, mock_clock: MockClock
) -> None:
    del mock_clock
    assert not pacing.expects_one  # nobody has looked yet
    await look(pacing, 3)
    assert pacing.expects_one
    pacing.hint()
    assert pacing.expects_one
    await look(pacing, 4)
    assert not pacing.expects_one


async def test_the_look_that_follows_one_for_a_single_job_is_the_first_echo(
    pacing: ClaimPacing, mock_clock: MockClock
) -> None:
    del mock_clock
    await look(pacing, 0)
    for hinted, pause in ((False, 0.04), (True, 0.01)):
        pacing.hint()
        assert not pacing.end_look(pacing.begin_look(), 1, 1, 0, full=False)
        if hinted:  # the next look is for what came meanwhile
            pacing.hint()
        assert await look(pacing, 0)  # and the first that says that the queue has run dry
        assert pacing.planned_local - trio.current_time() == pytest.approx(pause)


async def test_only_the_first_short_look_says_that_the_queue_has_run_dry(
    pacing: ClaimPacing, mock_clock: MockClock
) -> None:
    del mock_clock
    assert await look(pacing, 0)
    assert not await look(pacing, 0)
    pacing.hint()
    assert await look(pacing, 0)
    assert await look(pacing, 1)


async def test_a_hint_that_comes_during_a_look_is_not_forgotten(
    pacing: ClaimPacing, mock_clock: MockClock
) -> None:
    del mock_clock
    begun = pacing.begin_look()
    await trio.lowlevel.checkpoint()
    pacing.hint()
    assert not end(pacing, begun, 0)
    assert pacing.is_due
    await look(pacing, 0)
    assert not pacing.is_due


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
    pacing: ClaimPacing, service_seconds: float, hands: int, ready: int, room: int
) -> None:
    for _ in range(2000):
        pacing.note_service(service_seconds)
    assert pacing.room_ahead(hands, ready) == room


def test_a_few_dozen_jobs_tell_that_they_are_brisk(pacing: ClaimPacing) -> None:
    for _ in range(10):
        pacing.note_service(0.0001)
    assert not pacing.is_brisk
    for _ in range(30):
        pacing.note_service(0.0001)
    assert pacing.is_brisk


def test_then_one_job_among_many_changes_little(pacing: ClaimPacing) -> None:
    for _ in range(1000):
        pacing.note_service(0.0001)
    pacing.note_service(0.02)
    assert pacing.is_brisk


def test_nothing_lies_ready_where_that_is_turned_off() -> None:
    pacing = ClaimPacing(live_settings(limits__claim_ahead_ms=0), Idleness(), NoDice())
    for _ in range(2000):
        pacing.note_service(0)
    assert pacing.room_ahead(8, 0) == 0


async def settle_down(pacing: ClaimPacing) -> None:
    """Looks until they are as seldom as polls."""
    for _ in range(4):
        await look(pacing, 0)


async def test_while_listening_one_more_look_is_the_last(
    pacing: ClaimPacing, idleness: Idleness, mock_clock: MockClock
) -> None:
    del mock_clock
    await settle_down(pacing)
    assert pacing.planned_local < math.inf
    idleness.listen()
    assert pacing.planned_local < math.inf
    await look(pacing, 0)
    assert pacing.planned_local == math.inf
    assert pacing.has_run_dry(0.0)


async def test_a_look_that_began_before_proves_nothing(
    pacing: ClaimPacing, idleness: Idleness, mock_clock: MockClock
) -> None:
    del mock_clock
    await settle_down(pacing)
    begun = pacing.begin_look()
    idleness.listen()
    end(pacing, begun, 0)
    assert pacing.planned_local < math.inf


@pytest.mark.parametrize("news", ["a hint", "work", "a full hand", "a poll"])
async def test_whatever_is_new_ends_quiet_and_listening(
    pacing: ClaimPacing, idleness: Idleness, mock_clock: MockClock, news: str
) -> None:
    del mock_clock
    await settle_down(pacing)
    stirred = await idleness.until_quiet()
    idleness.listen()
    await look(pacing, 0)
    if news == "a hint":
        pacing.hint()
    elif news == "a poll":
        pacing.poll()
    else:
        await look(pacing, 1 if news == "work" else 4)
    assert stirred.is_set()
    assert idleness.state is IdleState.ACTIVE
    await settle_down(pacing)
    await look(pacing, 0)
    assert pacing.planned_local == pytest.approx(trio.current_time() + 0.25)


async def test_it_is_quiet_when_looks_are_as_seldom_as_polls(
    pacing: ClaimPacing, idleness: Idleness, mock_clock: MockClock
) -> None:
    await settle_down(pacing)
    await idleness.until_quiet()
    pacing.hint()
    with trio.move_on_after(10) as scope:
        mock_clock.autojump_threshold = 0
        await idleness.until_quiet()
    assert scope.cancelled_caught


async def test_where_the_node_scans_the_queue_looks_become_ever_rarer(
    pacing: ClaimPacing, idleness: Idleness, mock_clock: MockClock
) -> None:
    del mock_clock
    idleness.begin_scan()
    for _ in range(20):
        await look(pacing, 0)
    assert idleness.state is IdleState.SCANNED
    assert pacing.planned_local == pytest.approx(trio.current_time() + 3600)
