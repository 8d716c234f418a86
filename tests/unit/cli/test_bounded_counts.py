"""Where counting stopped, a plus says so; programs get a flag."""

import json
from datetime import UTC, datetime
from uuid import UUID

import attrs
import pytest

from musterd.console.verbs.scaling import COLUMNS
from musterd.console.verbs.status import decision_of, status_line
from musterd.manager.node.status import Decision, decision_object, decision_text
from musterd.manager.scaling.journal import row_of, run_of
from musterd.store.scaling_journal import is_due_exact, run_from, run_object
from musterd.store.words import count_text
from musterd.web.pages.scaling import reason_words
from tests.support.web_scene import STATUS

FULL = Decision(0.0, "demand", 17, 3, 8, 20, 8, "max", 0, 0, 0, 17, 0, max_count=8)


def test_a_count_that_stopped_has_a_plus() -> None:
    assert [count_text(1234), count_text(1234, exact=False)] == ["1,234", "1,234+"]


@pytest.mark.parametrize(
    ("due", "most", "others", "exact"),
    [(16, 8, 0, True), (17, 8, 0, False), (17, 8, None, False), (17, 8, 1, True),
     (None, 8, 0, True), (99, None, 0, True)],
)  # fmt: skip
def test_a_supervisor_counts_to_twice_the_workers_and_one(
    due: int | None, most: int | None, others: int | None, exact: bool
) -> None:
    assert is_due_exact(due, most, others) is exact


def test_a_decision_says_so_wherever_it_is_shown() -> None:
    few = attrs.evolve(FULL, due=16, share=16)
    assert "(17+ due, 3 busy: " in decision_text(FULL)
    assert "(16 due, 3 busy: " in decision_text(few)
    assert reason_words(FULL).startswith("17+ due jobs seen, ")
    assert [decision_object(one)["due_exact"] for one in (FULL, few)] == [False, True]
    read = decision_of(json.loads(json.dumps(decision_object(FULL))))
    assert read is not None
    assert "17+ due" in decision_text(read), "from a daemon too"


def test_a_row_of_the_journal_says_so() -> None:
    row = row_of(run_of(FULL), UUID(int=1), "north")
    found = run_object(row)
    assert (found["due"], found["due_exact"]) == (17, False)
    assert COLUMNS[">due"](found) == "17+"
    assert run_from(found).at == datetime.fromtimestamp(0, UTC)


def test_the_line_of_a_node_says_so() -> None:
    assert " · 17+ due · " in status_line(attrs.evolve(STATUS, depth=17, depth_exact=False))


def test_while_the_queue_is_paused_nothing_is_said_to_be_due() -> None:
    nothing = attrs.evolve(FULL, due=0, share=0)
    assert "(queue paused, 3 busy: " in decision_text(nothing, paused=True)
    assert "(0 due, 3 busy: " in decision_text(nothing)
    assert "(17+ due, " in decision_text(FULL, paused=True), "decided before the pause"
