"""The parts of what is due: what holds for any cluster whose nodes see the same."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.manager.scaling.decision import NOBODY, Others, share_of

frees = st.lists(st.integers(0, 50), min_size=1, max_size=12)
dues = st.integers(0, 1000)
lots = st.integers(0, 2**62)


def others_of(free: list[int], lot: int) -> list[Others]:
    """What each node sees of the others."""
    before = [0, *accumulate(free)]
    return [Others(sum(free) - own, before[at], lot) for at, own in enumerate(free)]


def shares(due: int, free: list[int], lot: int, *, overdue: bool = False) -> list[int]:
    seen = others_of(free, lot)
    return [
        share_of(due, own, others, overdue=overdue) for own, others in zip(free, seen, strict=True)
    ]


@given(dues, frees.filter(any), lots)
def test_the_parts_are_the_whole(due: int, free: list[int], lot: int) -> None:
    assert sum(share for share, own in zip(shares(due, free, lot), free, strict=True) if own) == due


@given(dues, frees.filter(any), lots, st.booleans())
def test_each_has_a_part_by_what_it_has_free(
    due: int, free: list[int], lot: int, overdue: bool
) -> None:
    for share, own, others in zip(
        shares(due, free, lot, overdue=overdue), free, others_of(free, lot), strict=True
    ):
        if own:
            assert abs(share - due * own / (own + others.free)) < 1
        elif others.free:
            assert share == 0


@given(dues, frees.filter(any), lots)
def test_what_is_overdue_is_left_to_nobody(due: int, free: list[int], lot: int) -> None:
    """At most one job a node too much, and some for each that has room."""
    parts = shares(due, free, lot, overdue=True)
    helping = [share for share, own in zip(parts, free, strict=True) if own]
    assert due <= sum(helping) <= due + len(helping)
    assert not due or min(helping) >= 1


@given(dues, frees.filter(any), lots)
def test_more_that_is_due_is_more_for_all(due: int, free: list[int], lot: int) -> None:
    """But for the odd job, which the lot may give to somebody else."""
    for before, after in zip(shares(due, free, lot), shares(due + 1, free, lot), strict=True):
        assert after >= before - 1
    for before, after in zip(
        shares(due, free, lot, overdue=True), shares(due + 1, free, lot, overdue=True), strict=True
    ):
        assert after >= before


@given(dues, lots)
def test_where_nobody_has_room_each_sees_all_of_it(due: int, lot: int) -> None:
    """So that the wish is told, and what limits it."""
    assert shares(due, [0, 0, 0], lot) == [due] * 3


@given(dues, st.integers(0, 50))
def test_who_is_alone_takes_all(due: int, free: int) -> None:
    assert share_of(due, free, NOBODY) == due


@pytest.mark.parametrize("step", [1, 1_000, 250_000, 1_000_000, 60_000_000])
def test_single_jobs_fall_to_all_by_what_they_have_free(step: int) -> None:
    """Whatever the times at which they become due: the lot is such a time."""
    free, got = [1, 2, 5], [0, 0, 0]
    for number in range(800):
        parts = shares(1, free, 1_800_000_000_000_000 + number * step)
        got = [count + part for count, part in zip(got, parts, strict=True)]
    assert got == pytest.approx([100, 200, 500], abs=25)
