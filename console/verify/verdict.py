"""What came of it, for people and for programs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from musterd.console.verify.docket import Violation
from musterd.console.verify.judge import Judge
from musterd.console.verify.rules import TEXTS, Rule
from musterd.store.words import count_text, one_line, plural

FINDING_WIDTH, NAME_WIDTH, COUNT_WIDTH = 11, 9, 11


def verdict_object(judge: Judge, tenant: str | None) -> dict[str, object]:
    docket = judge.docket
    return {
        "holds": docket.holds,
        "tenant": tenant,
        "events": judge.looked_at,
        "first": judge.first,
        "last": judge.position,
        "rules": [_rule_object(judge, rule) for rule in Rule],
        "violations": [_violation_object(one) for one in docket.violations],
    }


def _rule_object(judge: Judge, rule: Rule) -> Mapping[str, Any]:
    docket = judge.docket
    return {
        "rule": rule.value,
        "says": TEXTS[rule].says,
        "finding": docket.finding(rule),
        "cases": docket.cases[rule],
        "violations": docket.violated.get(rule, 0),
        "reason": docket.reason(rule),
    }


def _violation_object(one: Violation) -> Mapping[str, Any]:
    return {
        "rule": one.rule.value,
        "job_id": one.job_id,
        "positions": list(one.positions),
        "story": one.story,
        "advice": TEXTS[one.rule].advice,
    }


def verdict_lines(judge: Judge) -> list[str]:
    """The first says whether all holds."""
    docket = judge.docket
    seen = f"{plural(judge.looked_at, 'event')}"
    if judge.looked_at:
        seen += f", positions {count_text(judge.first)} to {count_text(judge.position)}"
    checked = sum(docket.finding(rule) == "ok" for rule in Rule)
    if docket.holds:
        head = f"all holds: {plural(checked, 'rule')} ok ({seen})"
    else:
        broken = plural(sum(docket.violated.values()), "violation")
        head = f"NOT ALL HOLDS: {broken} of {plural(len(docket.violated), 'rule')} ({seen})"
    lines = [head, "", *(_rule_line(judge, rule) for rule in Rule)]
    for one in docket.violations:
        lines += ["", *_violation_lines(one)]
    untold = sum(docket.violated.values()) - len(docket.violations)
    return [*lines, "", f"and {plural(untold, 'further violation')}"] if untold else lines


def _rule_line(judge: Judge, rule: Rule) -> str:
    docket = judge.docket
    finding = docket.finding(rule)
    shown = finding.upper() if finding == "violated" else finding
    cases = count_text(docket.cases[rule])
    says = docket.reason(rule) or TEXTS[rule].says
    return f"  {shown:<{FINDING_WIDTH}}  {rule:<{NAME_WIDTH}}  {cases:>{COUNT_WIDTH}}  {says}"


def _violation_lines(one: Violation) -> list[str]:
    about = [f"job {one.job_id}"] if one.job_id is not None else []
    places = " and ".join(count_text(place) for place in one.positions)
    about += [f"event{'s'[: len(one.positions) > 1]} {places}"] if places else []
    return [
        f"{one.rule}: {', '.join(about)}".rstrip(": "),
        f"  {one_line(one.story)}",
        f"  do: {TEXTS[one.rule].advice}",
    ]
