"""What an attempt's end makes of its job."""

import json
from uuid import UUID

import pytest

from musterd.config.settings import Retry
from musterd.store.leases import Claim, Settlement, Verdict
from musterd.store.lifecycle import LEASED, TRANSITIONS, AttemptOutcome, JobState
from musterd.workers.outcome import (
    Outcome,
    attempts_allowed,
    error_json,
    interrupted,
    judge,
    released,
    unknown_kind,
)
from tests.support.stage import kind

TOKEN = UUID(int=1)
FAILED = Outcome("failure", None, "planned_failure", "no", retryable=True)


def claim(attempt: int = 1, max_attempts: int | None = None, forgiven: int = 0) -> Claim:
    return Claim(7, "k", "{}", attempt, max_attempts, forgiven, 0.0, 1, TOKEN)


def kind_with(max_retries: int) -> Retry:
    return Retry(max_retries, "exponential", 1.0, 2.0, 300.0, "none")


@pytest.mark.parametrize(
    ("attempt", "max_attempts", "forgiven", "state", "delay_seconds"),
    [
        (1, None, 0, "queued", 1.0),
        (2, None, 0, "queued", 2.0),
        (3, None, 0, "failed", None),
        (1, 1, 0, "failed", None),
        (4, 5, 0, "queued", 8.0),
        (5, 5, 0, "failed", None),
        # Claims that burned no attempt: they raised the job's own budget in the store.
        (3, None, 2, "queued", 1.0),
        (5, None, 2, "failed", None),
        (3, 3, 2, "failed", None),
        (3, 4, 2, "queued", 1.0),
        # A row that was written by hand.
        (1, None, 9, "queued", 1.0),
    ],
)
def test_a_failure_is_tried_again_while_attempts_are_left(
    attempt: int,
    max_attempts: int | None,
    forgiven: int,
    state: str,
    delay_seconds: float | None,
) -> None:
    retried = kind("k", retryable=True, retry=kind_with(2))
    verdict = judge(FAILED, claim(attempt, max_attempts, forgiven), retried, 100)
    assert (verdict.state, verdict.delay_seconds) == (state, delay_seconds)
    assert not verdict.forgive


def test_a_failure_that_is_not_retryable_ends_the_job() -> None:
    verdict = judge(FAILED._replace(retryable=False), claim(), kind("k"), 100)
    assert (verdict.state, verdict.outcome) == (JobState.FAILED, AttemptOutcome.FAILED)
    assert verdict.error == '{"type": "planned_failure", "message": "no"}'


def test_success_and_cancel_end_the_job() -> None:
    done = judge(Outcome("success", "{}"), claim(), kind("k"), 100)
    assert done == Verdict(JobState.SUCCEEDED, AttemptOutcome.SUCCEEDED, result="{}")
    declined = judge(Outcome("cancel", message="no"), claim(), kind("k"), 100)
    assert declined == Verdict(JobState.CANCELED, AttemptOutcome.CANCELED, reason="no")


def test_a_job_has_its_own_budget_or_that_of_its_kind() -> None:
    retried = kind("k", retry=kind_with(4))
    assert attempts_allowed(claim(), retried) == 5
    assert attempts_allowed(claim(max_attempts=2), retried) == 2
    assert attempts_allowed(claim(max_attempts=5, forgiven=3), retried) == 2


@pytest.mark.parametrize(("forgiven", "seconds"), [(0, 5), (1, 10), (5, 160), (6, 300), (900, 300)])
def test_a_job_of_an_unknown_kind_waits_ever_longer(forgiven: int, seconds: float) -> None:
    verdict = unknown_kind(claim(forgiven + 1, None, forgiven))
    assert (verdict.state, verdict.delay_seconds) == (JobState.QUEUED, seconds)
    assert verdict.forgive


def test_an_interrupted_job_is_given_back_or_paused() -> None:
    assert interrupted("requeue") == released("its node shut down")
    assert interrupted("requeue").forgive
    assert interrupted("requeue").delay_seconds is None
    paused = interrupted("pause")
    assert (paused.state, paused.reason) == (JobState.PAUSED, "Job was interrupted by user")


def test_every_verdict_may_follow_a_claim() -> None:
    retried = kind("k", retryable=True)
    verdicts = [
        judge(Outcome("success"), claim(), retried, 100),
        judge(Outcome("cancel"), claim(), retried, 100),
        judge(FAILED, claim(), retried, 100),
        judge(FAILED, claim(99), retried, 100),
        unknown_kind(claim()),
        interrupted("pause"),
        interrupted("requeue"),
    ]
    assert all((state, verdict.state) in TRANSITIONS for state in LEASED for verdict in verdicts)


@pytest.mark.parametrize("message", ["", "x" * 500, "é" * 500, "\U0001f984" * 500, "a\0b" * 99])
def test_an_error_is_cut_to_size_and_stays_whole_json(message: str) -> None:
    error = json.loads(error_json("odd", message, 64))
    assert error["type"] == "odd"
    assert len(error["message"].encode()) <= 64
    assert "\0" not in error["message"]
    assert message.replace("\0", "\\0").startswith(error["message"])


def test_an_error_keeps_no_lone_surrogate() -> None:
    assert json.loads(error_json("odd", "a\ud800b", 64))["message"] == "a?b"


def test_a_settlement_takes_its_verdict_as_it_is() -> None:
    first = Settlement._fields.index(Verdict._fields[0])
    assert Settlement._fields[first : first + len(Verdict._fields)] == Verdict._fields
