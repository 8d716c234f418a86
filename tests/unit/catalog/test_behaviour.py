"""A deterministic kind depends on nothing but kind, payload and attempt."""

import json
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.catalog.kinds import JSON, Deterministic, HttpCall, Outcome, WorkKind, plan
from musterd.config.settings import Retry

RETRY = Retry(3, "exponential", base_seconds=1, factor=2, max_seconds=300, jitter="full")
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
PAYLOADS = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
ATTEMPTS = st.integers(1, 1_000_000)


def kind(
    low_ms: int, high_ms: int, outcome: Outcome = "success", fail_first: int = 0, name: str = "x"
) -> WorkKind:
    behaviour = Deterministic(low_ms, high_ms, outcome, fail_first)
    return WorkKind(name, behaviour, False, RETRY, None, 0, "requeue", "test:1")


@given(PAYLOADS, ATTEMPTS)
def test_one_duration_is_always_that_duration(payload: JSON, attempt: int) -> None:
    assert plan(kind(250, 250), payload, attempt).duration_seconds == 0.25


@given(PAYLOADS, ATTEMPTS, st.integers(0, 1000), st.integers(0, 1000))
def test_a_range_is_kept_in_whole_milliseconds(
    payload: JSON, attempt: int, low_ms: int, span_ms: int
) -> None:
    duration_ms = plan(kind(low_ms, low_ms + span_ms), payload, attempt).duration_seconds * 1000
    assert low_ms <= round(duration_ms) <= low_ms + span_ms
    assert duration_ms == pytest.approx(round(duration_ms))


@given(PAYLOADS, ATTEMPTS)
def test_the_same_job_always_behaves_the_same(payload: JSON, attempt: int) -> None:
    reread = cast(JSON, json.loads(json.dumps(payload)))
    assert plan(kind(0, 86_400_000), payload, attempt) == plan(kind(0, 86_400_000), reread, attempt)


def test_a_plan_is_the_same_on_every_machine() -> None:
    """These durations were computed once; a change of the hash would change every schedule."""
    ranged = kind(0, 86_400_000)
    assert plan(ranged, {}, 1).duration_seconds == GOLDEN[0]
    assert plan(ranged, {"b": [1, 2.5, None], "a": "é"}, 2).duration_seconds == GOLDEN[1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1e2", "100"),
        ("100.0", "100"),
        ("-0.0", "0"),
        ("1e300", "1" + "0" * 300),
        ('{"a": 1, "b": [2.0]}', '{"b": [2], "a": 1.0}'),
        ('"\\u00e9"', '"é"'),
    ],
)
def test_the_spelling_of_a_payload_does_not_matter(one: str, other: str) -> None:
    ranged = kind(0, 86_400_000)
    assert plan(ranged, json.loads(one), 1) == plan(ranged, json.loads(other), 1)


def test_kind_payload_and_attempt_each_matter() -> None:
    plans = [
        plan(kind(0, 86_400_000), {"a": 1}, 1),
        plan(kind(0, 86_400_000), {"a": 2}, 1),
        plan(kind(0, 86_400_000), {"a": True}, 1),
        plan(kind(0, 86_400_000), {"a": "1"}, 1),
        plan(kind(0, 86_400_000), {"a": 1}, 2),
        plan(kind(0, 86_400_000, name="y"), {"a": 1}, 1),
    ]
    assert len({each.duration_seconds for each in plans}) == len(plans)


def test_a_number_beyond_a_double_is_hashed_like_any_other() -> None:
    assert plan(kind(0, 9), 10**400, 1) == plan(kind(0, 9), 10**400, 1)


def test_durations_spread_over_the_whole_range() -> None:
    durations = {plan(kind(1, 4), {"job": number}, 1).duration_seconds for number in range(100)}
    assert durations == {0.001, 0.002, 0.003, 0.004}


@pytest.mark.parametrize("outcome", ["success", "fail", "cancel"])
@given(st.integers(0, 5), st.integers(1, 10))
def test_fail_first_fails_that_many_attempts_of_a_success(
    outcome: Outcome, fail_first: int, attempt: int
) -> None:
    planned = plan(kind(0, 0, outcome, fail_first), None, attempt).outcome
    fails = outcome == "success" and attempt <= fail_first
    assert planned == ("fail" if fails else outcome)


def test_what_real_work_does_is_not_planned() -> None:
    real = WorkKind(
        "x", HttpCall("POST", "http://h/", {}, {}), False, RETRY, None, 0, "requeue", "test:1"
    )
    with pytest.raises(TypeError, match="real work"):
        plan(real, {}, 1)


GOLDEN = (83234.707, 64543.209)
