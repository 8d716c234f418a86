"""The alarm works: a few mistakes are made for real, and the simulation, or a test, notices each of
them. All the others are for `make mutants`.
"""

from __future__ import annotations

import pytest

from tests.mutants.kept import kept_tests
from tests.mutants.mutant import CANARY, mutants
from tests.mutants.testing import try_tests
from tests.mutants.trying import try_out

SEEDS = 60  # many times what each of these needs
# Of different sorts: a claim, a write, a lease, the budget of attempts, a duty.
HANDFUL = (
    "claims-before-due",
    "renewal-without-guard",
    "reaper-looks-at-no-lease",
    "fails-an-attempt-early",
    "duty-taken-from-its-holder",
)
# A fence, a cut, the reaper, and what looks at them all.
OF_POSTGRES = (
    "pg-settles-without-token",
    "pg-rest-of-a-stretch-lost",
    "pg-reaped-stands-nowhere",
    "pg-check-misses-the-lost",
)


@pytest.mark.parametrize("name", [CANARY, *HANDFUL])
def test_a_mistake_is_noticed(name: str) -> None:
    mutant = mutants()[name]
    found = try_out(mutant.edits, 1, SEEDS)
    assert found.seed is not None, f"{name}: no seed up to {SEEDS} noticed it: is the alarm dead?"
    assert found.catches(mutant), f"seed {found.seed}: {sorted(found.violated)}"


@pytest.mark.parametrize("name", OF_POSTGRES)
def test_a_mistake_in_postgres_is_noticed(name: str) -> None:
    test = kept_tests()[name]
    assert try_tests(mutants()[name].edits, [test]).test is not None, f"{test} did not notice it"


def test_nothing_is_noticed_where_there_is_no_mistake() -> None:
    found = try_out((), 1, 5)
    assert found.seeds == 5
    assert not found.violated
