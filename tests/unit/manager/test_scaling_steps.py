"""How far a decision goes: its steps, and what is too small a change."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.manager.scaling.decision import Memory, Plan, ScalingPolicy, Situation, decide
from musterd.manager.scaling.steps import TOLERANT_SIZE, Steps
from tests.support.traces import SHIPPED

NOW = 1000.0
POLICY = attrs.evolve(SHIPPED, max_count=40, stabilization_seconds=0, down_cooldown_seconds=0)


def plan_of(due: int, busy: int, size: int, steps: Steps, **policy: Any) -> Plan:
    changed = attrs.evolve(POLICY, steps=steps, **policy)
    return decide(Situation(due, busy, size), Memory(), changed, NOW)[0]


@pytest.mark.parametrize(
    ("due", "busy", "size", "plan"),
    [
        (20, 2, 2, Plan(22, 7, "up_step")),
        (3, 2, 2, Plan(5, 5, None)),
        (0, 3, 20, Plan(3, 17, "down_step")),
        (0, 18, 20, Plan(18, 18, None)),
        (0, 0, 3, Plan(0, 2, "min")),
        (9, 0, 0, Plan(9, 5, "up_step")),
        (60, 38, 38, Plan(98, 40, "max")),
    ],
)
def test_a_decision_goes_no_further_than_its_step(
    due: int, busy: int, size: int, plan: Plan
) -> None:
    assert plan_of(due, busy, size, Steps(up=5, down=3)) == plan


def test_the_floor_is_reached_at_once_and_so_is_a_lowered_bound() -> None:
    one = Steps(1, 1)
    assert plan_of(0, 0, 2, one, default_count=20) == Plan(0, 20, "min")
    assert plan_of(50, 30, 30, one, max_count=10) == Plan(80, 10, "max")


@pytest.mark.parametrize(
    ("due", "busy", "size", "plan"),
    [
        (2, 20, 20, Plan(22, 20, "tolerance")),
        (3, 20, 20, Plan(23, 23, None)),
        (0, 18, 20, Plan(18, 20, "tolerance")),
        (0, 17, 20, Plan(17, 17, None)),
        (1, 10, 10, Plan(11, 11, None)),  # a crew of ten follows each wish
        (1, 11, 11, Plan(12, 11, "tolerance")),
        (90, 39, 39, Plan(129, 40, "max")),  # a small step, but far from what is wanted
        (0, 20, 20, Plan(20, 20, None)),
    ],
)
def test_what_is_within_the_tolerance_of_a_crew_above_ten_changes_nothing(
    due: int, busy: int, size: int, plan: Plan
) -> None:
    assert plan_of(due, busy, size, Steps(tolerance_percent=10)) == plan


def test_a_crew_with_nothing_to_do_comes_to_its_floor_whatever_its_tolerance() -> None:
    wide = Steps(tolerance_percent=100)
    assert plan_of(0, 0, 30, wide, default_count=25) == Plan(0, 25, "min")


steps = st.builds(
    Steps, st.integers(0, 6), st.integers(0, 6), st.sampled_from([0.0, 5.0, 25.0, 100.0])
)


def policy_of(
    floor: int, span: int, up: float, down: float, window: float, each: Steps
) -> ScalingPolicy:
    most = max(1, floor + span)
    return ScalingPolicy("demand", floor, most, up, down, window, steps=each)


policies = st.builds(
    policy_of,
    st.integers(0, 12),
    st.integers(0, 40),
    st.sampled_from([0.0, 2.0]),
    st.sampled_from([0.0, 3.0]),
    st.sampled_from([0.0, 5.0]),
    steps,
)
walks = st.lists(st.tuples(st.none() | st.integers(0, 60), st.integers(0, 60)), max_size=40)


@given(walks, policies)
def test_no_walk_takes_a_larger_step_and_none_leaves_the_bounds(
    walk: list[tuple[int | None, int]], policy: ScalingPolicy
) -> None:
    size, memory, sizes = policy.default_count, Memory(), [policy.default_count]
    for second, (due, busy) in enumerate(walk):
        plan, memory = decide(Situation(due, busy, size), memory, policy, NOW + second)
        assert policy.default_count <= plan.desired <= policy.max_count
        if plan.limited_by == "tolerance":
            assert plan.desired == size > TOLERANT_SIZE
        size = plan.desired
        sizes.append(size)
    for before, after in pairwise(sizes):
        assert not policy.steps.up or after - before <= policy.steps.up
        assert not policy.steps.down or before - after <= policy.steps.down


@given(st.integers(0, 60), st.integers(0, 20), st.integers(0, 60), st.integers(0, 60), policies)
def test_more_due_jobs_never_mean_fewer_workers(
    due: int, more: int, busy: int, size: int, policy: ScalingPolicy
) -> None:
    memory = Memory(wishes=((NOW - 2, 9), (NOW - 1, 4)))
    little, _ = decide(Situation(due, busy, size), memory, policy, NOW)
    much, _ = decide(Situation(due + more, busy, size), memory, policy, NOW)
    assert much.desired >= little.desired


@given(st.integers(0, 60), policies)
def test_idle_crews_come_to_rest_at_their_floor(size: int, policy: ScalingPolicy) -> None:
    memory = Memory()
    for second in range(400):
        plan, memory = decide(Situation(0, 0, size), memory, policy, NOW + second)
        size = plan.desired
    assert size == policy.default_count
