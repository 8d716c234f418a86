"""How large the crew should be: the table of cases, and the laws that hold for all of them."""

from itertools import pairwise

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.config.scaling import PolicyName
from musterd.manager.scaling.decision import Memory, Others, Plan, ScalingPolicy, Situation, decide
from tests.support.traces import SHIPPED as POLICY

NOW = 1000.0
FRESH = Memory()

counts = st.integers(0, 40)


def policy_from(
    policy: PolicyName, floor: int, span: int, up: float, down: float, window: float
) -> ScalingPolicy:
    return ScalingPolicy(policy, floor, floor + span, up, down, window)


policies = st.builds(
    policy_from,
    st.sampled_from(["demand", "depth"]),
    st.integers(0, 10),
    st.integers(0, 10),
    st.sampled_from([0.0, 3.0]),
    st.sampled_from([0.0, 5.0]),
    st.sampled_from([0.0, 10.0]),
)
found = st.builds(Situation, st.none() | counts, counts, st.integers(0, 20))
walks = st.lists(st.tuples(st.none() | counts, counts), min_size=1, max_size=40)


def plan_of(seen: Situation, policy: ScalingPolicy = POLICY, memory: Memory = FRESH) -> Plan:
    return decide(seen, memory, policy, NOW)[0]


def wish_of(due: int, busy: int, size: int, policy: ScalingPolicy = POLICY) -> Plan:
    return plan_of(Situation(due, busy, size), policy)


@pytest.mark.parametrize(
    ("due", "busy", "size", "plan"),
    [
        (0, 0, 2, Plan(0, 2, "min")),
        (1, 0, 2, Plan(1, 2, "min")),
        (3, 2, 2, Plan(5, 5, None)),
        (0, 5, 5, Plan(5, 5, None)),
        (8, 0, 2, Plan(8, 8, None)),
        (9, 0, 2, Plan(9, 8, "max")),
        (100, 8, 8, Plan(108, 8, "max")),
        (0, 3, 8, Plan(3, 3, None)),
        (0, 0, 0, Plan(0, 2, "min")),
    ],
)
def test_demand_is_what_waits_and_what_runs_between_the_bounds(
    due: int, busy: int, size: int, plan: Plan
) -> None:
    assert wish_of(due, busy, size) == plan


@given(depth=counts, busy=counts, size=st.integers(0, 20))
def test_the_depth_policy_is_its_formula_to_the_letter(depth: int, busy: int, size: int) -> None:
    policy = attrs.evolve(POLICY, policy="depth", stabilization_seconds=0)
    plan = wish_of(depth, busy, size, policy)
    default, max_count = POLICY.default_count, POLICY.max_count
    assert plan.desired == min(max(depth, default), max_count)
    assert plan.raw_wish == depth


@given(seen=found, policy=policies)
def test_no_decision_leaves_the_bounds(seen: Situation, policy: ScalingPolicy) -> None:
    memory = Memory(grew_at=NOW - 1, shrank_at=NOW - 1, wishes=((NOW - 2, 9), (NOW - 1, 4)))
    plan, _ = decide(seen, memory, policy, NOW)
    assert policy.default_count <= plan.desired <= policy.max_count


@given(due=counts, more=counts, busy=counts, size=st.integers(0, 20), policy=policies)
def test_more_due_jobs_never_mean_fewer_workers(
    due: int, more: int, busy: int, size: int, policy: ScalingPolicy
) -> None:
    memory = Memory(grew_at=NOW - 1, shrank_at=NOW - 1, wishes=((NOW - 2, 9), (NOW - 1, 4)))
    little, _ = decide(Situation(due, busy, size), memory, policy, NOW)
    much, _ = decide(Situation(due + more, busy, size), memory, policy, NOW)
    assert much.desired >= little.desired


@given(walk=walks, policy=policies)
def test_a_crew_never_shrinks_below_the_highest_wish_of_the_window(
    walk: list[tuple[int | None, int]], policy: ScalingPolicy
) -> None:
    size, memory = policy.default_count, FRESH
    wishes: list[tuple[float, int]] = []
    for step, (due, busy) in enumerate(walk):
        now = NOW + step
        plan, memory = decide(Situation(due, busy, size), memory, policy, now)
        if plan.raw_wish is not None:
            wishes.append((now, plan.raw_wish))
        recent = [wish for at, wish in wishes if at > now - policy.stabilization_seconds]
        if plan.desired < size:
            assert plan.desired >= min(max(recent, default=0), size)
        size = plan.desired


