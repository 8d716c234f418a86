"""One job as the log has it: its life so far, and whether the next event is allowed. Pure.

The life of a job that has ended is kept in one number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import Enum
from sys import intern

import attrs

from musterd.console.verify.rules import Findings, Rule
from musterd.store.events import Event
from musterd.store.lifecycle import ENDED, LEASED, JobState

STATES = tuple(JobState)
_PLACE = {state: place for place, state in enumerate(STATES)}
_ATTEMPT_BITS, _STATE_BITS = 32, 3
_ATTEMPT_MASK, _STATE_MASK = (1 << _ATTEMPT_BITS) - 1, (1 << _STATE_BITS) - 1

# The state after an event. `job.enqueued` names it if it is not queued.
BECOMES: dict[str, JobState] = {
    "job.enqueued": JobState.QUEUED,
    "job.released": JobState.QUEUED,
    "job.assigned": JobState.ASSIGNED,
    "job.started": JobState.RUNNING,
    "job.retrying": JobState.QUEUED,
    "job.requeued": JobState.QUEUED,
    "job.succeeded": JobState.SUCCEEDED,
    "job.failed": JobState.FAILED,
    "job.canceled": JobState.CANCELED,
    "job.paused": JobState.PAUSED,
    "job.resumed": JobState.QUEUED,
}


@attrs.define(eq=False, init=False)
class Life:
    """`state`, `attempt` None = the log begins later than the job. `last`: the position of the
    event that led to its state; `claimed`: of its latest claim. `is_known`: the log says whether it
    has its target.
    """

    state: JobState | None
    attempt: int | None
    last: int
    claimed: int
    node: str | None
    target: str | None
    due: datetime | None
    phases: tuple[str, ...]
    is_known: bool
    has_ended: bool
    is_cleared: bool
    is_stale: bool

    def __init__(self, state: JobState | None, attempt: int | None, last: int) -> None:
        self.state, self.attempt, self.last = state, attempt, last
        self.claimed = 0
        self.node = self.target = self.due = None
        self.phases = ()
        self.is_known = self.has_ended = self.is_cleared = self.is_stale = False

    @property
    def halts(self) -> bool:
        return self.target is not None and (
            self.state is JobState.PAUSED or (self.state is JobState.FAILED and not self.is_cleared)
        )


def packed(life: Life) -> int | None:
    """A job that has ended in one number; None = there is more to remember of it."""
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
    """The effect of an event on its job."""

    CLAIMED = "claimed"
    CHANGED = "changed"
    DELETED = "deleted"
    NONE = "none"


def apply_event(event: Event, life: Life, findings: Findings) -> Change:
    """Takes an event into a life. A type that is not known says nothing."""
    step = _STEPS.get(event.type)
    return Change.NONE if step is None else step(event, life, findings)


def _made(event: Event, life: Life, findings: Findings) -> Change:
    if life.state is not None or life.attempt is None:
        story = f"job {event.job_id} was made a second time"
        findings.add(Rule.MADE, event.job_id, (life.last, event.id), story)
    life.attempt = 0
    life.state = JobState.PENDING if event.data.get("state") == "pending" else JobState.QUEUED
    life.last = event.id
    return Change.CHANGED


def _claimed(event: Event, life: Life, findings: Findings) -> Change:
    node, attempt = event.data.get("node"), event.data.get("attempt")
    if life.state is JobState.ASSIGNED and event.type == "job.started" and attempt == life.attempt:
        return _started(event, life, findings, node)
    _judge_claim(event, life, findings)
    life.state = BECOMES[event.type]
    life.attempt = attempt if isinstance(attempt, int) else None
    life.node = intern(node) if isinstance(node, str) else None
    life.due = None
    life.last = life.claimed = event.id
    return Change.CLAIMED


def _started(event: Event, life: Life, findings: Findings, node: object) -> Change:
    findings.cases[Rule.HOLDER] += 1
    if node is not None and life.node is not None and node != life.node:
        story = (
            f"attempt {life.attempt} of job {event.job_id} was claimed by node {life.node} and"
            f" started by node {node}"
        )
        findings.add(Rule.HOLDER, event.job_id, (life.claimed, event.id), story)
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
        findings.add(rule, event.job_id, (life.last, event.id), text)
        return
    attempt = event.data.get("attempt")
    if life.attempt is not None:
        cases[Rule.ATTEMPTS] += 1
        if attempt != life.attempt + 1:
            story = f"attempt {attempt} of job {event.job_id} follows attempt {life.attempt}"
            findings.add(Rule.ATTEMPTS, event.job_id, (life.last, event.id), story)
    if life.due is not None:
        cases[Rule.DUE] += 1
        if life.due - event.at > EARLY_MAX:
            story = (
                f"attempt {attempt} of job {event.job_id} was due at"
                f" {life.due.isoformat()} and was claimed at {event.at.isoformat()}"
            )
            findings.add(Rule.DUE, event.job_id, (life.last, event.id), story)


_CLAIM_FAULTS: Mapping[JobState, tuple[Rule, str]] = {
    JobState.ASSIGNED: (Rule.ONE_HAND, "while it was held"),
    JobState.RUNNING: (Rule.ONE_HAND, "while it was held"),
    JobState.CANCELED: (Rule.CANCELED, "after it was canceled"),
    JobState.SUCCEEDED: (Rule.ENDS, "after it had succeeded"),
    JobState.FAILED: (Rule.EDGES, "after it had failed, without being resumed"),
    JobState.PAUSED: (Rule.EDGES, "while it was paused"),
    JobState.PENDING: (Rule.EDGES, "before it was released"),
}


def _settled(event: Event, life: Life, findings: Findings) -> Change:
    """An attempt has ended."""
    state = life.state
    findings.cases[Rule.HOLDER] += 1
    if state in LEASED:
        _judge_attempt(event, life, findings)
    elif state in ENDED:
        _accuse_end(event, life, findings)
    elif state is not None:
        story = f"{event.type} was logged for job {event.job_id}, which no worker held ({state})"
        findings.add(Rule.HOLDER, event.job_id, (life.last, event.id), story)
    _become(event, life, findings)
    if event.type == "job.retrying":
        life.due = _moment(event.data.get("run_at"))
    return Change.CHANGED


def _stopped(event: Event, life: Life, findings: Findings) -> Change:
    """It is canceled or paused, by its holder or while it waits."""
    state = life.state
    findings.cases[Rule.EDGES] += 1
    if state in LEASED:
        _judge_attempt(event, life, findings)
    elif state in ENDED:
        _accuse_end(event, life, findings)
    elif state is not None and state not in _MAY_STOP[event.type]:
        _accuse_edge(event, life, findings)
    _become(event, life, findings)
    return Change.CHANGED


_WAITING = frozenset({JobState.PENDING, JobState.QUEUED, JobState.PAUSED})
_MAY_STOP: Mapping[str, frozenset[JobState]] = {
    "job.canceled": _WAITING,
    "job.paused": frozenset({JobState.QUEUED}),
}
_MAY_GO_ON: Mapping[str, frozenset[JobState]] = {
    "job.released": frozenset({JobState.PENDING}),
    "job.resumed": frozenset({JobState.PAUSED, JobState.FAILED}),
    "job.cleared": frozenset({JobState.FAILED}),
}


def _goes_on(event: Event, life: Life, findings: Findings) -> Change:
    """It is released or resumed."""
    findings.cases[Rule.EDGES] += 1
    if life.state is not None and life.state not in _MAY_GO_ON[event.type]:
        _accuse_edge(event, life, findings)
    life.state, life.last, life.due = JobState.QUEUED, event.id, None
    life.is_cleared = life.is_stale = False
    return Change.CHANGED


def _cleared(event: Event, life: Life, findings: Findings) -> Change:
    findings.cases[Rule.EDGES] += 1
    if life.state not in (None, JobState.FAILED):
        _accuse_edge(event, life, findings)
    life.state, life.is_cleared = JobState.FAILED, True
    return Change.CHANGED


def _progressed(event: Event, life: Life, findings: Findings) -> Change:
    findings.cases[Rule.HOLDER] += 1
    if life.state is not None and life.state not in LEASED:
        story = f"{event.type} was logged for job {event.job_id}, which no worker held"
        findings.add(Rule.HOLDER, event.job_id, (life.last, event.id), f"{story} ({life.state})")
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
        findings.add(Rule.PHASES, event.job_id, (life.last, event.id), story)
        return
    life.phases = (*life.phases, intern(phase))


def _delivered(event: Event, life: Life, findings: Findings) -> Change:
    findings.cases[Rule.WEBHOOKS] += 1
    if not life.has_ended:
        story = f"{event.type} was logged for job {event.job_id}, which has not ended yet"
        findings.add(Rule.WEBHOOKS, event.job_id, (life.last, event.id), story)
    return Change.NONE


def _aged(event: Event, life: Life, findings: Findings) -> Change:
    """It goes stale, or is deleted."""
    findings.cases[Rule.DELETED] += 1
    deleted = event.type == "job.deleted"
    story = ""
    if life.state is not None and life.state not in ENDED:
        story = f"although it had not ended ({life.state})"
    elif life.state is not None and event.data.get("state") not in (None, life.state):
        story = f"as {event.data.get('state')}, and was {life.state}"
    elif life.halts:
        story = f"although it halts target {life.target!r}"
    elif deleted and not life.is_stale:
        story = "although it had not gone stale"
    if story:
        how = "was deleted" if deleted else "went stale"
        text = f"job {event.job_id} {how} {story}"
        findings.add(Rule.DELETED, event.job_id, (life.last, event.id), text)
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
    findings.add(Rule.HOLDER, event.job_id, (life.claimed, event.id), story)


def _accuse_end(event: Event, life: Life, findings: Findings) -> None:
    story = (
        f"{event.type} was logged for job {event.job_id}, which had already ended ({life.state})"
    )
    findings.add(Rule.ENDS, event.job_id, (life.last, event.id), story)


def _accuse_edge(event: Event, life: Life, findings: Findings) -> None:
    story = f"{event.type} was logged for job {event.job_id}, which was {life.state}"
    findings.add(Rule.EDGES, event.job_id, (life.last, event.id), story)


def _become(event: Event, life: Life, findings: Findings) -> None:
    attempt = event.data.get("attempt")
    if life.attempt is None and isinstance(attempt, int):
        life.attempt = attempt
    state = BECOMES[event.type]
    life.state, life.last = state, event.id
    if state in ENDED:
        findings.cases[Rule.ENDS] += 1
        findings.cases[Rule.CANCELED] += state is JobState.CANCELED
        life.has_ended = True
        life.is_cleared = False


def _moment(text: object) -> datetime | None:
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None  # a foreign text says nothing
    return None if moment.tzinfo is None else moment


_STEPS: Mapping[str, Callable[[Event, Life, Findings], Change]] = {
    "job.enqueued": _made,
    "job.released": _goes_on,
    "job.assigned": _claimed,
    "job.started": _claimed,
    "job.progress": _progressed,
    "job.phase_completed": _progressed,
    "job.retrying": _settled,
    "job.requeued": _settled,
    "job.succeeded": _settled,
    "job.failed": _settled,
    "job.canceled": _stopped,
    "job.paused": _stopped,
    "job.resumed": _goes_on,
    "job.cleared": _cleared,
    "job.webhook_delivered": _delivered,
    "job.webhook_failed": _delivered,
    "job.stale": _aged,
    "job.deleted": _aged,
}
