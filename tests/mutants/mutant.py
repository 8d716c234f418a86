"""What a mutant is: a decision of the product undone, as an exact change of its text. Data only;
the mutants themselves stand in data/*.toml.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import tomli

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DATA = HERE / "data"
# The one that every run of the tests makes: were it not noticed, the alarm itself would be dead.
CANARY = "token-of-the-node"


@attrs.frozen
class Edit:
    """`old` stands in `file` exactly once, and becomes `new`."""

    file: str
    old: str
    new: str

    def apply(self, text: str) -> str:
        found = text.count(self.old)
        if found != 1:
            raise ValueError(f"{self.file}: found {found} times, wanted once: {self.old!r}")
        return text.replace(self.old, self.new)


@attrs.frozen
class Mutant:
    """`undone` says what the product does otherwise, `exposed_by` what has to happen for it to
    matter. It is for the simulation, or for tests: of the invariants `fires` one at least must be
    violated, or a test that `tests` select must fail. `equivalent` says why no test can.
    """

    name: str
    undone: str
    exposed_by: str
    edits: tuple[Edit, ...]
    fires: frozenset[str] = frozenset()
    tests: tuple[str, ...] = ()
    equivalent: str | None = None


def mutants() -> dict[str, Mutant]:
    """All of them by name, in the order of their files."""
    found: dict[str, Mutant] = {}
    for path in sorted(DATA.glob("*.toml")):
        for name, told in tomli.loads(path.read_text()).items():
            if name in found:
                raise ValueError(f"{path.name}: there are two mutants {name}")
            found[name] = _mutant(name, told)
    return found


def for_simulation(known: Mapping[str, Mutant]) -> dict[str, Mutant]:
    return {name: mutant for name, mutant in known.items() if mutant.fires}


def for_tests(known: Mapping[str, Mutant]) -> dict[str, Mutant]:
    return {name: mutant for name, mutant in known.items() if not mutant.fires}


def _mutant(name: str, told: dict[str, Any]) -> Mutant:
    return Mutant(
        name,
        told["undone"],
        told["exposed_by"],
        tuple(Edit(**edit) for edit in told["edit"]),
        frozenset(told.get("fires", ())),
        tuple(told.get("tests", ())),
        told.get("equivalent"),
    )
