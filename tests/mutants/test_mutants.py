"""The mutants are what they say: changes of text that is there, which leave something that can run.
None of these tests simulates anything.
"""

from __future__ import annotations

import ast

import pytest

from tests.checker.table import ALL
from tests.mutants.kept import kept, median
from tests.mutants.mutant import CANARY, ROOT, Mutant, mutants
from tests.mutants.page import PAGE, rows
from tests.mutants.tree import copied, start

MUTANTS = mutants()
KNOWN = {invariant.name for invariant in ALL} | {"crash", "stuck"}

each_mutant = pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)


@each_mutant
def test_a_mutant_changes_text_that_stands_in_the_tree_once(mutant: Mutant) -> None:
    for edit in mutant.edits:
        changed = edit.apply((ROOT / edit.file).read_text())
        assert edit.new != edit.old
        if edit.file.endswith(".py"):
            ast.parse(changed)


@each_mutant
def test_a_mutant_names_invariants_that_there_are(mutant: Mutant) -> None:
    assert mutant.fires
    assert mutant.fires <= KNOWN
    assert mutant.undone
    assert mutant.exposed_by


def test_there_are_enough_of_them_and_a_canary() -> None:
    assert len(MUTANTS) >= 30
    assert CANARY in MUTANTS


def test_what_is_kept_is_of_mutants_that_there_are_and_by_what_they_should_fire() -> None:
    for name, caught in kept().items():
        assert set(caught.violated) & MUTANTS[name].fires, name


def test_all_have_been_caught_and_the_page_says_how() -> None:
    caught = kept()
    assert [name for name in MUTANTS if name not in caught] == [], "make mutants ARGS=--keep"
    assert median(caught.values()) <= 200
    assert "".join(rows(MUTANTS, caught)) in PAGE.read_text(), "make mutants ARGS=--keep"


def test_a_copy_runs_its_own_code_and_not_what_is_installed() -> None:
    mutant = MUTANTS[CANARY]
    (edit,) = mutant.edits
    module = f"musterd.{edit.file.removesuffix('.py').replace('/', '.')}"
    with copied(mutant.edits) as tree:
        with start(tree, "-c", f"import {module} as it; print(it.__file__)") as process:
            said, _ = process.communicate(timeout=60)
        assert said.strip() == str(tree / "musterd" / edit.file)
        assert (tree / "musterd" / edit.file).resolve().read_text().count(edit.new) == 1
    assert edit.new not in (ROOT / edit.file).read_text()
