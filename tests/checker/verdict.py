"""What is found of a whole history."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from tests.checker.court import Court
from tests.checker.facts import Record, Violation
from tests.checker.history import read
from tests.checker.invariant import Invariant
from tests.checker.table import ALL
from tests.checker.world import World

Finding = Literal["ok", "violated", "nothing to check", "not checked"]


@dataclass(slots=True)
class Verdict:
    """What is found of one invariant. `count` may be more than there are `violations` told."""

    name: str
    says: str
    cases: int = 0
    count: int = 0
    by: list[str] = field(default_factory=list[str])  # the evidence it was checked by
    missing: list[str] = field(default_factory=list[str])  # what further ways would need
    violations: list[Violation] = field(default_factory=list[Violation])

    @property
    def finding(self) -> Finding:
        if self.count:
            return "violated"
        if not self.by:
            return "not checked"
        return "ok" if self.cases else "nothing to check"


@dataclass(slots=True)
class Judgement:
    verdicts: list[Verdict]
    ways: list[Invariant]  # that were taken
    lines: int

    @property
    def violations(self) -> list[Violation]:
        return [one for verdict in self.verdicts for one in verdict.violations]

    @property
    def violated(self) -> set[str]:
        return {verdict.name for verdict in self.verdicts if verdict.count}


def judge(lines: Iterable[str]) -> Judgement:
    """Reads a history once. Raises `NotAHistory`."""
    history = read(lines)
    _, header = next(history)
    world = World(header)
    invariants = [way(world) for way in ALL if not lacking(way, header)]
    count = 1

    def counted() -> Iterable[tuple[int, Record]]:
        nonlocal count
        for line, record in history:
            count += 1
            yield line, record

    Court(world, invariants).hear(counted())
    return Judgement(_verdicts(invariants, header), invariants, count)


def lacking(way: type[Invariant], header: Record) -> list[str]:
    """What this way needs and the history has not."""
    records = [f"no records of {name}" for name in sorted(way.needs - set(header["records"]))]
    return records + [f"no {name} in the header" for name in way.wants if not has(header, name)]


def has(header: Record, path: str) -> bool:
    table, _, name = path.rpartition(".")
    where: Record = header.get(table) or {} if table else header
    return where.get(name) is not None


def _verdicts(invariants: list[Invariant], header: Record) -> list[Verdict]:
    verdicts: dict[str, Verdict] = {}
    for way in ALL:
        verdict = verdicts.setdefault(way.name, Verdict(way.name, way.says))
        without = lacking(way, header)
        if without:
            verdict.missing.append(", ".join(without))
            continue
        verdict.by.append(" + ".join(sorted(way.needs)))
        one = next(one for one in invariants if type(one) is way)
        verdict.cases += one.cases
        verdict.count += one.count
        verdict.violations += one.found
    return list(verdicts.values())
