"""What a job has to say for itself: the job object that programs read, and the report that people
read. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import attrs

from musterd.config.job_options import OPTIONS
from musterd.store.control import Deletion, Obstacle
from musterd.store.input import decoded
from musterd.store.jobs import JOB_COLUMNS, AttemptRecord, JobRecord
from musterd.store.lifecycle import EFFECTS, ENDED, LEASED, JobState
from musterd.store.outbox import WebhookRecord
from musterd.store.phases import ALL_PERCENT, PhaseRecord, PhaseState, rounded, share_percent
from musterd.store.words import clock, count_text, duration_text, one_line, span, table, time_text

ASKED_SECONDS = 10.0  # from when on it is remarkable that a job still runs

# The options that the job object shows as they are in the row.
PLAIN_OPTIONS = tuple(
    option
    for option in OPTIONS
    if option.name in JOB_COLUMNS and option.name not in ("payload", "run_at", "max_attempts")
)


def job_object(
    record: JobRecord, tenant: str, max_attempts_of_kind: int | None
) -> dict[str, object]:
    """Gives the job as every interface shows it.

    Never raises: a value that is no JSON is shown as its text.
    """
    leased, webhook = record.state in LEASED, record.webhook
    return {
        "id": record.id,
        "kind": record.kind,
        "tenant": tenant,
        "state": record.state.value,
        "payload": decoded(record.payload),
        "result": decoded(record.result),
        "error": _error(record.error),
        "reason": record.reason,
        **{option.name: _plain(getattr(record, option.name)) for option in PLAIN_OPTIONS},
        "attempt": record.attempt,
        "max_attempts": max_attempts(record, max_attempts_of_kind),
        "created_at": time_text(record.created_at),
        "run_at": time_text(record.run_at),
        "started_at": time_text(record.started_at),
        "finished_at": time_text(record.finished_at),
        "lease_owner": _owner(record) if leased else None,
        "lease_expires_at": time_text(record.lease_expires_at),
        "heartbeat_at": time_text(record.heartbeat_at),
        "cancel_requested": record.request == "cancel",
        "pause_requested": record.request == "pause",
        "progress": {
            "overall": overall(record),
            "phase": current(record),
            "phases": [phase_object(phase) for phase in record.phases],
            "note": record.progress_note,
            "until": time_text(_waits_until(record)),
        },
        "attempts": [_attempt_object(attempt) for attempt in record.attempts],
        "cleared_at": time_text(record.cleared_at),
        "webhook": webhook and {**attrs.asdict(webhook), "sent_at": time_text(webhook.sent_at)},
        "stale_at": time_text(record.stale_at),
        "schedule": record.schedule,
        "scheduled_for": time_text(record.scheduled_for),
        "spent": decoded(record.spent) if record.spent else {},
        "updated_at": time_text(record.updated_at),
    }


def _plain(value: object) -> object:
    return time_text(value) if isinstance(value, datetime) else value


def control_refusal(job_id: int, action: str, state: str | None) -> str:
    """Says why an action on a job was refused, and what would be allowed."""
    if state is None:
        return f"there is no job {job_id}"
    states = [before.value for (one, before) in EFFECTS if one == action]
    if state in states:
        return f"job {job_id} is {state} and is being canceled: it cannot be told to {action}"
    *others, last = states
    wanted = f"{', '.join(others)} or {last}" if others else last
    return f"job {job_id} is {state}: {action} wants a job that is {wanted}"


def deletion_refusal(job_id: int, found: Deletion) -> str:
    """Says why a job was not deleted, and what to do first."""
    if found.state is None:
        return f"there is no job {job_id}"
    *others, last = sorted(state.value for state in ENDED)
    why = {
        Obstacle.UNFINISHED: f"delete wants a job that is {', '.join(others)} or {last}; cancel it"
        " first",
        Obstacle.HALTS: f"it halts its target {found.target!r}; resume or clear it first",
        Obstacle.UNTOLD: "a message about it waits to be sent; delete it when that is delivered, or"
        " given up",
        Obstacle.BUSY: "a message about it is being sent again; try once more",
    }
    obstacle = Obstacle.BUSY if found.obstacle is None else found.obstacle
    return f"job {job_id} is {found.state.value}: {why[obstacle]}"


def max_attempts(record: JobRecord, max_attempts_of_kind: int | None) -> int | None:
    """Gives how often the job may be claimed in all; None = its kind is not known here."""
    if record.max_attempts is not None:
        return record.max_attempts
    return None if max_attempts_of_kind is None else max_attempts_of_kind + record.forgiven


def report_text(record: JobRecord, now: datetime, max_attempts_of_kind: int | None = None) -> str:
    """Gives the report of a job for people: where it stands, its timings, each attempt, its
    result.
    """
    head = f"job {record.id} · {one_line(record.kind)} · {record.state.value}"
    facts = [(name, text) for name, text in _facts(record, now, max_attempts_of_kind) if text]
    width = max(len(name) for name, _ in facts)
    lines = [head, *(f"  {name:<{width}}  {text}" for name, text in facts)]
    if record.phases:
        lines += ["", *phases_table(record.phases, now)]
    if record.attempts:
        lines += ["", *_attempts_table(record.attempts, now)]
    for attempt in record.attempts:
        if attempt.log:
            lines += ["", f"log of attempt {attempt.attempt}:", *_log_lines(attempt.log)]
    return "\n".join(lines)


def _log_lines(log: str) -> list[str]:
    return [f"  {one_line(line)}" for line in log.splitlines()]


def error_line(error: str | None) -> str:
    """Gives `type: message` of an error, in one line; empty for none."""
    if error is None:
        return ""
    found = _error(error)
    if not isinstance(found, dict):
        return one_line(str(found))
    return one_line(f"{found['type']}: {found['message']}")


def _facts(
    record: JobRecord, now: datetime, max_attempts_of_kind: int | None
) -> list[tuple[str, str]]:
    budget = max_attempts(record, max_attempts_of_kind)
    attempts = f"{record.attempt} of {budget}" if budget is not None else str(record.attempt)
    return [
        ("created", _moment(record.created_at, now)),
        ("due", _due(record, now)),
        ("started", _moment(record.started_at, now)),
        ("finished", _moment(record.finished_at, now)),
        ("waited", span(record.run_at, _first_start(record))),
        ("ran", _ran(record, now)),
        ("attempts", attempts),
        *((name, one_line(text)) for name, text in option_facts(record)),
        ("schedule", _schedule(record)),
        ("lease", _lease(record, now)),
        ("reason", one_line(record.reason or "")),
        ("asked for", _asked_for(record, now)),
        ("progress", _progress(record)),
        ("cleared", _moment(record.cleared_at, now)),
        ("stale", _moment(record.stale_at, now)),
        ("webhook", _webhook_line(record.webhook, now)),
        ("payload", one_line(_shown(record.payload))),
        ("error", error_line(record.error)),
        ("result", one_line(_shown(record.result)) if record.result is not None else ""),
    ]


def option_facts(record: JobRecord) -> list[tuple[str, str]]:
    """Each option that the job object shows as it is, in words; empty = there is nothing to say."""
    values = [(option.name, getattr(record, option.name)) for option in PLAIN_OPTIONS]
    return [(name.replace("_", " "), str(_plain(value)) if value else "") for name, value in values]


def _schedule(record: JobRecord) -> str:
    if record.schedule is None:
        return ""
    slot = time_text(record.scheduled_for) or "by hand"
    return f"{one_line(record.schedule)}, {slot}"


def _asked_for(record: JobRecord, now: datetime) -> str:
    if record.request is None or record.requested_at is None:
        return record.request or ""
    since_seconds = max(0.0, (now - record.requested_at).total_seconds())
    patience = ": its work has not stopped yet" if since_seconds > ASKED_SECONDS else ""
    return f"{record.request}, {duration_text(since_seconds)} ago{patience}"


def _progress(record: JobRecord) -> str:
    phase = current(record)
    if (record.progress is None and phase is None) or record.state is JobState.SUCCEEDED:
        return ""
    place = f", phase {one_line(phase)}" if phase is not None else ""
    note = f", {one_line(record.progress_note)}" if record.progress_note else ""
    until = _waits_until(record)
    waits = f", not before {time_text(until, 'seconds')}" if until is not None else ""
    return f"{overall(record)} %{place}{waits}{note}"


def _waits_until(record: JobRecord) -> datetime | None:
    """When the next phase begins of a job that has begun its phases and waits."""
    if record.state is not JobState.QUEUED or current(record) is None:
        return None
    return record.run_at


def _webhook_line(webhook: WebhookRecord | None, now: datetime) -> str:
    if webhook is None:
        return ""
    sent = f"told {_moment(webhook.sent_at, now)}" if webhook.sent_at else "not told"
    return f"{one_line(webhook.url)}, {sent}, tries: {webhook.attempts}"


def _moment(moment: datetime | None, now: datetime) -> str:
    if moment is None:
        return ""
    text = moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + "Z"
    away_seconds = (now - moment).total_seconds()
    distance = duration_text(abs(away_seconds))
    return f"{text}  ({distance} ago)" if away_seconds >= 0 else f"{text}  (in {distance})"


def _due(record: JobRecord, now: datetime) -> str:
    is_ahead = record.state in (JobState.QUEUED, JobState.PENDING) and record.run_at > now
    was_delayed = record.run_at != record.created_at
    return _moment(record.run_at, now) if is_ahead or was_delayed else ""


def _first_start(record: JobRecord) -> datetime | None:
    # A retry moves the due time past earlier starts: the wait shown is that of the latest due time.
    starts = [a.started_at for a in record.attempts if a.started_at is not None]
    return next((start for start in starts if start >= record.run_at), None)


def _ran(record: JobRecord, now: datetime) -> str:
    if record.started_at is None or record.state is JobState.QUEUED:
        return ""
    if record.state in LEASED:
        return f"{span(record.started_at, now)} so far"
    return span(record.started_at, record.finished_at)


def _lease(record: JobRecord, now: datetime) -> str:
    if record.state not in LEASED or record.lease_expires_at is None:
        return ""
    left_seconds = (record.lease_expires_at - now).total_seconds()
    left = f"{duration_text(left_seconds)} left" if left_seconds > 0 else "ran out"
    return f"{one_line(_owner(record) or '?')}, {left}"


def _attempts_table(attempts: tuple[AttemptRecord, ...], now: datetime) -> list[str]:
    rows = [
        (
            count_text(attempt.attempt),
            "-" if attempt.worker is None else str(attempt.worker),
            one_line(attempt.node or "-"),
            "-" if attempt.started_at is None else clock(attempt.started_at),
            span(attempt.started_at, attempt.finished_at or now) or "-",
            "under way" if attempt.outcome is None else attempt.outcome.value,
            error_line(attempt.error),
        )
        for attempt in attempts
    ]
    heads = ("attempt", "worker", "node", "started", "ran", "outcome", "error")
    return table(heads, rows, right=frozenset({0, 1, 4}))


def _attempt_object(attempt: AttemptRecord) -> dict[str, object]:
    return {
        "attempt": attempt.attempt,
        "worker": attempt.worker,
        "node": attempt.node,
        "started_at": time_text(attempt.started_at),
        "finished_at": time_text(attempt.finished_at),
        "outcome": None if attempt.outcome is None else attempt.outcome.value,
        "error": _error(attempt.error),
        "log": attempt.log,
    }


def _owner(record: JobRecord) -> str | None:
    if record.node is None:
        return None
    return record.node if record.worker is None else f"{record.node}/{record.worker}"


def _error(text: str | None) -> object:
    """The error with its two keys, whatever stands in the row."""
    if text is None:
        return None
    found = decoded(text)
    if not isinstance(found, dict):
        return {"type": "unknown", "message": text}
    error: dict[object, object] = dict(found)  # pyright: ignore[reportUnknownArgumentType] - JSON
    return {"type": error.get("type", "unknown"), "message": error.get("message", text)}


def _shown(text: str | None) -> str:
    """JSON in one line, as compact as people like it; a text that is no JSON as it stands."""
    value = decoded(text)
    if value is text:
        return text or ""
    return json.dumps(value, ensure_ascii=False)


def overall(record: JobRecord) -> int:
    """How far a job has come, in whole percent; a half is rounded up."""
    if record.state is JobState.SUCCEEDED:
        return ALL_PERCENT
    finished = sum(phase.state is PhaseState.SUCCEEDED for phase in record.phases)
    at_least = share_percent(finished, 0.0, len(record.phases)) if record.phases else 0.0
    return rounded(max(record.progress or 0.0, at_least))


def current(record: JobRecord) -> str | None:
    """The phase that a job is in, or in which it stopped: the first that is not finished, once the
    job has begun its phases.
    """
    if not any(phase.attempts for phase in record.phases):
        return None
    rest = (each.name for each in record.phases if each.state is not PhaseState.SUCCEEDED)
    return next(rest, None)


def phase_object(phase: PhaseRecord) -> dict[str, object]:
    return {
        "name": phase.name,
        "state": phase.state.value,
        "progress": rounded(phase.progress),
        "result": decoded(phase.result),
        "attempts": phase.attempts,
        "started_at": time_text(phase.started_at),
        "finished_at": time_text(phase.finished_at),
    }


def phases_table(phases: Sequence[PhaseRecord], now: datetime) -> list[str]:
    rows = [
        (
            one_line(phase.name),
            phase.state.value,
            f"{rounded(phase.progress)} %",
            count_text(phase.attempts),
            "-" if phase.started_at is None else clock(phase.started_at),
            _phase_ran(phase, now) or "-",
        )
        for phase in phases
    ]
    heads = ("phase", "state", "progress", "attempts", "started", "ran")
    return table(heads, rows, right=frozenset({2, 3, 5}))


def _phase_ran(phase: PhaseRecord, now: datetime) -> str:
    return span(phase.started_at, now if phase.state is PhaseState.RUNNING else phase.finished_at)
