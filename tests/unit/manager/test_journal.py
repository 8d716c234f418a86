"""Packing decisions: few rows, out of which the same decisions come."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import attrs
from hypothesis import given
from hypothesis import strategies as st

from musterd.manager.node.status import Decision
from musterd.manager.scaling.journal import (
    SPAN_SECONDS_MAX,
    TOLERANCE_SECONDS,
    Period,
    decision_of,
    packed,
    page_of,
    unpacked,
)
from musterd.store.scaling_journal import FIELDS, JournalRun

ME = UUID(int=7)
START = 1_800_000_000.0
QUIET = Decision(
    START, "latency", 0, 0, 2, 0, 2, "min", 0, 0, 0, 0, None, None, "floor",
    default_count=2, max_count=8,
)  # fmt: skip
SAID: Sequence[dict[str, Any]] = (
    {},
    {"due": None, "raw_wish": None, "limited_by": "no_observation"},
    {"due": 9, "busy": 2, "raw_wish": 11, "desired": 8, "hired": 6, "limited_by": "max"},
    {"because": "drain", "decided_by": {"kind": "report", "job": 4}, "slack_seconds": -0.1},
    {"candidate": {"desired": 3}},
)
pauses = st.sampled_from([0.0, 0.001, 0.9, 1.0, 1.0, 1.0, 1.1, 1.3, 40.0, 4_000.0])


def at(seconds: float, **said: Any) -> Decision:
    return attrs.evolve(QUIET, at=START + seconds, **said)


def packed_rows(decisions: Sequence[Decision]) -> list[JournalRun]:
    return packed(decisions, ME, "north")


def test_the_store_has_a_column_for_all_that_a_decision_says() -> None:
    assert set(FIELDS) == set(attrs.fields_dict(Decision)) - {"at"}


@given(st.lists(st.tuples(pauses, st.sampled_from([0, 0, 0, 0, 1, 2, 3, 4])), max_size=60))
def test_unpacked_are_the_same_decisions(ticks: list[tuple[float, int]]) -> None:
    seconds, decisions = 0.0, list[Decision]()
    for pause, what in ticks:
        seconds += pause
        decisions.append(at(seconds, **SAID[what]))
    rows = packed_rows(decisions)
    found = [one for row in rows for one in unpacked(row)]
    assert [attrs.evolve(one, at=0) for one in found] == [
        attrs.evolve(one, at=0) for one in decisions
    ]
    for real, one in zip(decisions, found, strict=True):
        assert abs(real.at - one.at) <= TOLERANCE_SECONDS + 1e-5
    for row in rows:
        assert row.at <= row.until
        assert (row.until - row.at).total_seconds() <= SPAN_SECONDS_MAX


def test_an_hour_of_like_ticks_is_one_row() -> None:
    wobble = [0.0, 0.02, -0.01, 0.1, 0.0, -0.12]
    rows = packed_rows([at(second + wobble[second % 6]) for second in range(3_600)])
    assert [row.ticks for row in rows] == [3_600]
    assert len(packed_rows([at(second) for second in range(3 * 3_600)])) == 3


def test_a_tick_that_comes_out_of_turn_begins_a_row() -> None:
    """A crew that rested for an hour has not decided each few minutes meanwhile."""
    rows = packed_rows([at(second) for second in (0, 1, 2, 3, 1_000, 1_001, 1_002)])
    assert [(row.ticks, (row.until - row.at).total_seconds()) for row in rows] == [(4, 3), (3, 2)]


def test_a_clock_that_is_put_back_begins_a_row() -> None:
    rows = packed_rows([at(10), at(11), at(5), at(6)])
    assert [row.ticks for row in rows] == [2, 2]


def test_a_row_gives_its_first_decision() -> None:
    one = at(0.123456, **SAID[3])
    assert decision_of(packed_rows([one])[0]) == one


def test_a_page_has_the_newest_rows_and_says_where_the_others_are() -> None:
    rows = packed_rows([at(2 * one, due=one) for one in range(5)])
    page = page_of(Period(None, None, 2), rows[2:], ())
    assert page.runs == rows[3:]
    assert page.is_whole
    earlier = Period(None, page.earlier_until, 10)
    assert [row for row in rows if earlier.has(row)] == rows[:3]
    assert page_of(earlier, rows[:3], ()) == attrs.evolve(page, runs=rows[:3], earlier_until=None)


def test_what_is_not_yet_written_takes_the_place_of_what_is() -> None:
    ticks = [at(second) for second in range(10)]
    (stored,), (longer,) = packed_rows(ticks[:5]), packed_rows(ticks)
    (newest,) = packed_rows([at(10, due=3)])
    assert page_of(Period(None, None, 9), [stored], [longer, newest]).runs == [longer, newest]
    early = Period(None, newest.at - (newest.at - longer.at) / 10, 9)
    assert page_of(early, [stored], [longer, newest]).runs == [longer]
