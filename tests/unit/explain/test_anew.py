"""Deciding the rows of a journal anew: as it was with the same settings, and what others change."""

from collections.abc import Sequence
from typing import Any, Literal

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.config.scaling import Guard
from musterd.console.explain.anew import (
    COUNTED,
    IMAGINED,
    LINE,
    MACHINE,
    SHARES,
    Anew,
    decide_anew,
    proposed,
    wish_anew,
)
from musterd.manager.node.status import Decision
from musterd.manager.scaling.decision import Memory, ScalingPolicy, Situation, decide, share
from tests.support.traces import SHIPPED

counts = st.integers(0, 20)
Simple = Literal["demand", "depth"]


def lived(walk: Sequence[tuple[int | None, int]], policy: ScalingPolicy) -> list[Decision]:
    """What a supervisor decides that sees so many due jobs, and has so many in hand."""
    memory, size, made = Memory(), policy.default_count, list[Decision]()
    for second, (due, busy) in enumerate(walk):
        seen = Situation(due, min(busy, size), size)
        plan, memory = decide(seen, memory, policy, float(second))
        made.append(
            Decision(
                float(second), policy.policy, due, seen.busy, size, plan.raw_wish, plan.desired,
                plan.limited_by, max(0, plan.desired - size), 0, max(0, size - plan.desired),
                share=share(seen, policy), others_free=None if due is None else 0,
                default_count=policy.default_count, max_count=policy.max_count,
            )
        )  # fmt: skip
        size = plan.desired
    return made


def anew(made: Sequence[Decision], policy: ScalingPolicy, *named: str) -> Anew:
    one = made[-1]
    return decide_anew(made[:-1], one, SHIPPED, proposed(SHIPPED, policy, one, named))


@given(
    st.lists(st.tuples(st.none() | counts, counts), min_size=1, max_size=40),
    st.sampled_from(["demand", "depth"]),
    st.integers(0, 4),
    st.integers(4, 12),
)
def test_the_same_settings_decide_the_same(
    walk: list[tuple[int | None, int]], policy: Simple, floor: int, most: int
) -> None:
    then = attrs.evolve(SHIPPED, policy=policy, default_count=floor, max_count=most)
    made = lived(walk, then)
    found = anew(made, SHIPPED)  # the row holds the policy and its counts
    assert found.plan is not None
    assert (found.plan.desired, found.plan.limited_by) == (made[-1].desired, made[-1].limited_by)
    assert found.is_repeated


def test_a_higher_bound_grants_the_wish() -> None:
    made = lived([(0, 0), (12, 2)], SHIPPED)
    assert (made[-1].desired, made[-1].limited_by) == (SHIPPED.max_count, "max")
    found = anew(made, attrs.evolve(SHIPPED, max_count=20), "max_count")
    assert found.plan is not None
    assert (found.plan.desired, found.plan.limited_by, found.lacks) == (14, None, ())


def test_the_row_counts_before_todays_configuration() -> None:
    made = lived([(0, 0), (12, 2)], attrs.evolve(SHIPPED, max_count=5))
    found = anew(made, attrs.evolve(SHIPPED, up_cooldown_seconds=3.0))
    assert found.plan is not None
    assert found.plan.desired == 5


def test_a_window_is_worked_out_with_the_other_settings() -> None:
    walk = [(5, 0), (0, 0), (0, 0), (0, 0)]
    made = lived(walk, SHIPPED)
    assert made[-1].limited_by == "stabilization"
    found = anew(made, attrs.evolve(SHIPPED, stabilization_seconds=1.0, down_cooldown_seconds=0.0))
    assert found.plan is not None
    assert (found.plan.desired, found.plan.limited_by) == (SHIPPED.default_count, "min")


