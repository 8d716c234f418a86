"""docs/proving-mutants.md: its tables are written from the mutants and from what caught them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tests.mutants.kept import Caught, kept, kept_tests
from tests.mutants.mutant import ROOT, Mutant, for_simulation, for_tests

PAGE = ROOT / "docs" / "proving-mutants.md"
HEAD = (
    "| mutant | what holds in the product | exposed by | violates | first seed |\n"
    "|---|---|---|---|---|\n"
)
TESTS_HEAD = "| mutant | what holds in the product | exposed by | noticed by |\n|---|---|---|---|\n"


def rows(mutants: Mapping[str, Mutant], caught: Mapping[str, Caught]) -> Iterator[str]:
    for name, mutant in mutants.items():
        found = caught.get(name)
        by = ", ".join(found.violated) if found else ""
        seed = found.seed if found else "not yet"
        yield f"| {name} | {mutant.undone} | {mutant.exposed_by} | {by} | {seed} |\n"


def rows_by_test(mutants: Mapping[str, Mutant], noticed: Mapping[str, str]) -> Iterator[str]:
    for name, mutant in mutants.items():
        by = f"nothing: {mutant.equivalent}" if mutant.equivalent else shown(noticed.get(name))
        yield f"| {name} | {mutant.undone} | {mutant.exposed_by} | {by} |\n"


def shown(test: str | None) -> str:
    """Its file and its name, without folders."""
    if test is None:
        return "not yet"
    file, _, name = test.partition("::")
    return f"`{file.rpartition('/')[2].removesuffix('.py')}`: {name}"


def write_tables(known: Mapping[str, Mutant]) -> None:
    page = PAGE.read_text()
    page = with_rows(page, HEAD, rows(for_simulation(known), kept()))
    PAGE.write_text(with_rows(page, TESTS_HEAD, rows_by_test(for_tests(known), kept_tests())))


def with_rows(page: str, head: str, table: Iterable[str]) -> str:
    before, found, after = page.partition(head)
    assert found, head
    rest = after.splitlines(keepends=True)
    while rest and rest[0].startswith("|"):
        rest.pop(0)
    return "".join((before, head, *table, *rest))
