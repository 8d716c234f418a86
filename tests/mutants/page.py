"""docs/proving-mutants.md: its table is written from the mutants and from what caught them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.mutants.kept import Caught
from tests.mutants.mutant import ROOT, Mutant

PAGE = ROOT / "docs" / "proving-mutants.md"
HEAD = "| mutant | what holds in the product | exposed by | violates | first seed |\n"
LINE = "|---|---|---|---|---|\n"


def rows(mutants: Mapping[str, Mutant], caught: Mapping[str, Caught]) -> Iterator[str]:
    for name, mutant in mutants.items():
        found = caught.get(name)
        by = ", ".join(found.violated) if found else ""
        seed = found.seed if found else "not yet"
        yield f"| {name} | {mutant.undone} | {mutant.exposed_by} | {by} | {seed} |\n"


def write_table(mutants: Mapping[str, Mutant], caught: Mapping[str, Caught]) -> None:
    before, _, after = PAGE.read_text().partition(HEAD)
    rest = after.splitlines(keepends=True)
    while rest and rest[0].startswith("|"):
        rest.pop(0)
    PAGE.write_text("".join((before, HEAD, LINE, *rows(mutants, caught), *rest)))
