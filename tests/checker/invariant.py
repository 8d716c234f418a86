"""What an invariant is: it is told of each fact in turn, and accuses."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tests.checker.facts import Claim, End, Job, Op, Record, Violation
from tests.checker.seen import Seen
from tests.checker.statements import STATEMENTS
from tests.checker.world import World

KEPT_MAX = 100  # violations that are told of one invariant; all are counted


def noted(kind: type) -> Any:
    """A field for what an invariant notes as it reads: empty at first."""
    return field(default_factory=kind, init=False)


@dataclass(eq=False)
class Invariant:
    """One way to check one invariant, by the evidence that it `needs`; `wants` are fields of the
    header without which there is nothing to compare with. Methods are called in the order of the
    history, each before `world` knows of the fact.
    """

    name: ClassVar[str]
    says: ClassVar[str]
    needs: ClassVar[frozenset[str]]
    wants: ClassVar[tuple[str, ...]] = ()

    world: World
    cases: int = field(default=0, init=False)
    count: int = field(default=0, init=False)
    found: list[Violation] = field(default_factory=list[Violation], init=False)

    def __init_subclass__(
        cls, *, name: str, needs: Collection[str] = (), wants: tuple[str, ...] = ()
    ) -> None:
        """A subclass that names no evidence needs that of its base."""
        cls.name, cls.says = name, STATEMENTS[name]
        cls.needs = frozenset(needs) or cls.needs
        cls.wants = wants or cls.wants

    def accuse(self, job: int | None, lines: tuple[int, ...], story: str) -> None:
        self.count += 1
        if len(self.found) < KEPT_MAX:
            shown = tuple(sorted({line for line in lines if line}))
            self.found.append(Violation(self.name, job, shown, story))

    # operations: asked for; answered, or given up without an answer; carried out

    def asked(self, op: Op) -> None: ...
    def answered(self, op: Op, status: str) -> None: ...
    def unheard(self, op: Op) -> None: ...
    def made(self, op: Op, job: Job) -> None: ...
    def claimed(self, claim: Claim, job: Job) -> None: ...
    def wrote(self, op: Op, job: Job, claim: Claim | None) -> None:
        """A write under a token that the store took: renew, start, progress, phase, settle."""

    def ended(self, claim: Claim | None, end: End, job: Job) -> None:
        """An attempt's end, by its holder or by reaping. No claim = one that nobody heard of."""

    def controlled(self, op: Op, job: Job) -> None: ...
    def deleted(self, op: Op, job: Job) -> None: ...
    def duty(self, op: Op) -> None: ...
    def message(self, op: Op) -> None: ...
    def fired(self, op: Op) -> None: ...

    # other lines

    def event(self, line: int, record: Record, seen: Seen) -> None:
        """`seen`: the job's story so far; of an event of no job, an empty one."""

    def edge(self, line: int, record: Record) -> None: ...
    def act(self, line: int, record: Record) -> None: ...
    def begin(self, line: int, record: Record) -> None: ...
    def effect(self, line: int, record: Record) -> None: ...
    def told(self, line: int, record: Record) -> None: ...
    def stopped(self, line: int, record: Record) -> None: ...
    def fault(self, line: int, record: Record) -> None: ...
    def process(self, line: int, record: Record) -> None: ...
    def crew(self, line: int, record: Record) -> None: ...
    def delivery(self, line: int, record: Record) -> None: ...
    def final(self, line: int, record: Record) -> None: ...
    def final_job(self, line: int, record: Record) -> None: ...
    def final_message(self, line: int, record: Record) -> None: ...
    def final_duty(self, line: int, record: Record) -> None: ...
    def final_schedule(self, line: int, record: Record) -> None: ...
    def final_counts(self, line: int, record: Record) -> None: ...

    def close(self) -> None:
        """The history has ended."""
