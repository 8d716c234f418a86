"""Where claims begin while the index is full of entries that nobody can remove yet."""

from uuid import uuid4

import attrs
import trio
from trio.testing import MockClock

from musterd.store.leases import ClaimRequest
from musterd.store.postgres.claiming import (
    ALL_SECONDS,
    ALL_SECONDS_AN_ENTRY,
    ALL_SECONDS_MAX,
    DRAINS_FROM,
    LATE_SECONDS,
    MARKS_MAX,
    OVERDUE_SECONDS,
    WALKED_MAX,
    Findings,
    Mark,
    Marks,
    Start,
)

CLAIM = ClaimRequest(uuid4(), "north", (1, 2), 0, 30.0)
MANY = attrs.evolve(CLAIM, ahead=DRAINS_FROM)
HIGH, LOW = Mark(5, "2026-01-01T00:00:00+00:00", 7), Mark(0, "2026-01-01T00:00:00+00:00", 9)
LATER = Mark(0, "2026-01-01T00:00:01.5+00:00", 10)
EARLY = Mark(0, "2025-12-31T23:59:59.123456+00:00", 3)
MUCH = WALKED_MAX + 1


def claimed(
    marks: Marks,
    rest: Findings,
    claim: ClaimRequest = CLAIM,
    is_plain: bool = True,
    taken: int | None = None,
) -> object:
    """The marks that a claim was given, which then came by so much."""
    start = marks.for_claim(claim, is_plain)
    marks.note(rest, start, claim, claim.batch if taken is None else taken)
    return start.marks


async def test_a_claim_that_came_by_little_leaves_no_mark(mock_clock: MockClock) -> None:
    del mock_clock
    await trio.lowlevel.checkpoint()
    marks = Marks()
    claimed(marks, Findings(walked=WALKED_MAX))
    assert claimed(marks, Findings()) == ()
    assert marks.for_walk() == Start()
    assert not marks.hide_jobs


async def test_after_a_long_way_the_next_begin_where_the_first_jobs_were(
    mock_clock: MockClock,
) -> None:
    await trio.lowlevel.checkpoint()
    marks = Marks()
    assert claimed(marks, Findings(walked=MUCH, firsts=[HIGH, LOW])) == ()
    assert claimed(marks, Findings(firsts=[LATER])) == (HIGH, LOW)
    assert claimed(marks, Findings()) == (HIGH, LATER)
    mock_clock.jump(ALL_SECONDS + OVERDUE_SECONDS)  # nobody has looked
    assert claimed(marks, Findings(walked=MUCH, firsts=[LOW])) == ()
    assert claimed(marks, Findings()) == (HIGH, LOW)


async def test_after_a_long_way_so_do_claims_with_limits_and_targets_and_looks(
    mock_clock: MockClock,
) -> None:
    await trio.lowlevel.checkpoint()
    marks = Marks()
    capped = attrs.evolve(CLAIM, caps=(("capped", 1),))
    claimed(marks, Findings(walked=MUCH, firsts=[LOW]), capped, is_plain=False)
    assert claimed(marks, Findings(), capped) == (LOW,)
    assert claimed(marks, Findings(), is_plain=False, taken=0) == (LOW,)  # also a short one
    assert marks.for_walk() == Start((LOW,), LATE_SECONDS)
    assert marks.for_claim(CLAIM, is_plain=False).late_seconds == LATE_SECONDS
    mock_clock.jump(ALL_SECONDS + 2 * OVERDUE_SECONDS)  # and nobody has claimed since
    assert marks.for_walk() == Start()


async def test_while_one_claim_looks_at_all_the_others_go_on(mock_clock: MockClock) -> None:
    await trio.lowlevel.checkpoint()
    marks = Marks()
    claimed(marks, Findings(walked=MUCH, firsts=[LOW]))
    mock_clock.jump(ALL_SECONDS + OVERDUE_SECONDS)
    assert marks.for_claim(CLAIM, is_plain=True).marks == ()
    assert marks.for_claim(CLAIM, is_plain=True).marks == (LOW,)


async def test_the_longer_the_way_the_seldomer_all_is_looked_at(mock_clock: MockClock) -> None:
    await trio.lowlevel.checkpoint()
    marks = Marks()
    claimed(marks, Findings(walked=200_000, firsts=[LOW]))
    mock_clock.jump(200_000 * ALL_SECONDS_AN_ENTRY - 0.1)
    assert not marks.wants_full_walk
    mock_clock.jump(0.1)
    assert marks.wants_full_walk
    marks.note_full_walk([LOW], 100_000_000)
    assert not marks.wants_full_walk
    mock_clock.jump(ALL_SECONDS_MAX)
    assert marks.wants_full_walk
    assert claimed(marks, Findings()) == (LOW,)


