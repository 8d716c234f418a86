"""The page on states shows the table of transitions, the diagram of it, and every outcome."""

import re

from musterd.store.lifecycle import (
    EFFECTS,
    INITIAL,
    LEASED,
    TRANSITIONS,
    Action,
    AttemptOutcome,
    JobState,
)
from tests.support.pages import bare, blocks, codes, page, table

PAGE = page("states.md")


def test_the_table_is_that_of_the_code() -> None:
    found = {(bare(old), bare(new)): by for old, new, by in table(PAGE, "from", "to", "by")}
    wanted = {(old.value, new.value): by for (old, new), by in TRANSITIONS.items()}
    assert found == wanted


def test_the_diagram_shows_the_same() -> None:
    (diagram,) = blocks(PAGE, "mermaid")
    found = set(re.findall(r"^ +(\S+) --> (\S+)(?: : (.+))?$", diagram.text, re.MULTILINE))
    edges = {(old.value, new.value, by) for (old, new), by in TRANSITIONS.items()}
    assert found == edges | {("[*]", state.value, "") for state in INITIAL}


def test_every_state_is_told() -> None:
    found = [state for cell, _ in table(PAGE, "state", "means") for state in codes(cell)]
    assert found == [state.value for state in JobState]


def test_every_action_in_every_state_is_told() -> None:
    heads = ("state", *(f"`{action}`" for action in Action))
    found = {
        (Action(bare(head)), JobState(state)): said
        for cell, *row in table(PAGE, *heads)
        for state in codes(cell)
        for head, said in zip(heads[1:], row, strict=True)
    }
    assert set(found) == {(action, state) for action in Action for state in JobState}
    for (action, state), said in found.items():
        effect = EFFECTS.get((action, state))
        if state in LEASED and effect:
            assert said == "asked"
        else:
            assert codes(said) == ([effect.value] if effect else []), (action, state)


def test_every_outcome_is_told() -> None:
    found = {bare(outcome) for outcome, *_ in table(PAGE, "outcome", "what happened")}
    assert found == {outcome.value for outcome in AttemptOutcome}
