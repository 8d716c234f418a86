"""The rules for logs and stores, and what breaks them. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

import attrs

_BY_HAND = "were rows changed by hand, or part of the database restored?"
_REPORT = "save the log (`musterd events --since 0 --json`) and report it: a bug in musterd"


class Rule(StrEnum):
    """A fault that breaks several rules is reported once, by the nearest. `says` what must hold;
    `advice`: what to do if it does not.
    """

    says: str
    advice: str

    def __new__(cls, name: str, says: str, advice: str) -> Self:
        rule = str.__new__(cls, name)
        rule._value_, rule.says, rule.advice = name, says, advice
        return rule

    LOG = (
        "log",
        "positions are consecutive: none is missing, repeated or out of order",
        f"{_BY_HAND} A file must hold the whole log: write it without --type, --job, --kind",
    )
    MADE = (
        "made",
        "every event is about a job that was made once and still exists",
        f"{_BY_HAND} Jobs must be deleted by retention, never by SQL",
    )
    EDGES = "edges", "a job only changes to a state that may follow its last one", _REPORT
    ONE_HAND = (
        "one hand",
        "one worker at a time holds a job",
        (
            "stop all nodes but one until it is known why; the work of that job may have been done"
            f" twice; {_REPORT}"
        ),
    )
    ATTEMPTS = "attempts", "attempts are counted one by one", _BY_HAND
    HOLDER = (
        "holder",
        "only the holder of an attempt reports on it, while it holds it",
        f"something writes without the claim's token; {_REPORT}",
    )
    ENDS = "ends", "a job ends once, and stays as it ended", _BY_HAND
    CANCELED = "canceled", "a canceled job does not start", _BY_HAND
    DUE = (
        "due",
        "no job is retried before it is due",
        f"{_BY_HAND} Or the store's clock was set back: `musterd doctor`",
    )
    TARGET = (
        "target",
        "a job has its target to itself, from its claim to its end",
        "jobs of this target may have run at once: look at what they did",
    )
    HALTED = (
        "halted",
        "no further job of a halted target is claimed",
        "jobs of this target may have run out of order: look at what they did",
    )
    DRAINING = "draining", "a draining node claims nothing more", _REPORT
    PHASES = (
        "phases",
        "a finished phase is not run again",
        (
            "were the phases of this kind changed, and changed back, while the job waited? Then all"
            " is well"
        ),
    )
    WEBHOOKS = "webhooks", "no webhook reports the end of an unfinished job", _REPORT
    DELETED = (
        "deleted",
        "only finished jobs go stale, only stale ones are deleted, and none that halts its target",
        _BY_HAND,
    )
    TABLE = (
        "table",
        "the table has each job as the log describes it",
        (
            f"{_BY_HAND} `musterd job ID` shows what the table has, `musterd events --job ID` what"
            " the log has"
        ),
    )
    COUNTS = (
        "counts",
        "the counts match the table and the log",
        f"{_BY_HAND} The counts feed `musterd status`, metrics and scaling",
    )
    PLACES = (
        "places",
        "each job stands where it should, and in one place alone",
        f"{_BY_HAND} A job that stands nowhere is never claimed; {_REPORT}",
    )


KEPT_MAX = 100  # violations per rule that are listed; the rest are counted


@attrs.frozen
class Violation:
    """`positions` of the events involved, oldest first."""

    rule: Rule
    job_id: int | None
    positions: tuple[int, ...]
    story: str


@attrs.define(eq=False)
class Findings:
    """`unchecked`: why a rule could not be checked, if known."""

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
