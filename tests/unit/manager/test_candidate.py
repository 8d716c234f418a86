"""Crews that are decided on and never hired."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
from hypothesis import given
from hypothesis import strategies as st

from musterd.config.load import load
from musterd.config.scaling import COUNTS, Candidate
from musterd.config.settings import Scaling, Settings
from musterd.manager.scaling.candidate import (
    ImaginedCrew,
    candidate_of,
    decided_beside,
    shadowed,
)
from musterd.manager.scaling.decision import Memory, Plan, Situation, decide
from tests.support.traces import SHIPPED

NOW = 1000.0
NOT_A_CANDIDATE = {"mode", "candidate", "journal_days"}


def settings(*sets: str) -> Settings:
    return load(None, {}, sets, Path("none.toml")).settings


def test_it_takes_any_key_of_scaling_and_the_counts() -> None:
    of_scaling = attrs.fields_dict(Scaling).keys() - NOT_A_CANDIDATE
    assert attrs.fields_dict(Candidate).keys() == of_scaling | set(COUNTS)


def test_what_it_does_not_name_is_as_it_is_in_force() -> None:
    assert candidate_of(settings()) is None
    now = settings(
        "scaling.down_cooldown_seconds=7", "scaling.mode=hold", "workers.max_count=20",
        "scaling.candidate.policy=latency", "scaling.candidate.default_count=5",
    )  # fmt: skip
    found = candidate_of(now)
    assert found is not None
    assert (found.workers.default_count, found.workers.max_count) == (5, 20)
    assert (found.scaling.policy, found.scaling.down_cooldown_seconds) == ("latency", 7)
    assert found.scaling.mode == "active"
    assert candidate_of(found) is None


def test_layers_are_merged_key_by_key(tmp_path: Path) -> None:
    file = tmp_path / "musterd.toml"
    file.write_text('[scaling.candidate]\npolicy = "depth"\nup_step = 3\n')
    proposed = load(file, {"MUSTERD_SCALING__CANDIDATE__UP_STEP": "4"}, []).settings.scaling
    assert proposed.candidate == Candidate(policy="depth", up_step=4)


def test_an_imagined_crew_grows_and_shrinks_by_its_own_size() -> None:
    policy = attrs.evolve(SHIPPED, stabilization_seconds=0, down_cooldown_seconds=5)
    told, crew = decided_beside(Situation(4, 2, 2), policy, None, NOW)
    assert told == {"desired": 6, "limited_by": None, "raw_wish": 6, "because": "demand"}
    told, crew = decided_beside(Situation(0, 0, 2), policy, crew, NOW + 1)
    assert (told["desired"], told["limited_by"]) == (2, "min")
    told, crew = decided_beside(Situation(3, 2, 2), policy, crew, NOW + 2)
    told, _ = decided_beside(Situation(0, 0, 2), policy, crew, NOW + 3)
    assert (told["desired"], told["limited_by"]) == (5, "down_cooldown")


walks = st.lists(st.tuples(st.none() | st.integers(0, 30), st.integers(0, 30)), max_size=30)


@given(walks)
def test_where_it_names_nothing_it_decides_as_the_crew_in_force(walk: list[Any]) -> None:
    memory, size, crew = Memory(), 2, ImaginedCrew(2)
    for second, (due, busy) in enumerate(walk):
        seen = Situation(due, busy, size)
        real, memory = decide(seen, memory, SHIPPED, NOW + second)
        imagined, crew = crew.decide(attrs.evolve(seen, size=0), SHIPPED, NOW + second)
        assert imagined == real
        size = real.desired


@given(walks, st.integers(0, 12))
def test_a_crew_that_is_held_keeps_its_size_within_its_bounds(walk: list[Any], size: int) -> None:
    policy = attrs.evolve(SHIPPED, mode="hold")
    kept = min(max(size, policy.default_count), policy.max_count)
    for second, (due, busy) in enumerate(walk):
        plan, _ = decide(Situation(due, busy, size), Memory(), policy, NOW + second)
        assert plan.desired == size if second else plan.desired == kept
        assert plan.raw_wish == (None if due is None else due + busy)
        size = plan.desired


def test_a_shadow_tells_what_would_be_and_leaves_what_is() -> None:
    policy = attrs.evolve(SHIPPED, mode="shadow")
    assert shadowed(Plan(9, 8, "max"), 2, policy) == (Plan(9, 8, "shadow"), 2)
    assert shadowed(Plan(2, 2, None), 2, policy) == (Plan(2, 2, None), 2)
    assert shadowed(Plan(0, 2, "min"), 12, policy) == (Plan(0, 2, "shadow"), 8)
