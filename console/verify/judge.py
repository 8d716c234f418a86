"""Judges a log of events in batches and gives the verdict: on each job, on targets, which have one
job at a time, and on nodes, which claim nothing while they drain. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import attrs

from musterd.console.verify.rules import (
    Change,
    Findings,
    Life,
    Rule,
    Violation,
    apply_event,
    packed,
    packed_attempt,
    packed_state,
    unpacked,
)
from musterd.store.events import Event
from musterd.store.lifecycle import JobState
from musterd.store.words import count_text, one_line, plural


class Judge:
    """Takes the log in order. Never reports what missing events could explain."""

    def __init__(self) -> None:
        self.findings = Findings()
        self.lives = Lives(self.findings)
        self.first = self.position = 0  # the first and the last one judged
        self.looked_at = 0

    def start_behind(self, position: int) -> None:
        """Earlier events are not shown, or no longer exist."""
        if position > self.position:
            self.position = position
            self.lives.forget()

    def take(self, events: Iterable[Event]) -> None:
        take = self.lives.take
        for event in events:
            if event.id != self.position + 1 and not self._is_further(event):
                continue
            self.position = event.id
            self.looked_at += 1
            take(event)
        if not self.first and self.looked_at:
            self.first = self.position - self.looked_at + 1
        self.findings.cases[Rule.LOG] = self.looked_at

    def _is_further(self, event: Event) -> bool:
        """Whether an event that does not follow the previous one is further on in the log."""
        before = self.position
        if event.id <= before:
            story = f"position {event.id} comes behind position {before}"
            self.findings.add(Rule.LOG, event.job_id, (before, event.id), story)
            return False
        if self.looked_at:
            until = "" if event.id == before + 2 else f" to {event.id - 1}"
            story = f"position {before + 1}{until} is missing"
            self.findings.add(Rule.LOG, None, (before, event.id), story)
        else:
            self.first = event.id
        self.lives.forget()
        return True


RESTS = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED})
_SAYS_NOTHING = frozenset({"job.webhook_delivered", "job.webhook_failed"})
# None: there is no such job; the log does not say
StateAndAttempt = tuple[JobState | None, int | None]


class Lives:
    """Living jobs as objects, resting ones as numbers, deleted ones not at all."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._targets, self._nodes = Targets(findings), Nodes(findings)
        self._living: dict[int, Life] = {}
        self._resting: dict[int, int] = {}
        self._watched: dict[int, list[StateAndAttempt]] | None = None
        self.is_whole = True  # the log has the making of every job

    def take(self, event: Event) -> None:
        job_id = event.job_id
        if job_id is None:
            self._nodes.take(event)
            return
        if self._watched is not None:
            self._watched.setdefault(job_id, [self.seen(job_id)])
        life = self._living.get(job_id) or self._found(event, job_id)
        if life is not None:
            step = apply_event(event, life, self._findings)
            if event.target is not None:
                life.target = event.target
            self._apply(event, life, job_id, step)
            if self._watched is not None:
                self._watched[job_id].append(self.seen(job_id))

    def forget(self) -> None:
        """Events are missing: what is known may no longer be true."""
        self._living.clear()
        self._resting.clear()
        self._targets = Targets(self._findings)
        self._nodes.forget()
        self.is_whole = False

    def seen(self, job_id: int) -> StateAndAttempt:
        """A job's state and attempt according to the log."""
        life = self._living.get(job_id)
        if life is not None:
            return life.state, life.attempt
        number = self._resting.get(job_id)
        return (None, 0) if number is None else (packed_state(number), packed_attempt(number))

    def watch(self) -> Mapping[int, Sequence[StateAndAttempt]]:
        """Records all that jobs become, until this is called again."""
        self._watched = {}
        return self._watched

    def unwatch(self) -> None:
        self._watched = None

    def ids(self) -> list[int]:
        return sorted((*self._living, *self._resting))

    def position_of(self, job_id: int) -> int | None:
        life = self._living.get(job_id)
        if life is not None:
            return life.last
        number = self._resting.get(job_id)
        return None if number is None else unpacked(number).last

    def totals(self) -> Counter[JobState]:
        found = Counter(life.state for life in self._living.values() if life.state is not None)
        found.update(packed_state(number) for number in self._resting.values())
        return found

    def _found(self, event: Event, job_id: int) -> Life | None:
        """The life that rests or begins; None = there is nothing more to say of it."""
        number = self._resting.get(job_id)
        if number is not None:
            life = unpacked(number)
        elif event.type == "job.enqueued":
            life = Life(None, 0, event.id)
            life.is_known = True
            self._findings.cases[Rule.MADE] += 1
        elif event.type in _SAYS_NOTHING:
            return None  # messages may outlive their job
        else:
            life = self._stranger(event, job_id)
        self._living[job_id] = life
        return life

    def _stranger(self, event: Event, job_id: int) -> Life:
        if self.is_whole:
            why = "which was never made, or was deleted"
            story = f"{event.type} was logged for job {job_id}, {why}"
            self._findings.add(Rule.MADE, job_id, (event.id,), story)
        life = Life(None, None, event.id)
        life.has_ended = life.is_stale = True  # for all one knows
        return life

    def _apply(self, event: Event, life: Life, job_id: int, step: Change) -> None:
        if step is Change.DELETED:
            life.is_cleared = True
            if life.target is not None:
                self._targets.changed(event, life.target, life, job_id)
            del self._living[job_id]
            self._resting.pop(job_id, None)
            return
        if step is Change.CLAIMED:
            if life.node is not None:
                self._nodes.claimed(event, life.node)
            if life.target is not None:
                self._targets.claimed(event, life.target, job_id, is_known=life.is_known)
                life.is_known = True
        elif life.target is not None and step is Change.CHANGED:
            self._targets.changed(event, life.target, life, job_id)
        if life.state not in RESTS:
            self._resting.pop(job_id, None)
        elif (number := packed(life)) is not None:
            self._resting[job_id] = number
            del self._living[job_id]


