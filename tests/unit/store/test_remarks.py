"""What is said of a store's kinds: those nobody knows, those that fail, those that cannot run."""

from pathlib import Path
from typing import Any

import attrs
import pytest

from musterd.config.load import load
from musterd.store.nodes import Kinds, KnownKind, NodeRecord
from musterd.store.overview import KindEnds, Troubles
from musterd.store.remarks import Situation, behind, is_failing, remarks
from tests.support.top_scene import HOSTILE, NODE, counts

SETTINGS = load(None, {}, [], Path("/nonexistent")).settings
QUIET = Troubles(0, (), None, None, None, 0)


def knowing(*names: str, **values: Any) -> NodeRecord:
    return attrs.evolve(NODE, kinds=Kinds({name: KnownKind() for name in names}), **values)


def situation(**values: Any) -> Situation:
    usual = Situation(counts(), QUIET, [knowing("report", "mail")], [], {})
    return attrs.evolve(usual, **values)


def said(**values: Any) -> list[str]:
    return remarks(situation(**values), SETTINGS)


def failing(*ends: KindEnds) -> Troubles:
    return attrs.evolve(QUIET, failing=ends)


def test_a_kind_that_no_live_node_knows_is_named_with_what_was_meant() -> None:
    (line,) = said(waiting={"report": 7, "reprot": 2})
    assert line == (
        "UNKNOWN_KIND no node knows reprot: 2 jobs (did you mean report?);"
        " add the kind and `musterd reload`, or `musterd cancel --where kind=reprot`"
    )


def test_a_promise_that_is_being_broken_is_told_by_how_much() -> None:
    assert behind(None) == behind(0.0) == behind(3.0) == []
    (line,) = behind(-4.0)
    assert line == (
        "BEHIND  a job has waited 4.0 s longer than promised:"
        " `musterd scaling` says what limits the crew"
    )


def test_many_unknown_kinds_are_one_line() -> None:
    (line,) = said(waiting=dict.fromkeys("abcde", 1))
    assert line.startswith("UNKNOWN_KIND no node knows a: 1 job, b: 1 job, c: 1 job and 2 more")


@pytest.mark.parametrize(
    "nodes",
    [
        [],
        [NODE],  # it has not yet said what it knows
        [knowing("report"), knowing("reprot")],
        [attrs.evolve(NODE, kinds=Kinds({}, whole=False))],
        [knowing("report", phase="draining")],
    ],
)
def test_a_kind_that_a_node_may_know_is_not_unknown(nodes: list[NodeRecord]) -> None:
    assert not situation(nodes=nodes, waiting={"reprot": 2}).unknown


def test_a_kind_whose_latest_jobs_failed_is_named_with_how_many() -> None:
    troubles = failing(KindEnds("mail", 18, 20), KindEnds("report", 1, 20), KindEnds("zip", 3, 3))
    (line,) = said(troubles=troubles)
    assert line == (
        "FAILING mail (18 of 20), zip (3 of 3): so many of the latest jobs failed;"
        " `musterd jobs --kind mail --state failed`, then `musterd job ID`"
    )


@pytest.mark.parametrize(
    ("failed", "ended", "fails"),
    [(2, 2, False), (3, 3, True), (3, 5, True), (3, 6, False), (11, 20, True), (10, 20, False)],
)
def test_a_kind_fails_if_most_of_its_latest_jobs_did(failed: int, ended: int, fails: bool) -> None:
    assert is_failing(KindEnds("mail", failed, ended)) is fails


def test_a_kind_that_cannot_run_says_where_and_why() -> None:
    kinds = Kinds({"thumbnail": KnownKind("No module named 'shop'"), "report": KnownKind()})
    (line,) = said(nodes=[attrs.evolve(NODE, kinds=kinds)])
    assert line == (
        "BROKEN_KIND thumbnail cannot run on north: No module named 'shop';"
        " see `musterd kinds --check`, fix it, then `musterd reload`"
    )
    two = Kinds({"a": KnownKind("x"), "b": KnownKind("y")})
    (line,) = said(nodes=[attrs.evolve(NODE, kinds=two)])
    assert "a cannot run on north, and 1 more kind: x" in line
    assert said(nodes=[attrs.evolve(NODE, kinds=two, silent_seconds=999.0)]) != [line]


def test_hostile_names_are_made_harmless() -> None:
    kinds = Kinds({HOSTILE: KnownKind(HOSTILE)})
    node = attrs.evolve(NODE, name=HOSTILE, kinds=kinds)
    for line in said(
        nodes=[node], waiting={f"{HOSTILE}x": 1}, troubles=failing(KindEnds(HOSTILE, 9, 9))
    ):
        assert line.isprintable()
