"""How long workers are without a job while one is due."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from musterd.store.leases import Exchange
from musterd.workers.claiming.desk import Desk
from musterd.workers.claiming.handover import WEIGHT, Handover
from musterd.workers.claiming.held import Seat
from musterd.workers.outcome import SUCCEEDED
from tests.support.desks import claim, make_desk


async def serve(desk: Desk, seat: Seat, jobs: int) -> None:
    """As a worker does, with jobs of a second."""
    for _ in range(jobs):
        held = desk.take(seat) or await desk.wait_for_claim(seat)
        assert held is not None
        await trio.sleep(1)
        desk.settle(seat, held, SUCCEEDED)
    desk.take(seat)


async def test_a_worker_that_waits_for_a_due_job_is_measured(autojump_clock: MockClock) -> None:
    del autojump_clock
    desk = make_desk()
    seat = desk.open_seat(1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve, desk, seat, 4)
        await trio.testing.wait_all_tasks_blocked()
        desk.book_claims([claim(1)], 0.0)
        await trio.sleep(1.25)
        assert desk.handover.seconds == 0, "the first had nothing before it"
        desk.book_claims([claim(2)._replace(waited_seconds=0.5)], 0.0)
        await trio.testing.wait_all_tasks_blocked()
        assert desk.handover.seconds == 0.25
        desk.book_claims([claim(3)._replace(waited_seconds=0.5)], 0.0)
        assert desk.handover.seconds == 0.125, "it lies ready"
        await trio.sleep(7)
        desk.book_claims([claim(4)._replace(waited_seconds=0.5)], 0.0)
        await trio.sleep(1.5)
        assert desk.handover.seconds == 0.125, "there was nothing to do before"


async def test_a_job_that_stood_aside_kept_nobody_waiting(autojump_clock: MockClock) -> None:
    del autojump_clock
    desk = make_desk()
    seat = desk.open_seat(1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve, desk, seat, 2)
        await trio.testing.wait_all_tasks_blocked()
        desk.book_claims([claim(1)], 0.0)
        await trio.sleep(1.25)
        load = desk.load(is_first=True)
        assert desk.book_look(load, Exchange(frozenset(), []), beside_another=False), "it is parked"
        desk.unload(load)
        await trio.sleep(5)
        desk.book_claims([claim(2)._replace(waited_seconds=20.0)], 0.0)
        await trio.sleep(2)
    assert desk.handover.seconds == 0


def test_it_is_a_mean_of_the_last_jobs() -> None:
    handover = Handover()
    for _ in range(3):
        handover.note(0.0, 1.0, 1.5)
        handover.at_once(1)
    assert handover.seconds == pytest.approx(0.25, rel=0.01)
    for _ in range(400):
        handover.note(0.0, 1.0, 1.125)
    assert handover.seconds == pytest.approx(0.125, rel=0.01)
    handover.at_once(round(1 / WEIGHT))
    assert 0.04 < handover.seconds < 0.05
    handover.at_once(1_000_000)
    assert handover.seconds == pytest.approx(0.0)
    assert Handover().seconds == 0.0