async def test_marks_go_on_while_the_look_at_all_is_due(mock_clock: MockClock) -> None:
    """The supervisor makes it soon. Until then each claim begins where the one before ended."""
    await trio.lowlevel.checkpoint()
    marks = Marks()
    claimed(marks, Findings(walked=MUCH, firsts=[LOW]))
    mock_clock.jump(ALL_SECONDS)
    assert marks.wants_full_walk
    assert claimed(marks, Findings(firsts=[LATER])) == (LOW,)
    assert claimed(marks, Findings()) == (LATER,)


async def test_a_look_at_all_by_the_supervisor_lowers_the_marks(mock_clock: MockClock) -> None:
    await trio.lowlevel.checkpoint()
    marks = Marks()
    claimed(marks, Findings(walked=MUCH, firsts=[LOW]))
    claimed(marks, Findings(firsts=[LATER]))
    under_way = marks.for_claim(CLAIM, is_plain=True)
    mock_clock.jump(ALL_SECONDS)
    marks.note_full_walk([HIGH, EARLY], MUCH)
    marks.note(Findings(firsts=[LATER]), under_way, CLAIM, CLAIM.batch)
    assert claimed(marks, Findings()) == (EARLY, HIGH)


async def test_a_look_at_all_that_came_by_little_ends_them(mock_clock: MockClock) -> None:
    await trio.lowlevel.checkpoint()
    marks = Marks()
    claimed(marks, Findings(walked=MUCH, firsts=[LOW]))
    mock_clock.jump(ALL_SECONDS)
    marks.note_full_walk([LOW], WALKED_MAX)
    assert claimed(marks, Findings()) == ()
    assert not marks.hide_jobs


async def test_each_claim_of_a_drain_begins_where_the_one_before_began(
    mock_clock: MockClock,
) -> None:
    del mock_clock
    await trio.lowlevel.checkpoint()
    marks = Marks()
    claimed(marks, Findings(firsts=[LOW]), MANY)
    assert marks.for_claim(MANY, is_plain=True) == Start((LOW,))
    assert claimed(marks, Findings(firsts=[LATER]), MANY) == (LOW,)
    assert not marks.hide_jobs
    assert marks.for_walk() == Start()
    assert claimed(marks, Findings(firsts=[LATER]), MANY, taken=MANY.batch - 1) == (LATER,)
    assert claimed(marks, Findings()) == ()


async def test_in_a_drain_claims_with_limits_or_targets_look_at_all(mock_clock: MockClock) -> None:
    """The jobs that these let go on have old places."""
    del mock_clock
    await trio.lowlevel.checkpoint()
    marks = Marks()
    claimed(marks, Findings(firsts=[LOW]), MANY)
    assert marks.for_claim(attrs.evolve(MANY, caps=(("capped", 1),)), is_plain=True) == Start()
    assert marks.for_claim(MANY, is_plain=False) == Start()
    assert marks.for_claim(MANY, is_plain=True) == Start((LOW,))


async def test_once_the_way_is_short_again_there_are_no_marks(mock_clock: MockClock) -> None:
    await trio.lowlevel.checkpoint()
    marks = Marks()
    claimed(marks, Findings(walked=MUCH, firsts=[HIGH]))
    mock_clock.jump(ALL_SECONDS + OVERDUE_SECONDS)
    claimed(marks, Findings(walked=0))
    assert claimed(marks, Findings()) == ()
    assert not marks.hide_jobs


async def test_there_are_so_many_marks_at_most(mock_clock: MockClock) -> None:
    del mock_clock
    await trio.lowlevel.checkpoint()
    marks = Marks()
    firsts = [Mark(priority, LOW.run_at, 1) for priority in range(2 * MARKS_MAX)]
    claimed(marks, Findings(walked=MUCH, firsts=firsts))
    assert marks.for_walk().marks == tuple(firsts[:MARKS_MAX])


async def test_what_is_let_go_on_lowers_the_mark_of_its_priority(mock_clock: MockClock) -> None:
    del mock_clock
    await trio.lowlevel.checkpoint()
    marks = Marks()
    claimed(marks, Findings(walked=MUCH, firsts=[HIGH, LOW]))
    under_way = marks.for_claim(CLAIM, is_plain=False)
    unknown = Mark(3, EARLY.run_at, 1)
    assert marks.lower([LATER, EARLY, unknown]) == 1
    assert marks.for_walk().marks == (HIGH, EARLY)
    marks.note(Findings(firsts=[LATER]), under_way, CLAIM, CLAIM.batch)  # it began before that
    assert claimed(marks, Findings(firsts=[LATER])) == (HIGH, EARLY)
    assert claimed(marks, Findings()) == (HIGH, LATER)


async def test_what_is_let_go_on_at_an_unknown_place_is_looked_for_at_once(
    mock_clock: MockClock,
) -> None:
    del mock_clock
    await trio.lowlevel.checkpoint()
    marks = Marks()
    claimed(marks, Findings(walked=MUCH, firsts=[LOW]))
    marks.walk_all()
    assert claimed(marks, Findings(walked=MUCH, firsts=[LOW])) == ()
    assert claimed(marks, Findings()) == (LOW,)
