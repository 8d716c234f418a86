"""Traces of other systems, and odd files."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.console.simulate.csv_trace import InvalidTrace, is_csv, rows_of, trace_of_rows
from musterd.manager.scaling.model.simulation import simulate
from musterd.manager.scaling.model.trace import Trace
from tests.support.traces import rules

HEAD = "enqueued,started,finished,kind"


def read(*lines: str, head: str = HEAD) -> Trace | None:
    return trace_of_rows(rows_of([f"{line}\n" for line in (head, *lines)]))


def test_a_line_is_an_attempt() -> None:
    trace = read(
        "2026-11-09T08:00:00Z,2026-11-09T08:00:02.5Z,2026-11-09T08:00:12Z,report",
        "2026-11-09T10:00:01+02:00,2026-11-09T08:00:01Z,2026-11-09T08:00:03Z,mail",
    )
    assert trace is not None
    assert trace.begun_at == datetime(2026, 11, 9, 8, tzinfo=UTC)
    assert list(zip(trace.due_seconds, trace.waited_seconds, trace.run_seconds, strict=True)) == [
        (1.0, 0.0, 2.0), (0.0, 2.5, 9.5),
    ]  # fmt: skip
    assert (list(trace.kinds), list(trace.firsts)) == (["mail", "report"], [1, 0])
    assert trace.span_seconds == 12.0
    assert list(simulate(trace, rules()).waits) == [0.0, 0.0]


def test_seconds_since_1970_other_columns_and_any_order_will_do() -> None:
    trace = read(
        "x,mail,1000.5,1001,1003,9", "",
        head="\ufeffworker, Kind ,ENQUEUED,started,finished,id",
    )  # fmt: skip
    assert trace is not None
    assert (list(trace.waited_seconds), list(trace.run_seconds)) == ([0.5], [2.0])


def test_what_has_not_ended_is_counted_and_left_out() -> None:
    trace = read("1,2,3,a", "1,2,,a", "1,,,a", "2,,,a")
    assert trace is not None
    assert (len(trace), trace.left_out.running, trace.left_out.waiting) == (1, 1, 2)
    assert read("1,,,a", "1,2,,a") is None
    assert read() is None


def test_a_quoted_kind_may_hold_anything() -> None:
    trace = read('1,2,3,"a, ""b"""', '1,2,3,"two\nlines"')
    assert trace is not None
    assert list(trace.kinds) == ['a, "b"', "two\nlines"]


def test_no_more_are_read_than_may_be_simulated_and_since_leaves_out_the_older() -> None:
    rows = list(rows_of([HEAD, "1,2,3,a", "2,3,4,a", "3,4,5,a"]))
    cut = trace_of_rows(rows, attempts_max=2)
    assert cut is not None
    assert (len(cut), cut.left_out.cut) == (2, True)
    later = trace_of_rows(rows, datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=2))
    assert later is not None
    assert (len(later), later.left_out.cut) == (2, False)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("soon,2,3,a", "line 2, enqueued: found 'soon', wanted a time as"),
        (
            "1,2026-11-09T08:00:00,3,a",
            "line 2, started: found '2026-11-09T08:00:00', wanted a time",
        ),
        ("1,2,nan,a", "line 2, finished: found 'nan', wanted a time"),
        ("1,2,1e300,a", "line 2, finished: found '1e300', wanted a time"),
        (",2,3,a", "line 2, enqueued: found nothing, wanted a time"),
        ("1,,3,a", "line 2, started: found nothing, but the job has finished"),
        ("2,1,3,a", "line 2, started: it is before enqueued"),
        ("1,3,2,a", "line 2, finished: it is before started"),
        ("1,2,3", "line 2, kind: the line has 3 values, wanted one in column 4"),
        ('1,2,3,"a"b', "line 2: "),
        ('1,2,3,"a', "line 2: "),
    ],
)
def test_a_fault_names_its_line_and_column(line: str, words: str) -> None:
    with pytest.raises(InvalidTrace) as caught:
        read(line)
    assert str(caught.value).startswith(words)


def test_a_fault_names_the_line_of_the_file() -> None:
    with pytest.raises(InvalidTrace, match=r"^line 5, started: it is before enqueued$"):
        read("1,2,3,a", "", "1,2,3,a", "9,2,3,a")


@pytest.mark.parametrize("head", ["", "a,b", "enqueued,started,kind", "enqueued;started;finished"])
def test_a_file_without_the_names_of_its_columns_is_refused(head: str) -> None:
    with pytest.raises(InvalidTrace, match=r"^line 1: found .*, wanted the names of the columns: "):
        read("1,2,3,a", head=head)


def test_a_log_of_events_is_told_by_its_first_line() -> None:
    assert [is_csv(line) for line in (HEAD, '{"id": 1}', '\ufeff {"id"', "", "x", "enqueued")] == [
        True, False, False, False, False, True,
    ]  # fmt: skip


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused_in_a_sentence(text: str) -> None:
    found = ""
    try:
        trace_of_rows(rows_of([HEAD + "\n", *text.splitlines(keepends=True)]))
    except InvalidTrace as error:
        found = str(error)
    assert not found or found.startswith("line ")