@given(walk=walks, policy=policies)
def test_between_two_changes_in_one_direction_lies_its_cooldown(
    walk: list[tuple[int | None, int]], policy: ScalingPolicy
) -> None:
    size, memory = policy.default_count, FRESH
    grew: list[float] = []
    shrank: list[float] = []
    for step, (due, busy) in enumerate(walk):
        now = NOW + step
        plan, memory = decide(Situation(due, busy, size), memory, policy, now)
        if plan.desired != size:
            (grew if plan.desired > size else shrank).append(now)
        size = plan.desired
    for moments, cooldown in (
        (grew, policy.up_cooldown_seconds),
        (shrank, policy.down_cooldown_seconds),
    ):
        assert all(b - a >= cooldown for a, b in pairwise(moments))


@given(seen=st.builds(Situation, counts, counts, counts), policy=policies)
def test_a_steady_load_changes_the_crew_in_one_direction_only(
    seen: Situation, policy: ScalingPolicy
) -> None:
    size, memory, sizes = seen.size, FRESH, [seen.size]
    for step in range(40):
        plan, memory = decide(attrs.evolve(seen, size=size), memory, policy, NOW + step)
        size = plan.desired
        sizes.append(size)
    assert sizes in (sorted(sizes), sorted(sizes, reverse=True))
    assert len(set(sizes[-15:])) == 1


@given(size=st.integers(0, 20), busy=counts, policy=policies)
def test_without_an_observation_the_crew_stays_within_its_bounds(
    size: int, busy: int, policy: ScalingPolicy
) -> None:
    memory = Memory(wishes=((NOW - 1, 5),))
    plan, after = decide(Situation(None, busy, size), memory, policy, NOW)
    assert after == memory
    assert plan.raw_wish is None
    assert plan.desired == min(max(size, policy.default_count), policy.max_count)


def test_growth_waits_for_its_cooldown() -> None:
    policy = attrs.evolve(POLICY, up_cooldown_seconds=3)
    plan, memory = decide(Situation(1, 2, 2), FRESH, policy, NOW)
    assert plan == Plan(3, 3, None)
    for seconds, wanted in ((1, Plan(6, 3, "up_cooldown")), (3, Plan(6, 6, None))):
        assert decide(Situation(3, 3, 3), memory, policy, NOW + seconds)[0] == wanted


def test_the_floor_is_not_subject_to_a_cooldown() -> None:
    policy = attrs.evolve(POLICY, up_cooldown_seconds=3)
    memory = Memory(grew_at=NOW)
    assert decide(Situation(9, 0, 1), memory, policy, NOW + 1)[0] == Plan(9, 2, "up_cooldown")


def test_shrinking_waits_for_the_window_then_for_its_cooldown() -> None:
    size, memory = 8, FRESH
    _, memory = decide(Situation(0, 8, 8), memory, POLICY, NOW)
    _, memory = decide(Situation(0, 5, 8), memory, POLICY, NOW + 1)
    found: list[tuple[int, int, str | None]] = []
    for second in range(2, 17):
        plan, memory = decide(Situation(0, 0, size), memory, POLICY, NOW + second)
        if plan.desired != size or not found or plan.limited_by != found[-1][2]:
            found.append((second, plan.desired, plan.limited_by))
        size = plan.desired
    assert found == [
        (2, 8, "stabilization"),
        (10, 5, "stabilization"),
        (11, 5, "down_cooldown"),
        (15, 2, "min"),
    ]


def test_a_bound_that_was_lowered_counts_at_once() -> None:
    memory = Memory(shrank_at=NOW - 1, wishes=((NOW - 1, 8),))
    plan, _ = decide(Situation(50, 8, 8), memory, attrs.evolve(POLICY, max_count=3), NOW)
    assert plan == Plan(58, 3, "max")


def test_the_memory_stays_small() -> None:
    memory = FRESH
    for step in range(1000):
        _, memory = decide(Situation(step % 7, 0, 5), memory, POLICY, NOW + step / 10)
    assert len(memory.wishes) <= 8


def test_only_the_share_of_what_is_due_is_wished_for() -> None:
    others = Others(free=6, before=0)
    assert plan_of(Situation(7, 2, 2)).raw_wish == 9
    assert plan_of(Situation(6, 2, 2, others)).raw_wish == 2 + 3
    assert plan_of(Situation(7, 2, 2, others, overdue=True)).raw_wish == 2 + 4
    assert plan_of(Situation(7, 8, 8, others)).raw_wish == 8
    by_depth = attrs.evolve(POLICY, policy="depth")
    assert plan_of(Situation(6, 2, 2, others), by_depth).raw_wish == 3
    assert plan_of(Situation(None, 2, 2, others)).raw_wish is None
