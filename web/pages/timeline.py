"""The way of a job through its states, from what is kept of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from musterd.store.job import AttemptRecord, JobRecord, JobState
from musterd.store.lifecycle import ENDED
from musterd.store.report import error_line
from musterd.store.words import cut, plural
from musterd.web.pages.html import Html, el

STEPS_SHOWN = 60  # the latest
PHASE = 2  # the place of a phase among what happens at once
WORDS_WIDTH = 300


class Step(NamedTuple):
    at: datetime
    order: int  # of what happened at the same moment
    mood: str  # the class of its mark
    words: str


def timeline(record: JobRecord) -> Html:
    steps = steps_of(record)
    left = len(steps) - STEPS_SHOWN
    shown = [
        el("li", _clock(step.at), " ", el("span", cut(step.words, WORDS_WIDTH)), class_=step.mood)
        for step in steps[-STEPS_SHOWN:]
    ]
    before = el("li", f"{plural(left, 'earlier step')} not shown") if left > 0 else None
    return el("ol", before, shown, class_="way")


def steps_of(record: JobRecord) -> list[Step]:
    """What is known of its way, in the order of time."""
    end = record.finished_at if record.state in ENDED else None
    steps = [
        step._replace(at=end) if end and step.order == PHASE and step.at > end else step
        for step in _steps(record)
    ]
    return sorted(steps, key=lambda step: (step.at, step.order))


def _steps(record: JobRecord) -> Iterator[Step]:
    yield Step(record.created_at, 0, "made", "made")
    waits = record.state in (JobState.QUEUED, JobState.PENDING)
    if waits and record.run_at > record.created_at:
        yield Step(record.run_at, 1, "queued", "due")
    for attempt in record.attempts:
        yield from _attempt(attempt)
    for phase in record.phases:
        if phase.finished_at is not None:
            yield Step(
                phase.finished_at, PHASE, "phase", f"phase {phase.name}: {phase.state.value}"
            )
    if record.requested_at is not None and record.request is not None:
        yield Step(record.requested_at, 3, "asked", f"{record.request} asked for")
    if record.finished_at is not None and record.state in ENDED and not _is_told(record):
        reason = f": {record.reason}" if record.reason else ""
        yield Step(record.finished_at, 5, record.state.value, f"{record.state.value}{reason}")
    yield from _afterwards(record)


def _is_told(record: JobRecord) -> bool:
    """Whether the end of the last attempt says it all."""
    last = record.attempts[-1] if record.attempts else None
    if last is None or last.outcome is None or record.reason:
        return False
    return last.outcome.value == record.state.value and last.finished_at == record.finished_at


def _clock(at: datetime) -> Html:
    at = at.astimezone(UTC)
    text = f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03}"
    return el("time", text, datetime=f"{at:%Y-%m-%dT%H:%M:%SZ}")


def _attempt(attempt: AttemptRecord) -> Iterator[Step]:
    by = "" if attempt.node is None else f" on {attempt.node}"
    by += "" if attempt.worker is None else f", worker {attempt.worker}"
    if attempt.started_at is not None:
        yield Step(attempt.started_at, 1, "started", f"attempt {attempt.attempt} started{by}")
    if attempt.finished_at is not None and attempt.outcome is not None:
        error = error_line(attempt.error)
        words = f"attempt {attempt.attempt} ended: {attempt.outcome.value}"
        yield Step(
            attempt.finished_at, 4, attempt.outcome.value, f"{words}, {error}" if error else words
        )


def _afterwards(record: JobRecord) -> Iterator[Step]:
    if record.cleared_at is not None:
        yield Step(record.cleared_at, 6, "cleared", "cleared: somebody has seen to it")
    if record.webhook is not None and record.webhook.sent_at is not None:
        yield Step(record.webhook.sent_at, 7, "told", "its webhook was delivered")
    if record.stale_at is not None:
        yield Step(record.stale_at, 8, "stale", "went stale")
