"""A trace out of events."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from math import isnan
from typing import Any
from uuid import UUID

import pytest

from musterd.manager.scaling.model.reading import TraceReader
from musterd.manager.scaling.model.trace import NONE, Trace
from musterd.store.events import Event
from musterd.store.scaling_journal import JournalRun
from tests.support.traces import BEGUN_AT

Told = tuple[float, str, int | None] | tuple[float, str, int | None, dict[str, Any]]


def log(*told: Told) -> list[Event]:
    return [
        Event(
            number, BEGUN_AT + timedelta(seconds=one[0]), one[1], one[2], "k", None,
            one[3] if len(one) == 4 else {},
        )
        for number, one in enumerate(told, start=1)
    ]  # fmt: skip


def read(events: Sequence[Event], attempts_max: int = 100) -> Trace | None:
    reader = TraceReader(attempts_max)
    reader.take(events)
    return reader.trace


def trace_of(*told: Told) -> Trace:
    trace = read(log(*told))
    assert trace is not None
    return trace


def rows(trace: Trace) -> list[tuple[float, float, float]]:
    """Due, waited, ran; waited -1 = not known."""
    known = [-1.0 if isnan(one) else one for one in trace.waited_seconds]
    return list(zip(trace.due_seconds, known, trace.run_seconds, strict=True))


def hand(worker: int) -> dict[str, Any]:
    return {"attempt": 1, "node": "north", "worker": worker}


def test_it_tells_how_soon_an_idle_worker_has_a_job_and_a_busy_one_the_next() -> None:
    begun = ((0, "job.enqueued", 1), (0.5, "job.started", 1, hand(1)), (1, "job.succeeded", 1))
    idle: tuple[Told, ...] = (
        (2, "job.enqueued", 2), (2.02, "job.started", 2, hand(1)), (3, "job.succeeded", 2),
        (4, "job.enqueued", 3), (4.04, "job.started", 3, hand(1)),
    )  # fmt: skip
    assert trace_of(*begun).pick_up_seconds == 0, "it is not known since when the first was idle"
    trace = trace_of(*begun, *idle, (5, "job.succeeded", 3))
    assert [trace.pick_up_seconds, trace.handover_seconds] == pytest.approx([0.03, 0.0])
    busy: tuple[Told, ...] = (
        *((4.5 + 0.01 * n, "job.enqueued", n) for n in (4, 5, 6)),
        (5, "job.succeeded", 3), (5, "job.assigned", 5, hand(1)),
        (5.06, "job.started", 4, hand(1)), (6, "job.succeeded", 4),
        (6.5, "job.started", 5, hand(1)), (6.5, "job.succeeded", 5),  # from 6 on
        (9, "job.started", 6, hand(1)), (9.5, "job.succeeded", 6),  # something held it up
    )  # fmt: skip
    trace = trace_of(*begun, *idle, *busy)
    assert [trace.pick_up_seconds, trace.handover_seconds] == pytest.approx([0.03, 0.03])


def test_a_job_is_due_when_it_was_made_and_runs_from_start_to_end() -> None:
    trace = trace_of(
        (0, "job.enqueued", 1), (1, "job.enqueued", 2), (2, "job.started", 2, hand(1)),
        (3, "job.started", 1, hand(2)), (7, "job.succeeded", 2), (8, "job.failed", 1),
    )  # fmt: skip
    assert rows(trace) == [(1, 1, 5), (0, 3, 5)]
    assert list(trace.firsts) == [1, 0]
    assert (trace.span_seconds, trace.most_at_once, trace.busy_seconds) == (8, 2, 10)


def test_a_held_job_is_due_when_it_is_released() -> None:
    trace = trace_of(
        (0, "job.enqueued", 1, {"state": "pending"}), (9, "job.released", 1),
        (10, "job.started", 1, hand(1)), (11, "job.canceled", 1),
    )  # fmt: skip
    assert rows(trace) == [(9, 1, 1)]


def test_a_retry_is_due_at_its_time_and_follows_the_attempt_before() -> None:
    due = {"run_at": (BEGUN_AT + timedelta(seconds=9)).isoformat()}
    trace = trace_of(
        (0, "job.enqueued", 1), (1, "job.started", 1, hand(1)), (4, "job.retrying", 1, due),
        (10, "job.started", 1, hand(1)), (12, "job.succeeded", 1),
    )  # fmt: skip
    assert rows(trace) == [(0, 1, 3), (9, 1, 2)]
    assert list(trace.next_attempt) == [1, NONE]
    assert trace.pause_seconds[0] == 5
    assert list(trace.firsts) == [0]


def test_what_was_lost_is_due_again_at_once_and_what_snoozed_when_it_started() -> None:
    trace = trace_of(
        (0, "job.enqueued", 1), (0, "job.started", 1, hand(1)),
        (5, "job.requeued", 1, {"outcome": "lost"}), (6, "job.started", 1, hand(1)),
        (7, "job.requeued", 1, {"outcome": "snoozed"}), (90, "job.started", 1, hand(1)),
        (91, "job.succeeded", 1),
    )  # fmt: skip
    assert rows(trace) == [(0, 0, 5), (5, 1, 1), (90, -1, 1)]
    assert list(trace.pause_seconds[:2]) == [0, 83]
    assert trace.left_out.undue == 1


@pytest.mark.parametrize("run_at", [{}, {"run_at": "soon"}, {"run_at": ["x"]}])
def test_a_retry_whose_time_is_not_told_is_due_when_it_started(run_at: dict[str, Any]) -> None:
    trace = trace_of(
        (0, "job.enqueued", 1), (0, "job.started", 1, hand(1)), (5, "job.retrying", 1, run_at),
        (8, "job.started", 1, hand(1)), (9, "job.succeeded", 1),
    )  # fmt: skip
    assert rows(trace)[1] == (8, -1, 1)


def test_what_was_given_back_before_it_started_is_due_as_before() -> None:
    trace = trace_of(
        (0, "job.enqueued", 1), (1, "job.assigned", 1, hand(1)),
        (3, "job.requeued", 1, {"outcome": "released"}), (4, "job.started", 1, hand(2)),
        (5, "job.succeeded", 1),
    )  # fmt: skip
    assert rows(trace) == [(0, 4, 1)]


def test_the_start_of_what_was_claimed_ahead_is_when_its_worker_was_free() -> None:
    """Both starts of a worker may be told before either of its ends."""
    trace = trace_of(
        (0, "job.enqueued", 1), (0, "job.enqueued", 2), (0, "job.started", 1, hand(1)),
        (1, "job.assigned", 2, {"attempt": 1, "node": "north"}), (4, "job.started", 2, hand(1)),
        (3, "job.succeeded", 1), (4, "job.succeeded", 2),
    )  # fmt: skip
    assert rows(trace) == [(0, 0, 3), (0, 3, 1)]
    assert trace.most_at_once == 1


def test_what_cannot_be_used_is_counted() -> None:
    trace = trace_of(
        (0, "job.succeeded", 1),  # it began before the log
        (0, "job.started", 2, hand(1)), (1, "job.succeeded", 2),  # made before the log
        (1, "job.enqueued", 3), (2, "job.started", 3, hand(1)),  # still runs
        (1, "job.enqueued", 4),  # waits
        (1, "job.enqueued", 5), (2, "job.canceled", 5), (3, "worker.retired", None, hand(1)),
    )  # fmt: skip
    left = trace.left_out
    assert (left.unstarted, left.undue, left.running, left.waiting) == (1, 1, 1, 1)
    assert rows(trace) == [(0, -1, 1)]
    assert trace.waits == []


def test_what_was_resumed_is_a_job_of_its_own() -> None:
    trace = trace_of(
        (0, "job.enqueued", 1), (1, "job.started", 1, hand(1)), (2, "job.failed", 1),
        (50, "job.resumed", 1), (51, "job.started", 1, hand(1)), (52, "job.succeeded", 1),
    )  # fmt: skip
    assert list(trace.firsts) == [0, 1]
    assert rows(trace) == [(0, 1, 1), (50, 1, 1)]


@pytest.mark.parametrize(
    ("said", "seconds"), [("2026-11-02T08:00:04.25Z", 4.25), ("soon", 0.0), (None, 0.0)]
)
def test_the_first_decision_tells_when_ticks_fall(said: str | None, seconds: float) -> None:
    """Its event is written later than it was made."""
    trace = trace_of(
        (0, "job.enqueued", 1), (1, "job.started", 1, hand(1)), (2, "job.succeeded", 1),
        (5, "scale.decided", None, {"at": said}),
        (9, "scale.decided", None, {"at": "2026-11-02T08:00:08.25Z"} if said == "soon" else {}),
    )  # fmt: skip
    assert trace.tick_seconds == (8.25 if said == "soon" else seconds)


def test_there_is_a_bound() -> None:
    one = [(0.0, "job.enqueued", 1), (1.0, "job.started", 1), (2.0, "job.succeeded", 1)]
    trace = read(log(*one * 9), attempts_max=4)
    assert trace is not None
    assert (len(trace), trace.left_out.cut) == (4, True)
    assert not trace_of(*one).left_out.cut


def test_nothing_to_simulate_is_no_trace() -> None:
    assert read([]) is None
    assert read(log((0, "job.enqueued", 1), (1, "job.started", 1, hand(1)))) is None


def test_times_that_step_back_a_little_make_nothing_negative() -> None:
    trace = trace_of(
        (0, "node.started", None), (2, "job.enqueued", 1), (1.9, "job.started", 1, hand(1)),
        (1.8, "job.succeeded", 1),
    )  # fmt: skip
    assert rows(trace) == [(1.9, 0, 0)]


def in_seconds(seconds: float) -> str:
    return (BEGUN_AT + timedelta(seconds=seconds)).isoformat()


def test_a_job_for_later_is_due_at_its_time_and_there_from_its_making_on() -> None:
    trace = trace_of(
        (0, "job.enqueued", 9), (2, "job.enqueued", 1, {"run_at": in_seconds(30), "priority": 4}),
        (31, "job.started", 1, hand(1)), (33, "job.retrying", 1, {"run_at": in_seconds(40)}),
        (41, "job.started", 1, hand(1)), (42, "job.succeeded", 1),
    )  # fmt: skip
    assert rows(trace) == [(30, 1, 2), (40, 1, 1)]
    assert list(trace.made_seconds) == [2, 2]
    assert [trace.priority(one) for one in range(2)] == [4, 4]
    assert [trace.is_made(0, now) for now in (1.9, 2.0)] == [False, True]


def test_a_held_job_keeps_its_time_and_its_priority() -> None:
    held = {"state": "pending", "run_at": in_seconds(30), "priority": -1}
    trace = trace_of(
        (0, "job.enqueued", 1, held), (5, "job.released", 1), (31, "job.started", 1, hand(1)),
        (32, "job.paused", 1), (40, "job.resumed", 1), (41, "job.started", 1, hand(1)),
        (42, "job.succeeded", 1),
    )  # fmt: skip
    assert rows(trace) == [(30, 1, 1), (40, 1, 1)]
    assert list(trace.priorities) == [-1, -1]
    assert list(trace.made_seconds) == [5, 40]


def test_who_snoozes_says_until_when() -> None:
    snoozed = {"outcome": "snoozed", "run_at": in_seconds(50)}
    trace = trace_of(
        (0, "job.enqueued", 1), (0, "job.started", 1, hand(1)), (2, "job.requeued", 1, snoozed),
        (53, "job.started", 1, hand(1)), (54, "job.succeeded", 1),
    )  # fmt: skip
    assert rows(trace) == [(0, 0, 2), (50, 3, 1)]
    assert trace.left_out.undue == 0


def test_nodes_count_by_how_long_they_were_there() -> None:
    """One was there all the time, two half of it each: two at a time."""
    name = ({"node": "north"}, {"node": "east"}, {"node": "west"})
    trace = trace_of(
        (0, "node.started", None, name[0]), (0, "node.started", None, name[1]),
        (0, "job.enqueued", 1), (1, "job.started", 1, hand(1)), (2, "job.succeeded", 1),
        (50, "node.stopped", None, name[1]), (50, "node.started", None, name[2]),
        (100, "worker.hired", None, name[2]), (100, "worker.hired", None, name[0]),
    )  # fmt: skip
    assert trace.nodes == 2


def decided(since: float, until: float, limited_by: str | None) -> JournalRun:
    at, end = BEGUN_AT + timedelta(seconds=since), BEGUN_AT + timedelta(seconds=until)
    return JournalRun(UUID(int=1), "north", at, end, 9, {"limited_by": limited_by})


def test_the_journal_tells_when_the_guard_held_the_crew() -> None:
    reader = TraceReader()
    reader.take(log((0, "job.enqueued", 1), (1, "job.started", 1), (90, "job.succeeded", 1)))
    reader.take_journal(
        [
            decided(60, 60, "store"), decided(10, 19, "machine_cpu"), decided(30, 50, "max"),
            decided(20, 25, "machine_memory"), decided(-9, 0.5, "machine_cpu"),
        ]
    )  # fmt: skip
    assert reader.trace is not None
    assert reader.trace.guarded == [(0, 1.5), (10, 26), (60, 61)]
