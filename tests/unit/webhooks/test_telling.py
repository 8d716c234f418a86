"""What is said of a job: what was true at the end that is told."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs

from musterd.manager.webhooks.courier import Shown, as_it_ended, body_of, event_of
from musterd.store.jobs import AttemptRecord, JobRecord
from musterd.store.lifecycle import AttemptOutcome, JobState
from tests.support.records import job_record
from tests.unit.webhooks.test_judging import MESSAGE

START = datetime(2030, 1, 1, tzinfo=UTC)
SHOWN = Shown("default", 4, include_payload=False)
ERROR = '{"type": "Boom", "message": "it broke"}'


def attempt(number: int, outcome: AttemptOutcome, error: str | None = None) -> AttemptRecord:
    started, ended = START + timedelta(minutes=number), START + timedelta(minutes=number, seconds=9)
    return AttemptRecord(number, "n1", 2, started, ended, outcome, error)


def record(state: JobState, attempts: tuple[AttemptRecord, ...], **values: Any) -> JobRecord:
    return job_record(
        id=5, state=state, attempt=len(attempts), attempts=attempts, created_at=START, **values
    )


FAILED = record(
    JobState.FAILED,
    (attempt(1, AttemptOutcome.RETRYING, ERROR), attempt(2, AttemptOutcome.FAILED, ERROR)),
    error=ERROR,
    started_at=START + timedelta(minutes=2),
    finished_at=START + timedelta(minutes=2, seconds=9),
)
RUNNING = attrs.evolve(
    FAILED,
    state=JobState.RUNNING,
    attempt=3,
    error=None,
    started_at=START + timedelta(minutes=9),
    finished_at=None,
    lease_expires_at=START + timedelta(hours=1),
    node="n2",
    request="cancel",
)
SUCCEEDED = attrs.evolve(
    RUNNING,
    state=JobState.SUCCEEDED,
    result="7",
    lease_expires_at=None,
    request=None,
    attempts=(*FAILED.attempts, attempt(3, AttemptOutcome.SUCCEEDED)),
)
MOST = ("state", "attempt", "error", "result", "started_at", "finished_at", "attempts")


def test_a_job_at_its_end_is_told_as_it_is() -> None:
    assert as_it_ended(FAILED, JobState.FAILED, 2) == FAILED
    assert as_it_ended(SUCCEEDED, JobState.SUCCEEDED, 3) == SUCCEEDED


def test_a_job_that_has_gone_on_is_told_as_it_was() -> None:
    for later in (RUNNING, SUCCEEDED, attrs.evolve(RUNNING, state=JobState.CANCELED, attempt=2)):
        told = as_it_ended(later, JobState.FAILED, 2)
        assert [getattr(told, name) for name in MOST] == [getattr(FAILED, name) for name in MOST]
        assert (told.lease_expires_at, told.request) == (None, None)


def test_a_job_that_failed_twice_is_told_of_each_time() -> None:
    again = attrs.evolve(
        FAILED,
        attempt=3,
        error='{"type": "Bang", "message": "again"}',
        attempts=(*FAILED.attempts, attempt(3, AttemptOutcome.FAILED)),
    )
    told = as_it_ended(again, JobState.FAILED, 2)
    assert (told.attempt, told.error, len(told.attempts)) == (2, ERROR, 2)


def test_the_body_has_type_moment_and_job_but_no_payload() -> None:
    message = attrs.evolve(MESSAGE, type="job.failed", attempt=2)
    event = event_of(message, FAILED, SHOWN)
    assert event is not None
    body: Any = json.loads(body_of(event))
    assert list(body) == ["type", "timestamp", "data"]
    assert (body["type"], body["timestamp"]) == ("job.failed", "2030-01-01T00:00:00.000000Z")
    data = body["data"]
    assert (data["id"], data["state"], data["max_attempts"]) == (5, "failed", 4)
    assert data["error"] == {"type": "Boom", "message": "it broke"}
    assert "payload" not in data


def test_the_payload_comes_where_it_is_wanted() -> None:
    event: Any = event_of(MESSAGE, SUCCEEDED, attrs.evolve(SHOWN, include_payload=True))
    assert event["data"]["payload"] == {"a": 1}


def test_what_was_written_down_is_said_as_it_stands() -> None:
    message = attrs.evolve(MESSAGE, type="job.deleted", body='{"id": 5}')
    assert event_of(message, None, SHOWN) == {
        "type": "job.deleted",
        "timestamp": "2030-01-01T00:00:00.000000Z",
        "data": {"id": 5},
    }


def test_of_a_job_that_is_gone_nothing_can_be_said() -> None:
    assert event_of(MESSAGE, None, SHOWN) is None
