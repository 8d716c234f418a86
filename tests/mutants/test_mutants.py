"""The mutants are what they say: changes of text that is there, which leave something that can run.
None of these tests simulates anything, or runs a mutant.
"""

from __future__ import annotations

import ast

import pytest

from tests.checker.table import ALL
from tests.mutants.changing import changes
from tests.mutants.kept import kept, kept_tests, median
from tests.mutants.mutant import CANARY, ROOT, Mutant, for_simulation, for_tests, mutants
from tests.mutants.page import PAGE, rows, rows_by_test
from tests.mutants.sampling import judged, nearest, sample
from tests.mutants.tree import copied, start

MUTANTS = mutants()
SIMULATED, TESTED = for_simulation(MUTANTS), for_tests(MUTANTS)
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
def test_a_mutant_names_invariants_or_tests_that_there_are(mutant: Mutant) -> None:
    assert bool(mutant.fires) != bool(mutant.tests)
    assert mutant.fires <= KNOWN
    for test in mutant.tests:
        file, _, name = test.partition("::")
        assert f"def {name.partition('[')[0].rpartition('::')[2]}" in (ROOT / file).read_text()
    assert mutant.undone
    assert mutant.exposed_by


def test_there_are_enough_of_them_and_a_canary() -> None:
    assert len(SIMULATED) >= 30
    assert len(TESTED) >= 40
    assert CANARY in SIMULATED


def test_what_is_kept_is_of_mutants_that_there_are_and_by_what_they_should_fire() -> None:
    for name, caught in kept().items():
        assert set(caught.violated) & SIMULATED[name].fires, name
    for name, test in kept_tests().items():
        assert any(test.startswith(one.partition("[")[0]) for one in TESTED[name].tests), name


def test_all_have_been_caught_and_the_page_says_how() -> None:
    caught = kept()
    assert [name for name in SIMULATED if name not in caught] == [], "make mutants ARGS=--keep"
    assert median(caught.values()) <= 200
    assert "".join(rows(SIMULATED, caught)) in PAGE.read_text(), "make mutants ARGS=--keep"


def test_all_but_those_that_change_nothing_have_failed_a_test_and_the_page_says_which() -> None:
    noticed = kept_tests()
    wanted = [name for name, mutant in TESTED.items() if mutant.equivalent is None]
    assert [name for name in TESTED if name in noticed] == wanted, "make mutants ARGS=--keep"
    assert "".join(rows_by_test(TESTED, noticed)) in PAGE.read_text(), "make mutants ARGS=--keep"


def test_small_mistakes_change_text_that_stands_in_the_tree_once_and_leave_code() -> None:
    some = sample(1, 100)
    assert some == sample(1, 100)
    assert some != sample(2, 100)
    for mistake in some:
        changed = mistake.edit.apply((ROOT / mistake.edit.file).read_text())
        assert mistake.edit.new != mistake.edit.old
        if mistake.edit.file.endswith(".py"):
            ast.parse(changed)


def test_what_was_judged_stands_in_the_tree_and_says_why() -> None:
    for one in judged():
        one.edit.apply((ROOT / one.edit.file).read_text())
        assert one.reason


def test_the_tests_that_are_nearest_are_there() -> None:
    assert {file.partition("/")[0] for file in nearest()} == {"manager", "store", "workers"}
    missing = {test for tests in nearest().values() for test in tests if not (ROOT / test).exists()}
    assert missing == set()


@pytest.mark.parametrize(
    ("file", "text", "changed"),
    [
        ("a.py", "if a and b < c:\n    d()\n", {
            "if True and b < c:\n    d()\n",
            "if a and True:\n    d()\n",
            "if not (a and b < c):\n    d()\n",
            "if a and b <= c:\n    d()\n",
            "if a and b < c:\n    pass\n",
        }),
        ("a.py", "def f():\n    if a:\n        return\n    await b()\n    c.d = 1\n", {
            "def f():\n    if not (a):\n        return\n    await b()\n    c.d = 1\n",
            "def f():\n    if False:\n        return\n    await b()\n    c.d = 1\n",
            "def f():\n    if a:\n        return\n    pass\n    c.d = 1\n",
            "def f():\n    if a:\n        return\n    await b()\n    pass\n",
            "def f():\n    if a:\n        return\n    c.d = 1\n    await b()\n",
        }),
        ("a.sql", "select 1 from a -- and all\nwhere b = (c) and d is null for update\n", {
            "select 1 from a -- and all\nwhere true and d is null for update\n",
            "select 1 from a -- and all\nwhere b = (c) and true for update\n",
            "select 1 from a -- and all\nwhere b = (c) and d is not null for update\n",
            "select 1 from a -- and all\nwhere b = (c) and d is null \n",
        }),
    ],
)  # fmt: skip
def test_mistakes_that_a_machine_makes(file: str, text: str, changed: set[str]) -> None:
    assert {one.edit(file, text).apply(text) for one in changes(file, text)} == changed


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
