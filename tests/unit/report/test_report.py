"""The job object has every key, the report says what people want, and no row breaks either."""

import json
from datetime import datetime, timedelta
from typing import cast

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.store.jobs import AttemptRecord, JobRecord
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.report import error_line, job_object, max_attempts, report_text
from musterd.store.words import time_text
from tests.support.records import CREATED_AT as T0
from tests.support.records import job_record

KEYS = [
    *("id", "kind", "tenant", "state", "payload", "result", "error", "reason", "priority"),
    *(
        "dedup_key",
        "target",
        "traceparent",
        "attempt",
        "max_attempts",
        "created_at",
        "run_at",
        "started_at",
        "finished_at",
    ),
    *(
        "lease_owner",
        "lease_expires_at",
        "heartbeat_at",
        "cancel_requested",
        "pause_requested",
        "progress",
    ),
    *("attempts", "cleared_at", "webhook", "stale_at"),
    *("schedule", "scheduled_for", "spent", "updated_at"),
]

QUEUED = job_record()


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def succeeded() -> JobRecord:
    error = '{"type": "failed", "message": "no\\nluck"}'
    first = AttemptRecord(1, "n1", 3, at(0.01), at(0.2), AttemptOutcome.RETRYING, error)
    second = AttemptRecord(2, "n1", 4, at(1.25), at(1.5), AttemptOutcome.SUCCEEDED, None)
    return attrs.evolve(
        QUEUED,
        state=JobState.SUCCEEDED,
        attempt=2,
        run_at=at(1.2),
        started_at=at(1.25),
        finished_at=at(1.5),
        result='{"pages": 3}',
        node="n1",
        worker=4,
        attempts=(first, second),
    )


def running() -> JobRecord:
    attempt = AttemptRecord(1, "n1", 3, at(1), None, None, None)
    return attrs.evolve(
        QUEUED,
        state=JobState.RUNNING,
        attempt=1,
        started_at=at(1),
        node="n1",
        worker=3,
        lease_expires_at=at(31),
        heartbeat_at=at(1),
        attempts=(attempt,),
    )


def attempts_of(found: dict[str, object]) -> list[dict[str, object]]:
    return cast("list[dict[str, object]]", found["attempts"])


def test_the_object_has_exactly_the_keys_that_are_promised() -> None:
    assert list(job_object(QUEUED, "default", 4)) == KEYS


def test_a_job_that_waits_owns_nothing() -> None:
    found = job_object(QUEUED, "default", 4)
    assert (found["lease_owner"], found["started_at"], found["attempts"]) == (None, None, [])
    assert found["payload"] == {"a": 1}
    assert found["created_at"] == "2026-01-02T03:04:05.678901Z"
    assert found["progress"] == {
        "overall": 0,
        "phase": None,
        "phases": [],
        "note": None,
        "until": None,
    }


def test_the_lease_owner_is_node_and_worker_while_the_lease_lasts() -> None:
    assert job_object(running(), "default", 4)["lease_owner"] == "n1/3"
    assert job_object(succeeded(), "default", 4)["lease_owner"] is None
    claimed = attrs.evolve(running(), state=JobState.ASSIGNED, worker=None)
    assert job_object(claimed, "default", 4)["lease_owner"] == "n1"


def test_a_success_is_a_hundred_percent_and_shows_each_attempt() -> None:
    found = job_object(succeeded(), "default", 4)
    assert found["progress"] == {
        "overall": 100,
        "phase": None,
        "phases": [],
        "note": None,
        "until": None,
    }
    assert found["result"] == {"pages": 3}
    attempts = attempts_of(found)
    assert [attempt["outcome"] for attempt in attempts] == ["retrying", "succeeded"]
    assert attempts[0]["error"] == {"type": "failed", "message": "no\nluck"}


def test_the_attempt_under_way_has_no_outcome() -> None:
    attempts = attempts_of(job_object(running(), "default", 4))
    assert (attempts[0]["outcome"], attempts[0]["finished_at"]) == (None, None)


@pytest.mark.parametrize(
    ("own", "kinds", "forgiven", "wanted"),
    [(None, 4, 0, 4), (None, 4, 2, 6), (7, 4, 2, 7), (None, None, 1, None)],
)
def test_the_budget_is_the_jobs_own_or_its_kinds_and_what_was_forgiven(
    own: int | None, kinds: int | None, forgiven: int, wanted: int | None
) -> None:
    record = attrs.evolve(QUEUED, max_attempts=own, forgiven=forgiven)
    assert max_attempts(record, kinds) == wanted


@pytest.mark.parametrize("text", ["{", "[" * 5000, "1e999", "NaN", "9" * 5000, ""])
def test_a_payload_that_is_no_json_is_shown_as_its_text(text: str) -> None:
    found = job_object(attrs.evolve(QUEUED, payload=text, result=text), "default", 4)
    assert found["payload"] == found["result"] == text
    assert json.loads(json.dumps(found, allow_nan=False)) == found


@given(st.text(), st.text())
def test_no_row_breaks_the_object_or_the_report(text: str, kind: str) -> None:
    record = attrs.evolve(succeeded(), payload=text, result=text, error=text, kind=kind)
    json.dumps(job_object(record, "default", None), allow_nan=False)
    report = report_text(record, at(5))
    assert all(line.isprintable() for line in report.split("\n"))


def test_times_are_utc_and_sort_as_texts() -> None:
    assert time_text(None) is None
    assert time_text(T0.replace(microsecond=0)) == "2026-01-02T03:04:05.000000Z"


def test_the_report_of_a_success() -> None:
    assert report_text(succeeded(), at(61.5), 4).split("\n") == [
        "job 42 · report · succeeded",
        "  created   2026-01-02 03:04:05.678Z  (1 m 2 s ago)",
        "  due       2026-01-02 03:04:06.878Z  (1 m ago)",
        "  started   2026-01-02 03:04:06.928Z  (1 m ago)",
        "  finished  2026-01-02 03:04:07.178Z  (1 m ago)",
        "  waited    50 ms",
        "  ran       250 ms",
        "  attempts  2 of 4",
        '  payload   {"a": 1}',
        '  result    {"pages": 3}',
        "",
        "attempt  worker  node  started           ran  outcome    error",
        "      1       3  n1    03:04:05.688Z  190 ms  retrying   failed: no\\nluck",
        "      2       4  n1    03:04:06.928Z  250 ms  succeeded",
    ]


def test_the_report_of_a_running_job_says_who_has_it_and_how_long_still() -> None:
    report = report_text(running(), at(3))
    assert "  ran       2.0 s so far\n" in report
    assert "  lease     n1/3, 28.0 s left\n" in report
    assert "under way" in report


def test_the_report_of_a_delayed_job_says_when_it_is_due() -> None:
    report = report_text(attrs.evolve(QUEUED, run_at=at(300)), T0)
    assert "  due       2026-01-02 03:09:05.678Z  (in 5 m)" in report


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (None, ""),
        ('{"type": "time_limit", "message": "1 s"}', "time_limit: 1 s"),
        ("boom", "unknown: boom"),
        ('"boom"', 'unknown: "boom"'),
        ('{"message": "m"}', "unknown: m"),
    ],
)
def test_an_error_in_one_line(error: str | None, line: str) -> None:
    assert error_line(error) == line
