"""Each invariant catches what breaks it, and only that; what is right passes."""

from __future__ import annotations

import pytest

from tests.checker.examples import EXAMPLES, Example
from tests.checker.table import ALL
from tests.checker.verdict import judge

TOLD = [
    pytest.param(example, commits, id=f"{example.name}-{'commits' if commits else 'replies'}")
    for example in EXAMPLES
    for commits in example.commits
]


@pytest.mark.parametrize(("example", "commits"), TOLD)
def test_a_history_breaks_exactly_what_it_breaks(example: Example, commits: bool) -> None:
    judgement = judge(example.history(commits).lines())
    stories = [f"{one.invariant}: {one.story}" for one in judgement.violations]
    assert judgement.violated == ({example.breaks} - {""}), stories
    assert all(one.lines for one in judgement.violations)


def test_every_way_to_check_catches_something() -> None:
    caught = {
        type(way)
        for example in EXAMPLES
        for commits in example.commits
        for way in judge(example.history(commits).lines()).ways
        if way.count
    }
    assert [way.__name__ for way in ALL if way not in caught] == []


def test_every_way_is_tried_by_a_history_that_is_right() -> None:
    tried = {
        type(way)
        for example in EXAMPLES
        if not example.breaks
        for commits in example.commits
        for way in judge(example.history(commits).lines()).ways
        if way.cases
    }
    assert [way.__name__ for way in ALL if way not in tried] == []
