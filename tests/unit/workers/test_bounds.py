"""The scope that attempts share: kept while nobody cancels it, and never cancelled for another."""

from __future__ import annotations

import math

import pytest
import trio

from musterd.workers.toolbox import Bounds


async def test_attempts_that_nobody_cancels_share_a_scope() -> None:
    bounds = Bounds()
    with bounds.kept():
        with bounds as first:
            await trio.lowlevel.checkpoint()
        with bounds as second:
            await trio.lowlevel.checkpoint()
    assert first is second


async def test_without_a_block_that_keeps_it_a_scope_ends_with_its_attempt() -> None:
    bounds = Bounds()
    with bounds as first:
        await trio.lowlevel.checkpoint()
    with bounds as second:
        await trio.lowlevel.checkpoint()
    assert second is not first


async def test_a_cancelled_attempt_ends_there_and_the_next_has_a_scope_of_its_own() -> None:
    bounds = Bounds()
    with bounds.kept():
        with bounds as first:
            bounds.cancel()
            await trio.sleep_forever()
        with bounds as second:
            await trio.lowlevel.checkpoint()
    assert first.cancelled_caught
    assert second is not first
    assert not second.cancel_called


async def test_a_cancel_that_comes_after_the_end_of_the_work_reaches_nobody() -> None:
    bounds = Bounds()
    with bounds.kept():
        with bounds:
            bounds.cancel()
        await trio.lowlevel.checkpoint()
        with bounds:
            await trio.lowlevel.checkpoint()


async def test_the_time_limit_of_one_attempt_is_not_the_next_ones(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bounds = Bounds()
    with bounds.kept():
        with bounds as scope:
            bounds.limit(5)
            await trio.sleep(1)
        with bounds as scope:
            assert scope.deadline == math.inf
            await trio.sleep(60)
        assert not scope.cancelled_caught
        with bounds as scope:
            bounds.limit(5)
            await trio.sleep(60)
    assert scope.cancelled_caught


async def test_a_cancel_from_outside_passes_through() -> None:
    bounds = Bounds()
    with trio.CancelScope() as outer, bounds.kept():
        with bounds:
            await trio.lowlevel.checkpoint()
        with bounds:
            outer.cancel()
            await trio.sleep_forever()
        pytest.fail("the cancel has been swallowed")
    assert outer.cancelled_caught


async def test_an_error_passes_and_leaves_nothing_open() -> None:
    bounds = Bounds()
    with bounds.kept():
        with pytest.raises(ValueError, match="mine"), bounds as first:
            raise ValueError("mine")
        with bounds as second:
            await trio.lowlevel.checkpoint()
    assert second is not first
