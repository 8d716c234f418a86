"""How tenants share a node's workers: cases, and the laws that hold for all of them."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.manager.scaling.decision import (
    TURN_SECONDS,
    Ask,
    Turns,
    allowances,
    ceiling,
    entitled,
    next_turns,
)

small = st.integers(0, 12)


def ask_from(floor: int, span: int, wish: int, size: int, leaving: int) -> Ask:
    return Ask(floor, max(1, floor + span), wish, size, leaving)


asks_of_some = st.dictionaries(
    st.sampled_from("abcdef"), st.builds(ask_from, small, small, small, small, small), min_size=1
)
shares = st.tuples(asks_of_some, st.integers(0, 30)).map(
    lambda pair: (pair[0], sum(ask.floor for ask in pair[0].values()) + pair[1])
)


def wishes(*numbers: int, floor: int = 0) -> dict[str, Ask]:
    return {name: Ask(floor, 100, n, 0) for name, n in zip("abcdef", numbers, strict=False)}


@pytest.mark.parametrize(
    ("asks", "overall", "expected"),
    [
        (wishes(3, 2), 8, [3, 2]),  # enough for all
        (wishes(50, 50), 8, [4, 4]),
        (wishes(50, 1), 8, [7, 1]),  # what one does not use the other has
        (wishes(50, 3, 50), 9, [3, 3, 3]),
        (wishes(0, 50, floor=2), 8, [2, 6]),  # a floor is kept, idle or not
        (wishes(5, 5, 5), 2, [1, 1, 0]),
        ({"a": Ask(0, 2, 50, 0), "b": Ask(0, 9, 50, 0)}, 8, [2, 6]),  # an own maximum
        ({"a": Ask(6, 9, 50, 0), "b": Ask(1, 9, 50, 0)}, 8, [6, 2]),
    ],
)
def test_who_gets_how_many(asks: dict[str, Ask], overall: int, expected: list[int]) -> None:
    assert list(entitled(asks, overall, list(asks)).values()) == expected


@given(shares)
def test_floors_and_maxima_hold_and_it_is_never_too_much(share: tuple[dict[str, Ask], int]) -> None:
    asks, overall = share
    found = entitled(asks, overall, sorted(asks))
    assert sum(found.values()) <= overall
    for name, ask in asks.items():
        assert ask.floor <= found[name] <= max(ask.floor, min(ask.wish, ask.most))


@given(shares)
def test_nothing_is_held_back_that_somebody_wishes_for(share: tuple[dict[str, Ask], int]) -> None:
    asks, overall = share
    found = entitled(asks, overall, sorted(asks))
    if any(found[name] < ask.goal for name, ask in asks.items()):
        assert sum(found.values()) == overall


@given(shares)
def test_it_is_max_min_fair(share: tuple[dict[str, Ask], int]) -> None:
    """Nobody could have one more without taking it from one who has no more than himself."""
    asks, overall = share
    found = entitled(asks, overall, sorted(asks))
    short = [name for name, ask in asks.items() if found[name] < ask.goal]
    for name in short:
        for other, ask in asks.items():
            assert found[other] <= max(ask.floor, found[name] + 1)


@given(shares)
def test_idle_workers_stay_only_where_nobody_is_entitled_to_them(
    share: tuple[dict[str, Ask], int],
) -> None:
    asks, overall = share
    due = entitled(asks, overall, sorted(asks))
    found = allowances(asks, overall, sorted(asks))
    assert sum(found.values()) <= overall
    for name, ask in asks.items():
        assert due[name] <= found[name] <= max(due[name], ask.size)


@given(shares)
def test_a_crew_never_grows_into_what_others_still_have(share: tuple[dict[str, Ask], int]) -> None:
    asks, overall = share
    found = allowances(asks, overall, sorted(asks))
    for name, ask in asks.items():
        others = sum(one.size + one.leaving for key, one in asks.items() if key != name)
        most = ceiling(name, asks, found[name], overall)
        assert most <= found[name]
        assert most + others <= max(overall, others + ask.size + ask.leaving)


def test_who_has_left_over_workers_changes_with_the_turns() -> None:
    asks = wishes(5, 5, 5)
    turns = next_turns(Turns(), list(asks), now=0.0)
    seen: dict[str, int] = dict.fromkeys(asks, 0)
    for step in range(30):
        turns = next_turns(turns, list(asks), now=step * TURN_SECONDS)
        for name, count in entitled(asks, 2, turns.order).items():
            seen[name] += count
    assert max(seen.values()) - min(seen.values()) <= 1


def test_turns_stand_still_in_between_and_forget_who_has_left() -> None:
    turns = Turns(("a", "b", "c"), since=100.0)
    assert next_turns(turns, ["a", "b", "c"], 101.0) == turns
    assert next_turns(turns, ["c", "d", "a"], 101.0).order == ("a", "c", "d")


def test_workers_that_are_leaving_are_still_their_own_crews_and_nobody_elses() -> None:
    asks = {"a": Ask(0, 8, 4, 1, leaving=3), "b": Ask(0, 8, 4, 0)}
    assert [ceiling(name, asks, 4, 4) for name in asks] == [4, 0]


def test_a_bound_that_was_lowered_shows_in_the_allowance() -> None:
    asks = {"a": Ask(1, 9, 50, 8), "b": Ask(1, 9, 0, 1)}
    assert allowances(asks, 4, ["a", "b"]) == {"a": 3, "b": 1}
    grown = {"a": attrs.evolve(asks["a"], size=3, leaving=5), "b": asks["b"]}
    assert ceiling("a", grown, 3, 4) == 3
