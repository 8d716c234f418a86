"""The times of a lease fit each other, whatever its length."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.config.load import load
from musterd.config.settings import LeasePlan, lease_plan


def plan(*sets: str) -> LeasePlan:
    return lease_plan(load(None, {}, sets, Path("/nonexistent/musterd.toml")).settings)


def test_the_defaults_give_the_pace_that_default_toml_promises() -> None:
    assert plan() == LeasePlan(
        lease_seconds=30,
        heartbeat_seconds=2,
        request_timeout_seconds=1.5,
        margin_seconds=2,
        reap_interval_seconds=1.5,
    )


def test_a_short_lease_is_renewed_more_often() -> None:
    short = plan("workers.lease_timeout_seconds=3")
    assert short.heartbeat_seconds == pytest.approx(0.5)
    assert short.request_timeout_seconds == pytest.approx(0.375)
    assert short.margin_seconds == pytest.approx(0.3)
    assert short.reap_interval_seconds == pytest.approx(0.75)


def test_what_is_set_is_kept_and_the_rest_follows() -> None:
    chosen = plan("leases.heartbeat_seconds=4", "leases.margin_seconds=1")
    assert (chosen.heartbeat_seconds, chosen.request_timeout_seconds) == (4, 3)
    assert chosen.margin_seconds == 1


@given(st.floats(1, 86_400))
def test_derived_times_keep_every_rule(lease_seconds: float) -> None:
    derived = plan(f"workers.lease_timeout_seconds={lease_seconds!r}")
    assert derived.lease_seconds >= derived.lease_seconds_min
    assert 0 < derived.request_timeout_seconds < derived.heartbeat_seconds
    assert 0 < derived.reap_interval_seconds <= lease_seconds / 2


@given(st.floats(1, 7_200), st.floats(2, 3))
def test_a_third_to_a_half_of_the_lease_is_a_heartbeat(lease_seconds: float, part: float) -> None:
    sets = [f"workers.lease_timeout_seconds={lease_seconds!r}"]
    chosen = plan(*sets, f"leases.heartbeat_seconds={lease_seconds / part!r}")
    assert 1 <= chosen.renewals <= 3
    assert chosen.lease_seconds >= chosen.lease_seconds_min
