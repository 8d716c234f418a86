"""The delay before the next try: what shape, what bounds, the same for the same job."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.catalog.kinds import RetryPolicy, delay_seconds
from musterd.config.settings import Backoff, Jitter

BACKOFFS: list[Backoff] = ["exponential", "linear", "fixed"]
JITTERS: list[Jitter] = ["full", "equal", "none"]
POLICIES = st.builds(
    RetryPolicy,
    max_retries=st.just(3),
    backoff=st.sampled_from(BACKOFFS),
    base_seconds=st.floats(0, 2_592_000),
    factor=st.floats(1, 1_000),
    max_seconds=st.floats(0, 2_592_000),
    jitter=st.sampled_from(JITTERS),
)
HUGE = st.integers(1, 10**400)


def policy(backoff: Backoff, jitter: Jitter = "none", **numbers: float) -> RetryPolicy:
    given_numbers = {"base_seconds": 1.0, "factor": 2.0, "max_seconds": 300.0} | numbers
    return RetryPolicy(max_retries=3, backoff=backoff, jitter=jitter, **given_numbers)


@pytest.mark.parametrize(
    ("backoff", "delays"),
    [
        ("exponential", [1.5, 4.5, 13.5, 40.0, 40.0]),
        ("linear", [1.5, 3.0, 4.5, 6.0, 7.5]),
        ("fixed", [1.5] * 5),
    ],
)
def test_each_backoff_has_its_shape(backoff: Backoff, delays: list[float]) -> None:
    chosen = policy(backoff, base_seconds=1.5, factor=3, max_seconds=40)
    assert [delay_seconds(chosen, failures, 7, failures) for failures in range(1, 6)] == delays


@given(POLICIES, HUGE, st.integers(), st.integers(1, 10**9))
def test_a_delay_is_finite_and_within_its_bounds(
    chosen: RetryPolicy, failures: int, job_id: int, attempt: int
) -> None:
    delay = delay_seconds(chosen, failures, job_id, attempt)
    assert math.isfinite(delay)
    assert 0 <= delay <= chosen.max_seconds
    assert delay == delay_seconds(chosen, failures, job_id, attempt)


@given(st.sampled_from(BACKOFFS), st.integers(1, 100), st.integers(), st.integers(1, 1000))
def test_jitter_takes_no_more_than_it_may(
    backoff: Backoff, failures: int, job_id: int, attempt: int
) -> None:
    whole = delay_seconds(policy(backoff, "none"), failures, job_id, attempt)
    assert 0 <= delay_seconds(policy(backoff, "full"), failures, job_id, attempt) <= whole
    assert whole / 2 <= delay_seconds(policy(backoff, "equal"), failures, job_id, attempt) <= whole


@given(POLICIES, st.integers(1, 10_000))
def test_without_jitter_a_later_delay_is_never_shorter(chosen: RetryPolicy, failures: int) -> None:
    plain = policy(
        chosen.backoff,
        base_seconds=chosen.base_seconds,
        factor=chosen.factor,
        max_seconds=chosen.max_seconds,
    )
    assert delay_seconds(plain, failures, 1, 1) <= delay_seconds(plain, failures + 1, 1, 1)


@pytest.mark.parametrize("failures", [5000, 2**64, 10**400])
def test_a_huge_count_of_failures_gives_the_cap(failures: int) -> None:
    assert delay_seconds(policy("exponential"), failures, 1, 1) == 300
    assert delay_seconds(policy("linear"), failures, 1, 1) == 300
    assert delay_seconds(policy("exponential", factor=1), failures, 1, 1) == 1
    assert delay_seconds(policy("exponential", base_seconds=0), failures, 1, 1) == 0


def test_jitter_spreads_jobs_and_attempts_evenly() -> None:
    full = policy("fixed", "full", base_seconds=1)
    for delays in (
        [delay_seconds(full, 1, job_id, 1) for job_id in range(2000)],
        [delay_seconds(full, 1, 1, attempt) for attempt in range(2000)],
    ):
        assert len(set(delays)) == len(delays)
        assert sum(delays) / len(delays) == pytest.approx(0.5, abs=0.03)
        assert min(delays) < 0.01
        assert max(delays) > 0.99


def test_a_schedule_is_the_same_on_every_machine() -> None:
    """These delays were computed once; a change of the hash would change every schedule."""
    full = policy("exponential", "full")
    assert [delay_seconds(full, tries, 42, tries) for tries in (1, 2, 3)] == pytest.approx(GOLDEN)


@pytest.mark.parametrize("failures", [0, -1])
def test_nothing_failed_means_no_delay_to_ask_for(failures: int) -> None:
    with pytest.raises(ValueError, match="wanted 1 or more"):
        delay_seconds(policy("fixed"), failures, 1, 1)


GOLDEN = [0.166602585942, 1.85697554935, 3.774019249025]
