"""Mutants by machine: a sample of small mistakes, another one for each seed, and what noticed each.
What was looked at and changes nothing that anybody could see is kept in judged.toml.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from pathlib import PurePosixPath
from typing import Any

import attrs
import tomli

from tests.mutants.changing import changes
from tests.mutants.mutant import HERE, ROOT, Edit
from tests.mutants.testing import try_tests
from tests.mutants.trying import Finding, try_histories, try_out

JUDGED = HERE / "judged.toml"
NEAREST = HERE / "nearest.toml"
FIRST_SEED = 1
SAMPLE_SEEDS = 40  # that are simulated for each, before its tests are run
SAMPLE_HISTORIES = 60  # of PostgreSQL, of what its tests do not notice
ENGINES = ("store/sqlite/", "store/postgres/")


@attrs.frozen
class Mistake:
    """`tests` are those nearest to it. `is_simulated`: the simulation runs the code in question."""

    what: str
    line: int
    edit: Edit
    tests: tuple[str, ...]

    @property
    def is_simulated(self) -> bool:
        return not self.edit.file.startswith("store/postgres/")

    @property
    def where(self) -> str:
        return f"{self.edit.file}:{self.line}"


@attrs.frozen
class Judged:
    """A mistake that nothing noticed, and why: it changes nothing, or what is done about it."""

    edit: Edit
    reason: str


def judged() -> list[Judged]:
    told = tomli.loads(JUDGED.read_text())["mistake"]
    return [Judged(Edit(one["file"], one["old"], one["new"]), one["reason"]) for one in told]


def sample(seed: int, count: int, below: str = "") -> list[Mistake]:
    """So many of all mistakes there could be in files whose names begin so, in random order."""
    every = [mistake for mistake in mistakes() if mistake.edit.file.startswith(below)]
    return random.Random(seed).sample(every, min(count, len(every)))


def noticed_by(mistake: Mistake, seeds: int) -> str | None:
    """The seed, or the test, that was the first, or else a history; None = nothing did. Raises
    NotRun.
    """
    if mistake.is_simulated:
        found = try_out((mistake.edit,), FIRST_SEED, seeds)
        if found.seed is not None:
            return f"seed {found.seed}: {_names(found)}"
    test = try_tests((mistake.edit,), mistake.tests).test
    if test is not None or mistake.is_simulated:
        return test
    found = try_histories((mistake.edit,), FIRST_SEED, SAMPLE_HISTORIES)
    return None if found.seed is None else f"history {found.seed}: {_names(found)}"


def _names(found: Finding) -> str:
    return ", ".join(sorted(found.violated))


def mistakes() -> Iterator[Mistake]:
    for file, tests in sorted(nearest().items()):
        text = (ROOT / file).read_text()
        for change in changes(file, text):
            line = text.count("\n", 0, change.start) + 1
            yield Mistake(change.what, line, change.edit(file, text), tests)


@cache
def nearest() -> dict[str, tuple[str, ...]]:
    """The tests that are nearest to each file in which mistakes are made."""
    told: dict[str, Any] = tomli.loads(NEAREST.read_text())
    engines: dict[str, list[str]] = told.pop("engines")
    found: dict[str, tuple[str, ...]] = {}
    for start in sorted(told, key=len):  # a longer one goes before
        for file in _files(start):
            found[file] = tuple(told[start])
    for folder in ENGINES:
        for file in _files(folder):
            names = engines.get(PurePosixPath(file).stem)
            if names is not None and "/schema/" not in file:
                found[file] = tuple(f"tests/{_below_tests(name)}.py" for name in names)
    return found


def _below_tests(name: str) -> str:
    return name if "/" in name else f"contract/{name}"


def _files(start: str) -> list[str]:
    folder = ROOT / (start if start.endswith("/") else PurePosixPath(start).parent)
    paths = [path for path in folder.rglob("*") if path.suffix in {".py", ".sql"}]
    names = (path.relative_to(ROOT).as_posix() for path in paths)
    return [name for name in names if name.startswith(start) and not name.endswith("__init__.py")]
