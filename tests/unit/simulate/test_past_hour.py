"""An hour beside the model: which part of it, which attempts, and what each figure is."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.manager.scaling.model.past_hour import (
    ATTEMPTS_MAX,
    COMPARED_SECONDS_MIN,
    EVENTS_A_STEP,
    HOUR_SECONDS,
    LEAD_SECONDS,
    TOO_MANY,
    Window,
    compared,
    taking,
    window_of,
    worker_seconds,
)
from musterd.manager.scaling.model.reading import TraceReader
from musterd.store.compared_hours import (
    ATTEMPTS_MIN,
    ComparedHour,
    HourFigures,
    error_ratio,
    first_hour,
    hour_object,
)
from musterd.store.events import Event
from musterd.store.history import STEP_SECONDS
from tests.support.traces import rules

T = TypeVar("T")
UNTIL = 1_800_003_600.0
AT = datetime.fromtimestamp(UNTIL - HOUR_SECONDS, UTC)
WHOLE = Window(UNTIL - HOUR_SECONDS - LEAD_SECONDS, UNTIL - HOUR_SECONDS, UNTIL)


def result(steps: Generator[None, None, T]) -> tuple[T, int]:
    """What it returns, and in how many steps."""
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, count
        count += 1


@pytest.mark.parametrize(
    ("real", "model", "ratio"),
    [
        (10.0, 10.0, 0.0),
        (10.0, 11.0, 0.1),
        (10.0, 9.0, 0.1),
        (1.0, 3.0, 2.0),
        (100.0, 0.0, 1.0),
        (0.0, 0.05, 0.1),  # 50 ms of a short wait are a tenth
        (0.003, 0.0, 0.006),
        (0.0, 0.0, 0.0),
    ],
)
def test_the_error_is_a_share_of_the_real_wait_or_of_half_a_second(
    real: float, model: float, ratio: float
) -> None:
    assert error_ratio(real, model) == pytest.approx(ratio)


def hour(attempts: int, real: float = 1.0, model: float = 1.5) -> ComparedHour:
    was, present = (HourFigures(0.0, p95, p95) for p95 in (real, model))
    return ComparedHour(AT, 3600.0, attempts, was, present)


def test_few_attempts_say_nothing_of_an_error() -> None:
    assert hour(ATTEMPTS_MIN - 1).error_ratio is None
    assert hour(ATTEMPTS_MIN).error_ratio == pytest.approx(0.5)
    assert ComparedHour(AT, skipped="so").error_ratio is None


def test_programs_see_the_hour_with_its_error() -> None:
    found = hour_object(hour(30))
    assert (found["at"], found["error_ratio"]) == ("2027-01-15T08:00:00.000000Z", 0.5)
    assert found["was"]["wait_p95_seconds"] == 1.0
    assert found["skipped"] is None


def test_a_reader_goes_back_to_the_hour_that_is_under_way() -> None:
    assert first_hour(None) is None
    assert first_hour(AT) == AT - timedelta(hours=1)
    assert first_hour(datetime.min.replace(tzinfo=UTC)) is None


# -- which part of the hour


def test_all_of_a_quiet_hour_is_compared() -> None:
    assert window_of([(UNTIL - 600, 5)], UNTIL) == WHOLE
    assert WHOLE.at == AT


def test_of_a_busy_hour_its_end_is_compared() -> None:
    """Twelve steps of 15 s a quarter of what may be: the fifth is too much."""
    full = [(UNTIL - STEP_SECONDS * n, ATTEMPTS_MAX // 40) for n in range(1, 241)]
    window = window_of(full, UNTIL)
    assert window is not None
    assert window.since == UNTIL - 40 * STEP_SECONDS
    assert window.compared_since == window.since + LEAD_SECONDS
    assert window.at == AT


def test_of_an_hour_that_is_too_busy_nothing_is_compared() -> None:
    steps = int((COMPARED_SECONDS_MIN + LEAD_SECONDS) / STEP_SECONDS)
    enough = [(UNTIL - STEP_SECONDS * n, ATTEMPTS_MAX // steps) for n in range(1, 241)]
    assert window_of(enough, UNTIL) is not None
    assert window_of([(at, number + 100) for at, number in enough], UNTIL) is None
    assert "20,000 attempts in five minutes" in TOO_MANY
    assert steps * STEP_SECONDS == 300


@given(st.lists(st.integers(0, ATTEMPTS_MAX), max_size=250))
def test_what_is_read_never_has_more_attempts_than_allowed(numbers: Sequence[int]) -> None:
    ended = [(UNTIL - STEP_SECONDS * (n + 1), number) for n, number in enumerate(numbers)]
    window = window_of(ended, UNTIL)
    if window is not None:
        assert sum(number for at, number in ended if at >= window.since) <= ATTEMPTS_MAX
        assert window.since >= WHOLE.since
        assert UNTIL - window.compared_since >= COMPARED_SECONDS_MIN


# -- what a crew cost


def test_what_a_crew_cost_in_between_is_counted() -> None:
    sizes = [(0.0, 2), (10.0, 5), (20.0, 1)]
    assert worker_seconds(sizes, 0.0, 30.0) == 2 * 10 + 5 * 10 + 1 * 10
    assert worker_seconds(sizes, 5.0, 15.0) == 2 * 5 + 5 * 5
    assert worker_seconds(sizes, 100.0, 110.0) == 10
    assert worker_seconds(sizes, -10.0, 5.0) == 2 * 15
    assert worker_seconds([(0.0, 3)], -10.0, -5.0) == 3 * 5


# -- the comparison


def log(jobs: Sequence[tuple[float, float, float]]) -> list[Event]:
    """Of jobs that are made, start and end so many seconds after the hour began."""
    rows = [
        (second, f"job.{what}", number)
        for number, times in enumerate(jobs, start=1)
        for second, what in zip(times, ("enqueued", "started", "succeeded"), strict=True)
    ]
    return [
        Event(place, AT + timedelta(seconds=second), type_, job_id, "k", None, hand(type_, job_id))
        for place, (second, type_, job_id) in enumerate(sorted(rows), start=1)
    ]


def hand(type_: str, job_id: int) -> dict[str, Any]:
    return {} if type_ == "job.enqueued" else {"attempt": 1, "node": "north", "worker": job_id}


def reader_of(jobs: Sequence[tuple[float, float, float]]) -> TraceReader:
    reader = TraceReader()
    _, steps = result(taking(reader, log(jobs)))
    assert steps == -(-3 * len(jobs) // EVENTS_A_STEP)
    return reader


def test_the_same_attempts_are_beside_each_other() -> None:
    """Two at a time on one worker: the second of each pair waits 3 s in the model. In reality it
    waited 4 s. Those from before the hour, and the one that is due after it, do not count.
    """
    pairs = [
        job
        for n in range(-2, 71)
        for at in (50.5 * n,)
        for job in ((at, at, at + 3.0), (at, at + 4.0, at + 7.0))
    ]
    beyond = (3_601.0, 3_601.0, 3_602.0)
    model = rules(default_count=1, max_count=1)
    found, steps = result(compared(reader_of([*pairs, beyond]), model, WHOLE))
    assert found == ComparedHour(
        AT,
        HOUR_SECONDS,
        2 * 71,
        was=HourFigures(0.0, 4.0, 4.0),
        present=HourFigures(0.0, 3.0, 3.0, 3_600.0),
    )
    assert found is not None
    assert found.error_ratio == 0.25
    assert steps > 10


def test_a_candidate_is_beside_what_was_in_force() -> None:
    """With two workers the second of each pair does not wait."""
    starts = [(50.5 * n, 50.5 * n + wait) for n in range(40) for wait in (0.0, 3.0)]
    jobs = [(due, start, start + 3.0) for due, start in starts]
    one, two = (rules(default_count=n, max_count=n) for n in (1, 2))
    found, _ = result(compared(reader_of(jobs), one, WHOLE, two))
    assert found is not None
    assert found.present == HourFigures(0.0, 3.0, 3.0, 3_600.0)
    assert found.candidate == HourFigures(0.0, 0.0, 0.0, 7_200.0)


def test_an_attempt_whose_due_time_the_log_lacks_is_left_out_of_both() -> None:
    events = log([(60.0 * n, 60.0 * n, 60.0 * n + 1) for n in range(30)])
    reader = TraceReader()
    reader.take(one for one in events if (one.type, one.job_id) != ("job.enqueued", 7))
    found, _ = result(compared(reader, rules(), WHOLE))
    assert found is not None
    assert found.attempts == 29


def test_an_hour_of_which_the_log_tells_nothing_is_none() -> None:
    assert result(compared(TraceReader(), rules(), WHOLE))[0] is None
    early = reader_of([(-100.0, -100.0, -99.0)])
    assert result(compared(early, rules(), WHOLE))[0] is None


def test_a_log_that_is_longer_than_the_history_said_is_not_compared() -> None:
    reader = TraceReader(attempts_max=2)
    reader.take(log([(60.0 * n, 60.0 * n, 60.0 * n + 1) for n in range(3)]))
    found, _ = result(compared(reader, rules(), WHOLE))
    assert found == ComparedHour(AT, skipped=TOO_MANY)