# A halt is logged before the target is locked, so a claim on its way may be logged after it. No
# claim waits for a lock for longer than this.
OVERLAP = timedelta(seconds=10)
_LETS_GO = frozenset({JobState.SUCCEEDED, JobState.CANCELED})


@attrs.define(eq=False)
class _TargetState:
    holder: int | None = None
    claimed: int = 0  # the position of the claim
    halting: dict[int, tuple[int, datetime]] = attrs.field(factory=dict[int, tuple[int, datetime]])


class Targets:
    """Remembers targets that a job holds or halts."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._places: dict[str, _TargetState] = {}

    def claimed(self, event: Event, target: str, job_id: int, *, is_known: bool) -> None:
        """`is_known`: had the job held the target before, the log would say so."""
        place = self._places.setdefault(target, _TargetState())
        self._findings.cases[Rule.TARGET] += 1
        if place.holder not in (None, job_id):
            story = (
                f"job {job_id} of target {target!r} was claimed although job {place.holder} had"
                " the target and had not ended"
            )
            self._findings.add(Rule.TARGET, job_id, (place.claimed, event.id), story)
        elif place.holder is None and is_known:
            self._judge_halt(event, target, place, job_id)
        place.holder, place.claimed = job_id, event.id
        place.halting.pop(job_id, None)

    def changed(self, event: Event, target: str, life: Life, job_id: int) -> None:
        """After any other event that changed a job."""
        place = self._places.get(target)
        if life.halts:
            place = place or self._places.setdefault(target, _TargetState())
            place.halting.setdefault(job_id, (event.id, event.at))
            return
        if place is None:
            return
        place.halting.pop(job_id, None)
        if place.holder == job_id and (life.state in _LETS_GO or life.is_cleared):
            place.holder = None
        if place.holder is None and not place.halting:
            del self._places[target]

    def _judge_halt(self, event: Event, target: str, place: _TargetState, job_id: int) -> None:
        self._findings.cases[Rule.HALTED] += 1
        for other, (position, at) in place.halting.items():
            if other != job_id and event.at - at > OVERLAP:
                story = f"job {job_id} of target {target!r} was claimed while job {other} halted it"
                self._findings.add(Rule.HALTED, job_id, (position, event.id), story)
                return


@attrs.define(eq=False)
class _NodeRuns:
    """Daemons of one name: one may start while another drains."""

    count: int = 0
    draining: list[tuple[int, datetime]] = attrs.field(factory=list[tuple[int, datetime]])


class Nodes:
    """Judges only while the log has the start of every node, so that their number is known. A
    killed node logs no end and counts as running, so that nothing is reported wrongly.
    """

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._runs: dict[str, _NodeRuns] = {}
        self._is_whole = True

    def take(self, event: Event) -> None:
        node = event.data.get("node")
        if not isinstance(node, str) or not self._is_whole:
            return
        runs = self._runs.get(node)
        if event.type == "node.started":
            runs = runs or self._runs.setdefault(node, _NodeRuns())
            runs.count += 1
        elif runs is not None and event.type == "node.draining":
            runs.draining.append((event.id, event.at))
        elif runs is not None and event.type == "node.stopped":
            runs.count -= 1
            del runs.draining[:1]
            if runs.count <= 0:
                del self._runs[node]

    def claimed(self, event: Event, node: str) -> None:
        runs = self._runs.get(node)
        if runs is None:
            return
        self._findings.cases[Rule.DRAINING] += 1
        if len(runs.draining) < runs.count:
            return
        position, at = runs.draining[-1]
        if event.at - at > OVERLAP:
            story = f"node {node} claimed job {event.job_id} while draining"
            self._findings.add(Rule.DRAINING, event.job_id, (position, event.id), story)

    def forget(self) -> None:
        self._runs.clear()
        self._is_whole = False


FINDING_WIDTH, NAME_WIDTH, COUNT_WIDTH = 11, 9, 11


def verdict_object(judge: Judge, tenant: str | None) -> dict[str, object]:
    findings = judge.findings
    return {
        "holds": findings.holds,
        "tenant": tenant,
        "events": judge.looked_at,
        "first": judge.first,
        "last": judge.position,
        "rules": [_rule_object(findings, rule) for rule in Rule],
        "violations": [
            {**attrs.asdict(one), "positions": list(one.positions), "advice": one.rule.advice}
            for one in findings.violations
        ],
    }


def _rule_object(findings: Findings, rule: Rule) -> Mapping[str, Any]:
    return {
        "rule": rule.value,
        "says": rule.says,
        "finding": findings.finding(rule),
        "cases": findings.cases[rule],
        "violations": findings.violated.get(rule, 0),
        "reason": findings.reason(rule),
    }


def verdict_lines(judge: Judge) -> list[str]:
    """The first line is the answer."""
    findings = judge.findings
    seen = plural(judge.looked_at, "event")
    if judge.looked_at:
        seen += f", positions {count_text(judge.first)} to {count_text(judge.position)}"
    checked = sum(findings.finding(rule) == "ok" for rule in Rule)
    if findings.holds:
        head = f"all holds: {plural(checked, 'rule')} ok ({seen})"
    else:
        broken = plural(sum(findings.violated.values()), "violation")
        head = f"NOT ALL HOLDS: {broken} of {plural(len(findings.violated), 'rule')} ({seen})"
    lines = [head, "", *(_rule_line(findings, rule) for rule in Rule)]
    for one in findings.violations:
        lines += ["", *_violation_lines(one)]
    untold = sum(findings.violated.values()) - len(findings.violations)
    return [*lines, "", f"and {plural(untold, 'further violation')}"] if untold else lines


def _rule_line(findings: Findings, rule: Rule) -> str:
    finding = findings.finding(rule)
    shown = finding.upper() if finding == "violated" else finding
    cases = count_text(findings.cases[rule])
    says = findings.reason(rule) or rule.says
    return f"  {shown:<{FINDING_WIDTH}}  {rule:<{NAME_WIDTH}}  {cases:>{COUNT_WIDTH}}  {says}"


def _violation_lines(one: Violation) -> list[str]:
    about = [f"job {one.job_id}"] if one.job_id is not None else []
    places = " and ".join(count_text(place) for place in one.positions)
    about += [f"event{'s'[: len(one.positions) > 1]} {places}"] if places else []
    return [
        f"{one.rule}: {', '.join(about)}".rstrip(": "),
        f"  {one_line(one.story)}",
        f"  do: {one.rule.advice}",
    ]
