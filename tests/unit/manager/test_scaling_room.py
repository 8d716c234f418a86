"""How large the crew should be where only so many jobs may run on all nodes together."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.manager.scaling.decision import (
    Memory,
    Others,
    Plan,
    ScalingPolicy,
    Situation,
    useful_size,
    useful_wish,
)
from tests.support.traces import SHIPPED as POLICY
from tests.unit.manager.test_scaling import NOW, counts, plan_of, policies


def bounded(most: int | None, allowance: int | None = None) -> ScalingPolicy:
    return attrs.evolve(POLICY, max_running=most, allowance=allowance)


@pytest.mark.parametrize(
    ("most", "due", "busy", "size", "room", "plan"),
    [
        # Alone: never more workers than jobs that may run.
        (4, 100, 0, 2, 4, Plan(100, 4, "max_running")),
        (4, 100, 4, 4, 0, Plan(104, 4, "max_running")),
        (4, 3, 1, 2, 3, Plan(4, 4, None)),
        # Others run what may run: it grows for nothing else than what room there is.
        (20, 100, 2, 2, 0, Plan(102, 2, "max_running")),
        (20, 100, 2, 2, 3, Plan(102, 5, "max_running")),
        (20, 100, 2, 2, 6, Plan(102, 8, "max")),
        # The floor looks for room, but not beyond what may ever run.
        (20, 100, 0, 2, 0, Plan(100, 2, "max_running")),
        (1, 0, 0, 2, 1, Plan(0, 1, "max_running")),
        # What does not bind is not blamed.
        (8, 100, 0, 2, 8, Plan(100, 8, "max")),
        (20, 0, 0, 2, 0, Plan(0, 2, "min")),
        (20, 0, 5, 5, 0, Plan(5, 5, None)),
        (None, 100, 0, 2, None, Plan(100, 8, "max")),
    ],
)
def test_the_crew_is_no_larger_than_could_run(
    most: int | None, due: int, busy: int, size: int, room: int | None, plan: Plan
) -> None:
    assert plan_of(Situation(due, busy, size, room=room), bounded(most)) == plan


seens = st.builds(
    Situation,
    counts,
    counts,
    st.integers(0, 20),
    st.builds(Others, st.integers(0, 20), st.just(0), st.integers(0, 1000)),
    st.booleans(),
    st.none() | st.integers(0, 20),
)


@given(seen=seens, policy=policies, most=st.none() | st.integers(1, 30))
def test_max_running_is_told_if_and_only_if_it_bound(
    seen: Situation, policy: ScalingPolicy, most: int | None
) -> None:
    policy = attrs.evolve(
        policy, max_running=most, up_cooldown_seconds=0, down_cooldown_seconds=0,
        stabilization_seconds=0,
    )  # fmt: skip
    with_it = plan_of(seen, policy)
    without = plan_of(attrs.evolve(seen, room=None), attrs.evolve(policy, max_running=None))
    assert (with_it.limited_by == "max_running") is (with_it.desired < without.desired)
    assert with_it.desired <= without.desired
    assert most is None or with_it.desired <= most


@given(
    room=st.integers(0, 50),
    nodes=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=8),
)
def test_nodes_together_grow_by_the_room_there_is(room: int, nodes: list[tuple[int, int]]) -> None:
    """By one a node too much at most; and no room is left without anybody to use it."""
    free = [max(0, most - busy) for most, busy in nodes]
    grown = 0
    for place, ((most, busy), own) in enumerate(zip(nodes, free, strict=True)):
        seen = Situation(1000, busy, busy, Others(sum(free) - own, sum(free[:place])), room=room)
        useful = useful_size(seen, attrs.evolve(POLICY, max_count=most))
        assert useful is not None
        grown += min(useful - busy, own)
    assert min(room, sum(free)) <= grown <= room + len(nodes)


def test_a_bound_that_was_lowered_counts_at_once() -> None:
    memory = Memory(shrank_at=NOW - 1, wishes=((NOW - 1, 8),))
    plan = plan_of(Situation(50, 8, 8, room=0), bounded(3), memory)
    assert plan == Plan(58, 3, "max_running")


def test_without_an_observation_the_crew_stays_within_what_may_run() -> None:
    assert plan_of(Situation(None, 4, 6), bounded(5)) == Plan(None, 5, "max_running")
    assert plan_of(Situation(None, 4, 6), bounded(7)) == Plan(None, 6, "no_observation")


def test_beside_other_tenants_nothing_is_asked_for_that_could_not_run() -> None:
    seen = Situation(100, 2, 2, room=3)
    assert (plan_of(seen, bounded(20)).raw_wish, useful_wish(seen, bounded(20))) == (102, 5)
    assert useful_wish(Situation(None, 2, 4), bounded(20)) == 4
    # What the others leave is then what was asked for: they are not blamed.
    assert plan_of(seen, bounded(20, allowance=5)).limited_by == "max_running"
    assert plan_of(seen, bounded(20, allowance=4)).limited_by == "shared"
