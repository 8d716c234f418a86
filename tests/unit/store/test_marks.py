"""Where claims begin while the index is full of entries that nobody can remove yet."""

from uuid import uuid4

import attrs
import trio
from trio.testing import MockClock

from musterd.store.job import ClaimRequest
from musterd.store.postgres.marks import ALL_SECONDS, Marks
from musterd.store.postgres.rows import WALKED_MAX, Mark, Rest

CLAIM = ClaimRequest(uuid4(), "north", (1, 2), 0, 30.0)
HIGH, LOW = Mark(5, "2026-01-01T00:00:00+00:00", 7), Mark(0, "2026-01-01T00:00:00+00:00", 9)
LATER = Mark(0, "2026-01-01T00:00:01+00:00", 10)
MUCH = WALKED_MAX + 1


def claimed(marks: Marks, rest: Rest, claim: ClaimRequest = CLAIM, is_plain: bool = True) -> object:
    """The marks that a claim was given, which then came by so much."""
    given = marks.for_claim(claim, is_plain)
    marks.note(rest)
    return given


async def test_a_claim_that_came_by_little_leaves_no_mark(mock_clock: MockClock) -> None:
    del mock_clock
    await trio.lowlevel.checkpoint()
    marks = Marks()
    claimed(marks, Rest(walked=WALKED_MAX))
    assert claimed(marks, Rest()) == ()


async def test_after_a_long_way_the_next_begin_where_the_first_jobs_were(
    mock_clock: MockClock,
) -> None:
    await trio.lowlevel.checkpoint()
    marks = Marks()
    assert claimed(marks, Rest(walked=MUCH, firsts=[HIGH, LOW])) == ()
    assert claimed(marks, Rest(firsts=[LATER])) == (HIGH, LOW)
    assert claimed(marks, Rest()) == (HIGH, LATER)
    mock_clock.jump(ALL_SECONDS)
    assert claimed(marks, Rest(walked=MUCH, firsts=[LOW])) == ()  # all is looked at again
    assert claimed(marks, Rest()) == (HIGH, LOW)


async def test_once_the_way_is_short_again_there_are_no_marks(mock_clock: MockClock) -> None:
    await trio.lowlevel.checkpoint()
    marks = Marks()
    claimed(marks, Rest(walked=MUCH, firsts=[HIGH]))
    mock_clock.jump(ALL_SECONDS)
    claimed(marks, Rest(walked=0))
    assert claimed(marks, Rest()) == ()


async def test_where_jobs_are_let_go_on_from_old_places_all_is_looked_at(
    mock_clock: MockClock,
) -> None:
    del mock_clock
    await trio.lowlevel.checkpoint()
    marks = Marks()
    much = Rest(walked=MUCH, firsts=[LOW])
    claimed(marks, much)
    assert claimed(marks, much, attrs.evolve(CLAIM, caps=(("capped", 1),))) == ()
    assert claimed(marks, much, is_plain=False) == ()
    assert claimed(marks, much) == (LOW,)
