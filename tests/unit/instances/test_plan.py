"""Which instances are started and drained: what is wanted, and laws that hold for any course."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musterd.console.instances.plan import Memory, Plan, State, plan, states_text
from tests.support.scale import scaled

LINGER_SECONDS = 300.0
LONG_AGO = Memory(since=-1_000.0)
SHORT: dict[str, State] = {"u": "up", "s": "starting", "l": "leaving", "d": "down", "f": "failed"}


def states(letters: str) -> dict[int, State]:
    return {number: SHORT[letter] for number, letter in enumerate(letters, start=1)}


def planned(desired: int | None, letters: str, memory: Memory = LONG_AGO) -> Plan:
    return plan(desired, states(letters), memory, 0.0, LINGER_SECONDS)[0]


@pytest.mark.parametrize(
    ("desired", "letters", "start", "drain"),
    [
        (0, "dddd", (1,), ()),  # one is kept where there is no work
        (3, "dddd", (1, 2, 3), ()),
        (3, "uddd", (2, 3), ()),
        (3, "usdd", (3,), ()),  # what starts counts
        (9, "uudd", (3, 4), ()),  # there are no more
        (2, "fldd", (3, 4), ()),  # neither what failed nor what leaves comes back
        (3, "ffff", (), ()),
        (1, "uuuu", (), (4, 3, 2)),
        (0, "uuuu", (), (4, 3, 2)),
        (2, "uluu", (), (4,)),
        (1, "ssus", (), ()),  # the only one that is up
        (None, "uuud", (), ()),  # nobody knows
        (None, "dddd", (1,), ()),
    ],
)
def test_as_many_run_as_there_is_work_for(
    desired: int | None, letters: str, start: tuple[int, ...], drain: tuple[int, ...]
) -> None:
    found = planned(desired, letters)
    assert (found.start, found.drain) == (start, drain)


def test_a_moment_without_work_drains_nobody() -> None:
    memory = LONG_AGO
    for at, desired, drained in ((0, 4, ()), (200, 2, ()), (299, 0, ()), (300, 0, (4, 3)),
        (499, 1, (4, 3)), (500, 1, (4, 3, 2))):  # fmt: skip
        found, memory = plan(desired, states("uuuu"), memory, at, LINGER_SECONDS)
        assert found.drain == drained, at


def test_one_that_begins_does_not_know_what_was_wanted_before() -> None:
    memory = Memory()
    for at in (0.0, 150.0, 299.0):
        found, memory = plan(1, states("uuu"), memory, at, LINGER_SECONDS)
        assert found == Plan()
    assert plan(1, states("uuu"), memory, 300.0, LINGER_SECONDS)[0].drain == (3, 2)
    assert plan(1, states("uuu"), Memory(), 0.0, 0.0)[0].drain == (3, 2)


def test_while_nobody_knows_what_runs_is_wanted() -> None:
    _, memory = plan(None, states("uuu"), LONG_AGO, 0.0, LINGER_SECONDS)
    assert plan(1, states("uuu"), memory, 299.0, LINGER_SECONDS)[0].drain == ()


def test_what_there_is_is_told_in_a_line() -> None:
    assert states_text(states("uusldf")) == "2 up, 1 starting, 1 leaving, 1 failed"
    assert states_text(states("dd")) == "none up"


looks = st.lists(
    st.tuples(st.none() | st.integers(0, 12), st.floats(0.5, 400), st.integers(0, 2**16)),
    max_size=30,
)


@settings(max_examples=scaled(500))
@given(st.text("usldf", min_size=1, max_size=8), looks, st.sampled_from([0.0, 60.0, 300.0]))
def test_never_below_one_never_above_all_and_nobody_who_is_not_there(
    letters: str, looks: Sequence[tuple[int | None, float, int]], linger_seconds: float
) -> None:
    """`looks`: what is wanted, how long after the one before, and the dice for the units."""
    now, memory = 0.0, Memory()
    found: dict[int, State] = states(letters)
    wanted: list[tuple[float, int]] = []
    for desired, later, chance in looks:
        now += later
        chosen, memory = plan(desired, found, memory, now, linger_seconds)
        up = [one for one, state in found.items() if state == "up"]
        present = [one for one, state in found.items() if state in ("up", "starting")]
        assert all(found[one] == "down" for one in chosen.start)
        assert all(found[one] == "up" for one in chosen.drain)
        assert not (chosen.start and chosen.drain)
        assert len(chosen.drain) < max(1, len(up)), "one that is up stays"
        assert len(present) + len(chosen.start) <= max(len(present), 1, desired or 0)
        wanted.append((now, len(present) if desired is None else desired))
        if chosen.drain:
            recent = max(number for at, number in wanted if at == now or at > now - linger_seconds)
            assert len(present) - len(chosen.drain) >= min(len(found), recent)
        for one in chosen.start:
            found[one] = "starting"
        for one in chosen.drain:
            found[one] = "leaving"
        found = {one: _later(state, chance >> one) for one, state in found.items()}


def _later(state: State, chance: int) -> State:
    if state == "starting":
        return "up" if chance & 1 else "failed" if chance & 2 else state
    return "down" if state == "leaving" and chance & 1 else state
