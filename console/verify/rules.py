"""The rules that a log and a store must keep, and what was found to break one. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import attrs


class Rule(StrEnum):
    """If one fault breaks several rules, it is reported once, by the nearest."""

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


_BY_HAND = "were rows changed by hand, or part of the database restored?"
_REPORT = "save the log (`musterd events --since 0 --json`) and report it: a bug in musterd"

TEXTS: dict[Rule, RuleText] = {
    Rule.LOG: RuleText(
        "positions are consecutive: none is missing, repeated or out of order",
        f"{_BY_HAND} A file must hold the whole log: write it without --type, --job, --kind",
    ),
    Rule.MADE: RuleText(
        "every event is about a job that was made once and still exists",
        f"{_BY_HAND} Jobs must be deleted by retention, never by SQL",
    ),
    Rule.EDGES: RuleText("a job only changes to a state that may follow its last one", _REPORT),
    Rule.ONE_HAND: RuleText(
        "one worker at a time holds a job",
        "stop all nodes but one until it is known why; the work of that job may have been done"
        f" twice; {_REPORT}",
    ),
    Rule.ATTEMPTS: RuleText("attempts are counted one by one", _BY_HAND),
    Rule.HOLDER: RuleText(
        "only the holder of an attempt reports on it, while it holds it",
        f"something writes without the claim's token; {_REPORT}",
    ),
    Rule.ENDS: RuleText("a job ends once, and stays as it ended", _BY_HAND),
    Rule.CANCELED: RuleText("a canceled job does not start", _BY_HAND),
    Rule.DUE: RuleText(
        "no job is retried before it is due",
        f"{_BY_HAND} Or the store's clock was set back: `musterd doctor`",
    ),
    Rule.TARGET: RuleText(
        "a job has its target to itself, from its claim to its end",
        "jobs of this target may have run at once: look at what they did",
    ),
    Rule.HALTED: RuleText(
        "no further job of a halted target is claimed",
        "jobs of this target may have run out of order: look at what they did",
    ),
    Rule.DRAINING: RuleText("a draining node claims nothing more", _REPORT),
    Rule.PHASES: RuleText(
        "a finished phase is not run again",
        "were the phases of this kind changed, and changed back, while the job waited? Then all"
        " is well",
    ),
    Rule.WEBHOOKS: RuleText("no webhook reports the end of an unfinished job", _REPORT),
    Rule.DELETED: RuleText(
        "only finished jobs go stale, only stale ones are deleted, and none that halts its target",
        _BY_HAND,
    ),
    Rule.TABLE: RuleText(
        "the table has each job as the log describes it",
        f"{_BY_HAND} `musterd job ID` shows what the table has, `musterd events --job ID` what"
        " the log has",
    ),
    Rule.COUNTS: RuleText(
        "the counts match the table and the log",
        f"{_BY_HAND} The counts feed `musterd status`, metrics and scaling",
    ),
}


KEPT_MAX = 100  # violations per rule that are listed; the rest are counted


@attrs.frozen
class Violation:
    """`positions` are those of the events involved, oldest first."""

    rule: Rule
    job_id: int | None
    positions: tuple[int, ...]
    story: str


@attrs.define(eq=False)
class Findings:
    """`unchecked`: why a rule could not be checked, if that is known."""

    cases: dict[Rule, int] = attrs.field(factory=lambda: dict.fromkeys(Rule, 0))
    violated: dict[Rule, int] = attrs.field(factory=dict[Rule, int])
    violations: list[Violation] = attrs.field(factory=list[Violation])
    unchecked: dict[Rule, str] = attrs.field(factory=dict[Rule, str])

    @property
    def holds(self) -> bool:
        return not self.violated

    def add(
        self, rule: Rule, job_id: int | None, positions: tuple[int | None, ...], story: str
    ) -> None:
        count = self.violated.get(rule, 0)
        self.violated[rule] = count + 1
        if count < KEPT_MAX:
            found = tuple(dict.fromkeys(one for one in positions if one))
            self.violations.append(Violation(rule, job_id, found, story))

    def reason(self, rule: Rule) -> str | None:
        """Why it was not checked; None = it was."""
        if self.finding(rule) != "not checked":
            return None
        return self.unchecked.get(rule, "the log has no such event")

    def finding(self, rule: Rule) -> str:
        """`ok`, `violated` or `not checked`."""
        if rule in self.violated:
            return "violated"
        return "ok" if self.cases[rule] and rule not in self.unchecked else "not checked"
