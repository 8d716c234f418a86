"""The rules for logs and stores and what breaks them, and one job's life by the log. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from enum import Enum, StrEnum
from sys import intern
from typing import NamedTuple, Self

import attrs

from musterd.store.events import Event
from musterd.store.lifecycle import ENDED, LEASED, JobState
from musterd.store.words import moment_of

_BY_HAND = "were rows changed by hand, or part of the database restored?"
_REPORT = "save the log (`musterd events --since 0 --json`) and report it: a bug in musterd"


class Rule(StrEnum):
    """The nearest rule reports a fault. `says` what must hold; `advice`: what to do if not."""

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
        f"{_BY_HAND} Jobs must be deleted by retention or by `musterd delete`, never by SQL",
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
        (
            "only finished jobs go stale, only those are deleted without a request, and none that"
            " halts its target"
        ),
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


STATES = tuple(JobState)
_PLACE = {state: place for place, state in enumerate(STATES)}
_ATTEMPT_BITS, _STATE_BITS = 32, 3
_ATTEMPT_MASK, _STATE_MASK = (1 << _ATTEMPT_BITS) - 1, (1 << _STATE_BITS) - 1


@attrs.define(eq=False)
class Life:
    """`state`, `attempt` None = the log begins later. `last`: position of the event that led to its
    state; `claimed`: of its latest claim. `is_known`: the log says whether it has its target.
    """

    state: JobState | None
    attempt: int | None
    last: int
    claimed: int = 0
    node: str | None = None
    target: str | None = None
    due: datetime | None = None
    phases: tuple[str, ...] = ()
    is_known: bool = False
    has_ended: bool = False
    is_cleared: bool = False
    is_stale: bool = False

    @property
    def halts(self) -> bool:
        return self.target is not None and (
            self.state is JobState.PAUSED or (self.state is JobState.FAILED and not self.is_cleared)
        )


def packed(life: Life) -> int | None:
    """An ended job as a number; None = it does not fit into one."""
    state, attempt = life.state, life.attempt
    if state is JobState.FAILED and (life.target is not None or life.phases):
        return None  # it may go on where it was
    if state is None or not life.has_ended or attempt is None or attempt > _ATTEMPT_MASK:
        return None
    flags = life.is_stale << 1 | life.is_cleared
    return ((life.last << _ATTEMPT_BITS | attempt) << 2 | flags) << _STATE_BITS | _PLACE[state]


def unpacked(number: int) -> Life:
    rest = number >> _STATE_BITS
    state, flags, rest = STATES[number & _STATE_MASK], rest & 3, rest >> 2
    life = Life(state, rest & _ATTEMPT_MASK, rest >> _ATTEMPT_BITS)
    life.has_ended = True
    life.is_stale, life.is_cleared = bool(flags & 2), bool(flags & 1)
    return life


def packed_state(number: int) -> JobState:
    return STATES[number & _STATE_MASK]


def packed_attempt(number: int) -> int:
    return number >> _STATE_BITS + 2 & _ATTEMPT_MASK


EARLY_MAX = timedelta(milliseconds=2)  # by so much times may be rounded


class Change(Enum):
    CLAIMED = "claimed"
    CHANGED = "changed"
    DELETED = "deleted"
    NONE = "none"


def apply_event(event: Event, life: Life, findings: Findings) -> Change:
    """Unknown types change nothing."""
    known = TYPES.get(event.type)
    return Change.NONE if known is None else known.step(event, life, findings)


def _made(event: Event, life: Life, findings: Findings) -> Change:
    if life.state is not None or life.attempt is None:
        _accuse(Rule.MADE, event, life.last, findings, f"job {event.job_id} was made a second time")
    life.attempt = 0
    life.state = JobState.PENDING if event.data.get("state") == "pending" else JobState.QUEUED
    life.last = event.id
    return Change.CHANGED


def _claimed(event: Event, life: Life, findings: Findings) -> Change:
    node, attempt = event.data.get("node"), event.data.get("attempt")
    if life.state is JobState.ASSIGNED and event.type == "job.started" and attempt == life.attempt:
        return _started(event, life, findings, node)
    _judge_claim(event, life, findings)
    life.state = TYPES[event.type].becomes
    life.attempt = attempt if isinstance(attempt, int) else None
    life.node = intern(node) if isinstance(node, str) else None
    life.due = None
    life.last = life.claimed = event.id
    return Change.CLAIMED


def _started(event: Event, life: Life, findings: Findings, node: object) -> Change:
    findings.cases[Rule.HOLDER] += 1
    if node is not None and life.node is not None and node != life.node:
        story = f"attempt {life.attempt} of job {event.job_id} was claimed by node {life.node}"
        _accuse(Rule.HOLDER, event, life.claimed, findings, f"{story} and started by node {node}")
    life.state, life.last = JobState.RUNNING, event.id
    return Change.CHANGED


def _judge_claim(event: Event, life: Life, findings: Findings) -> None:
    state, cases = life.state, findings.cases
    cases[Rule.ONE_HAND] += 1
    cases[Rule.EDGES] += 1
    if state is not None and state is not JobState.QUEUED:
        rule, story = _CLAIM_FAULTS[state]
        where = f" by node {life.node}" if state in LEASED and life.node else ""
        text = f"job {event.job_id} was claimed by node {event.data.get('node')} {story}{where}"
        _accuse(rule, event, life.last, findings, text)
        return
    attempt = event.data.get("attempt")
    if life.attempt is not None:
        cases[Rule.ATTEMPTS] += 1
        if attempt != life.attempt + 1:
            story = f"attempt {attempt} of job {event.job_id} follows attempt {life.attempt}"
            _accuse(Rule.ATTEMPTS, event, life.last, findings, story)
    if life.due is not None:
        cases[Rule.DUE] += 1
        if life.due - event.at > EARLY_MAX:
            story = (
                f"attempt {attempt} of job {event.job_id} was due at"
                f" {life.due.isoformat()} and was claimed at {event.at.isoformat()}"
            )
            _accuse(Rule.DUE, event, life.last, findings, story)


_CLAIM_FAULTS: Mapping[JobState, tuple[Rule, str]] = {
    JobState.ASSIGNED: (Rule.ONE_HAND, "while it was held"),
    JobState.RUNNING: (Rule.ONE_HAND, "while it was held"),
    JobState.CANCELED: (Rule.CANCELED, "after it was canceled"),
    JobState.SUCCEEDED: (Rule.ENDS, "after it had succeeded"),
    JobState.FAILED: (Rule.EDGES, "after it had failed, without being resumed"),
    JobState.PAUSED: (Rule.EDGES, "while it was paused"),
    JobState.PENDING: (Rule.EDGES, "before it was released"),
}


def _left(event: Event, life: Life, findings: Findings) -> Change:
    """An attempt has ended; or the job was canceled or paused, in hand or waiting."""
    state, may_wait = life.state, TYPES[event.type].follows
    rule = Rule.EDGES if may_wait else Rule.HOLDER
    findings.cases[rule] += 1
    if state in LEASED:
        _judge_attempt(event, life, findings)
    elif state in ENDED:
        _stray(Rule.ENDS, event, life, findings, f"which had already ended ({state})")
    elif state is not None and state not in may_wait:
        why = f"which was {state}" if may_wait else f"which no worker held ({state})"
        _stray(rule, event, life, findings, why)
    _become(event, life, findings)
    if event.type == "job.retrying":
        life.due = None
        with suppress(ValueError):  # a foreign text says nothing
            life.due = moment_of(str(event.data.get("run_at")))
    return Change.CHANGED


def _goes_on(event: Event, life: Life, findings: Findings) -> Change:
    """Released or resumed."""
    _judge_edge(event, life, findings)
    life.state, life.last, life.due = JobState.QUEUED, event.id, None
    life.is_cleared = life.is_stale = False
    return Change.CHANGED


def _cleared(event: Event, life: Life, findings: Findings) -> Change:
    _judge_edge(event, life, findings)
    life.state, life.is_cleared = JobState.FAILED, True
    return Change.CHANGED


def _judge_edge(event: Event, life: Life, findings: Findings) -> None:
    findings.cases[Rule.EDGES] += 1
    if life.state is not None and life.state not in TYPES[event.type].follows:
        _stray(Rule.EDGES, event, life, findings, f"which was {life.state}")


def _progressed(event: Event, life: Life, findings: Findings) -> Change:
    findings.cases[Rule.HOLDER] += 1
    if life.state is not None and life.state not in LEASED:
        _stray(Rule.HOLDER, event, life, findings, f"which no worker held ({life.state})")
    elif event.type == "job.phase_completed":
        _judge_attempt(event, life, findings)
        _judge_phase(event, life, findings)
    return Change.NONE


def _judge_phase(event: Event, life: Life, findings: Findings) -> None:
    phase = event.data.get("phase")
    findings.cases[Rule.PHASES] += 1
    if not isinstance(phase, str):
        return
    if phase in life.phases:
        story = f"phase {phase!r} of job {event.job_id} was finished twice"
        _accuse(Rule.PHASES, event, life.last, findings, story)
        return
    life.phases = (*life.phases, intern(phase))


def _delivered(event: Event, life: Life, findings: Findings) -> Change:
    findings.cases[Rule.WEBHOOKS] += 1
    if not life.has_ended:
        _stray(Rule.WEBHOOKS, event, life, findings, "which has not ended yet")
    return Change.NONE


def _aged(event: Event, life: Life, findings: Findings) -> Change:
    """Stale or deleted."""
    findings.cases[Rule.DELETED] += 1
    deleted = event.type == "job.deleted"
    story = ""
    if life.state is not None and life.state not in ENDED:
        story = f"although it had not ended ({life.state})"
    elif life.state is not None and event.data.get("state") not in (None, life.state):
        story = f"as {event.data.get('state')}, and was {life.state}"
    elif life.halts:
        story = f"although it halts target {life.target!r}"
    elif deleted and not life.is_stale and "by" not in event.data:
        story = "although it had not gone stale"
    if story:
        how = "was deleted" if deleted else "went stale"
        _accuse(Rule.DELETED, event, life.last, findings, f"job {event.job_id} {how} {story}")
    life.is_stale = True
    return Change.DELETED if deleted else Change.NONE


def _judge_attempt(event: Event, life: Life, findings: Findings) -> None:
    attempt = event.data.get("attempt")
    if life.attempt is None or attempt == life.attempt:
        return
    story = (
        f"{event.type} was logged for attempt {attempt} of job {event.job_id} while attempt"
        f" {life.attempt} was running"
    )
    _accuse(Rule.HOLDER, event, life.claimed, findings, story)


def _accuse(rule: Rule, event: Event, since: int, findings: Findings, story: str) -> None:
    findings.add(rule, event.job_id, (since, event.id), story)


def _stray(rule: Rule, event: Event, life: Life, findings: Findings, why: str) -> None:
    story = f"{event.type} was logged for job {event.job_id}, {why}"
    _accuse(rule, event, life.last, findings, story)


def _become(event: Event, life: Life, findings: Findings) -> None:
    attempt = event.data.get("attempt")
    if life.attempt is None and isinstance(attempt, int):
        life.attempt = attempt
    state = TYPES[event.type].becomes
    life.state, life.last = state, event.id
    if state in ENDED:
        findings.cases[Rule.ENDS] += 1
        findings.cases[Rule.CANCELED] += state is JobState.CANCELED
        life.has_ended = True
        life.is_cleared = False


class _Type(NamedTuple):
    """An event's step, the next state, and the states it may follow if the job is not in hand."""

    step: Callable[[Event, Life, Findings], Change]
    becomes: JobState | None = None
    follows: Collection[JobState] = ()


