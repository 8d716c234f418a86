"""The rules that a log and a store must keep, and what was found to break one. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import attrs


class Rule(StrEnum):
    """Where one deed breaks several, it is told once, by the nearest."""

    LOG = "log"
    MADE = "made"
    EDGES = "edges"
    ONE_HAND = "one hand"
    ATTEMPTS = "attempts"
    HOLDER = "holder"
    ENDS = "ends"
    CANCELED = "canceled"
    DUE = "due"
    TARGET = "target"
    HALTED = "halted"
    DRAINING = "draining"
    PHASES = "phases"
    WEBHOOKS = "webhooks"
    DELETED = "deleted"
    TABLE = "table"
    COUNTS = "counts"


class RuleText(NamedTuple):
    """`says` what must hold; `advice`: what to do where it does not."""

    says: str
    advice: str


_BY_HAND = "has somebody changed rows by hand, or restored a part of the database?"
_REPORT = "keep the log (`musterd events --since 0 --json`) and report it: musterd is at fault"

TEXTS: dict[Rule, RuleText] = {
    Rule.LOG: RuleText(
        "positions follow each other: none is missing, doubled or out of turn",
        f"{_BY_HAND} A file must hold the whole log: write it without --type, --job, --kind",
    ),
    Rule.MADE: RuleText(
        "what is told of is a job that was made once and is still there",
        f"{_BY_HAND} Jobs must be deleted by retention, never by SQL",
    ),
    Rule.EDGES: RuleText("a job goes only from a state to one that may follow it", _REPORT),
    Rule.ONE_HAND: RuleText(
        "a job is in one hand at a time",
        "stop all nodes but one until it is known why; the work of that job may have been done"
        f" twice; {_REPORT}",
    ),
    Rule.ATTEMPTS: RuleText("attempts are counted one by one", _BY_HAND),
    Rule.HOLDER: RuleText(
        "of an attempt only its holder tells, while it is in hand",
        f"somebody writes without the token of the claim; {_REPORT}",
    ),
    Rule.ENDS: RuleText("a job ends once, and stays as it ended", _BY_HAND),
    Rule.CANCELED: RuleText("a canceled job does not start", _BY_HAND),
    Rule.DUE: RuleText(
        "no job is tried again before it is due",
        f"{_BY_HAND} Or the store's clock was set back: `musterd doctor`",
    ),
    Rule.TARGET: RuleText(
        "who has a target has it alone, from its claim to its end",
        "jobs of this target may have run at once: look at what they did",
    ),
    Rule.HALTED: RuleText(
        "of a target that is halted no further job is claimed",
        "jobs of this target may have run out of order: look at what they did",
    ),
    Rule.DRAINING: RuleText("a node that drains claims nothing more", _REPORT),
    Rule.PHASES: RuleText(
        "a phase that has finished is not run again",
        "were the phases of this kind changed, and changed back, while the job waited? Then all"
        " is well",
    ),
    Rule.WEBHOOKS: RuleText("of a job that has not ended no end is told to anybody", _REPORT),
    Rule.DELETED: RuleText(
        "only a job that has ended goes stale, and only a stale one is deleted; none that halts"
        " its target",
        _BY_HAND,
    ),
    Rule.TABLE: RuleText(
        "the table has each job as the log tells it",
        f"{_BY_HAND} `musterd job ID` shows what the table has, `musterd events --job ID` what"
        " was told",
    ),
    Rule.COUNTS: RuleText(
        "the counts are those of the table, and those that the log tells",
        f"{_BY_HAND} The counts feed `musterd status`, metrics and scaling",
    ),
}


KEPT_MAX = 100  # violations of one rule that are told; the rest is counted


@attrs.frozen
class Violation:
    """`positions` are those of the events that tell it, the oldest first."""

    rule: Rule
    job_id: int | None
    positions: tuple[int, ...]
    story: str


@attrs.define(eq=False)
class Findings:
    """`unchecked`: why a rule could not be looked at, where that is known."""

    cases: dict[Rule, int] = attrs.field(factory=lambda: dict.fromkeys(Rule, 0))
    violated: dict[Rule, int] = attrs.field(factory=dict[Rule, int])
    violations: list[Violation] = attrs.field(factory=list[Violation])
    unchecked: dict[Rule, str] = attrs.field(factory=dict[Rule, str])

    @property
    def holds(self) -> bool:
        return not self.violated

    def accuse(
        self, rule: Rule, job_id: int | None, positions: tuple[int | None, ...], story: str
    ) -> None:
        count = self.violated.get(rule, 0)
        self.violated[rule] = count + 1
        if count < KEPT_MAX:
            told = tuple(dict.fromkeys(one for one in positions if one))
            self.violations.append(Violation(rule, job_id, told, story))

    def reason(self, rule: Rule) -> str | None:
        """Why it was not checked; None = it was."""
        if self.finding(rule) != "not checked":
            return None
        return self.unchecked.get(rule, "nothing of the kind was told")

    def finding(self, rule: Rule) -> str:
        """`ok`, `violated` or `not checked`."""
        if rule in self.violated:
            return "violated"
        return "ok" if self.cases[rule] and rule not in self.unchecked else "not checked"