def test_a_crew_that_was_held_is_held_unless_the_mode_is_named() -> None:
    made = lived([(0, 0), (12, 2)], attrs.evolve(SHIPPED, mode="hold"))
    assert made[-1].limited_by == "hold"
    held = anew(made, attrs.evolve(SHIPPED, max_count=20), "max_count")
    freed = anew(made, attrs.evolve(SHIPPED, mode="active"), "mode")
    assert held.plan is not None
    assert freed.plan is not None
    assert (held.plan.limited_by, freed.plan.limited_by) == ("hold", "max")
    active = lived([(0, 0), (12, 2)], SHIPPED)
    assert anew(active, attrs.evolve(SHIPPED, mode="hold")).is_repeated


def test_what_the_guard_kept_the_crew_to_stands() -> None:
    guarded = attrs.evolve(SHIPPED, guard=Guard(cpu_pressure_percent=60.0))
    made = lived([(0, 0), (3, 2)], SHIPPED)
    one = attrs.evolve(made[-1], desired=2, limited_by="machine_cpu")
    found = decide_anew([], one, guarded, attrs.evolve(guarded, max_count=20))
    assert found.plan is not None
    assert (found.plan.desired, found.plan.limited_by) == (2, "machine_cpu")
    assert found.is_repeated
    freed = decide_anew([], one, guarded, attrs.evolve(guarded, guard=Guard()))
    assert freed.plan is not None
    assert (freed.plan.desired, freed.plan.limited_by) == (5, None)
    other = decide_anew([], made[0], guarded, attrs.evolve(guarded, default_count=4))
    assert MACHINE in other.lacks


def test_a_shadows_crew_is_not_in_the_row() -> None:
    made = lived([(0, 0), (12, 2)], SHIPPED)
    shadow = attrs.evolve(made[-1], limited_by="shadow")
    assert IMAGINED in anew([shadow], attrs.evolve(SHIPPED, max_count=20), "max_count").lacks


def test_a_cooldown_counts_from_when_the_crew_really_grew() -> None:
    made = lived([(0, 0), (2, 2), (4, 2)], SHIPPED)
    found = anew(made, attrs.evolve(SHIPPED, up_cooldown_seconds=3.0))
    assert found.plan is not None
    assert (found.plan.desired, found.plan.limited_by) == (made[-1].size_before, "up_cooldown")


def test_latency_cannot_be_told_from_a_row_of_demand() -> None:
    made = lived([(0, 0), (12, 2)], SHIPPED)
    found = anew(made, attrs.evolve(SHIPPED, policy="latency"), "policy")
    assert (found.plan, found.wanted, found.lacks) == (None, None, (LINE,))


def test_what_latency_wished_for_stands_with_other_bounds() -> None:
    made = lived([(0, 0), (12, 2)], SHIPPED)
    one = attrs.evolve(made[-1], policy="latency", raw_wish=3, because="drain")
    found = anew([one], attrs.evolve(SHIPPED, max_count=2), "max_count")
    assert found.plan is not None
    assert (found.plan.raw_wish, found.plan.desired, found.plan.limited_by) == (3, 2, "max")


def test_it_is_said_what_the_row_does_not_hold() -> None:
    made = lived([(0, 0), (17, 2)], SHIPPED)
    wide = attrs.evolve(SHIPPED, max_count=64)
    assert anew(made, wide, "max_count").lacks == (COUNTED,)
    shared = attrs.evolve(made[-1], others_free=4, share=8, due=12)
    assert anew([shared], wide, "max_count").lacks == (SHARES,)


def test_other_settings_than_today_are_noticed() -> None:
    made = lived([(5, 0), (0, 0)], attrs.evolve(SHIPPED, stabilization_seconds=0.0))
    found = anew(made, attrs.evolve(SHIPPED, max_count=9), "max_count")
    assert not found.is_repeated


@pytest.mark.parametrize("policy", ["demand", "depth", "latency"])
def test_without_an_observation_nothing_is_wished(policy: Any) -> None:
    (one,) = lived([(None, 0)], SHIPPED)
    wanted = wish_anew(one, attrs.evolve(SHIPPED, policy=policy))
    assert wanted is not None
    assert wanted.workers is None