TYPES: Mapping[str, _Type] = {
    "job.enqueued": _Type(_made, JobState.QUEUED),  # unless it names another
    "job.released": _Type(_goes_on, JobState.QUEUED, [JobState.PENDING]),
    "job.assigned": _Type(_claimed, JobState.ASSIGNED),
    "job.started": _Type(_claimed, JobState.RUNNING),
    "job.progress": _Type(_progressed),
    "job.phase_completed": _Type(_progressed),
    "job.retrying": _Type(_left, JobState.QUEUED),
    "job.requeued": _Type(_left, JobState.QUEUED),
    "job.succeeded": _Type(_left, JobState.SUCCEEDED),
    "job.failed": _Type(_left, JobState.FAILED),
    "job.canceled": _Type(
        _left, JobState.CANCELED, [JobState.PENDING, JobState.QUEUED, JobState.PAUSED]
    ),
    "job.paused": _Type(_left, JobState.PAUSED, [JobState.QUEUED]),
    "job.resumed": _Type(_goes_on, JobState.QUEUED, [JobState.PAUSED, JobState.FAILED]),
    "job.cleared": _Type(_cleared, None, [JobState.FAILED]),
    "job.webhook_delivered": _Type(_delivered),
    "job.webhook_failed": _Type(_delivered),
    "job.stale": _Type(_aged),
    "job.deleted": _Type(_aged),
}
