"""What was looked at, and what was found to break a rule. Pure."""

from __future__ import annotations

import attrs

from musterd.console.verify.rules import Rule

KEPT_MAX = 100  # violations of one rule that are told; the rest is counted


@attrs.frozen
class Violation:
    """`positions` are those of the events that tell it, the oldest first."""

    rule: Rule
    job_id: int | None
    positions: tuple[int, ...]
    story: str


@attrs.define(eq=False)
class Docket:
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
