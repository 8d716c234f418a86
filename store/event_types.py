"""Every type of event: what its data holds, and how it is put into words. Readers skip types and
keys that they do not know; a type that is here keeps its meaning and its keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from musterd.config.faults import did_you_mean
from musterd.store.events import Event
from musterd.store.words import cut, one_line, time_text

WORDS_MAX = 160


def event_object(event: Event, tenant: str) -> dict[str, object]:
    """Gives the event as SSE and `musterd events --json` show it."""
    return {
        "id": event.id,
        "at": time_text(event.at),
        "type": event.type,
        "tenant": tenant,
        "job_id": event.job_id,
        "kind": event.kind,
        "data": dict(event.data),
    }


def event_words(event: Event) -> str:
    """Says in a line what the data of an event say."""
    words = _TYPES.get(event.type, EventType(())).words(event.data)
    return cut(one_line(words), WORDS_MAX)


def _attempt(data: Mapping[str, Any]) -> str:
    words = f"attempt {data['attempt']}" if data.get("attempt") is not None else ""
    if data.get("node"):
        worker = f" by worker {data['worker']}" if data.get("worker") is not None else ""
        return f"{words}{worker} on {data['node']}".strip()
    return words


def _progress(data: Mapping[str, Any]) -> str:
    words = "" if data.get("overall") is None else f"{data['overall']} %"
    if data.get("phase"):
        words += f", {data['phase']}"
        percent = data.get("progress")
        words += "" if percent is None else f" at {_number(percent)} %"
    return f"{words}: {data['note']}" if data.get("note") else words


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _phase_completed(data: Mapping[str, Any]) -> str:
    overall = "" if data.get("overall") is None else f", {data['overall']} % in all"
    return f"{data.get('phase')} is done{overall}"


def _failed(data: Mapping[str, Any]) -> str:
    return _joined(_attempt(data), _error(data))


def _enqueued(data: Mapping[str, Any]) -> str:
    held = "held" if data.get("state") else ""
    priority = f"priority {data['priority']}" if data.get("priority") else ""
    return _joined(held, _due("due", data), priority)


def _requeued(data: Mapping[str, Any]) -> str:
    return _joined(_because(data), _due("again", data))


def _due(word: str, data: Mapping[str, Any]) -> str:
    return f"{word} at {data['run_at']}" if data.get("run_at") else ""


def _retrying(data: Mapping[str, Any]) -> str:
    return _joined(_attempt(data), _due("again", data), _error(data))


def _because(data: Mapping[str, Any]) -> str:
    outcome = data.get("outcome")
    return _joined(_attempt(data), str(outcome) if outcome else "", str(data.get("reason") or ""))


def _error(data: Mapping[str, Any]) -> str:
    error = data.get("error")
    if isinstance(error, dict):
        return f"{error.get('type')}: {error.get('message')}"  # pyright: ignore[reportUnknownMemberType] - JSON
    return str(error) if error else ""


def _webhook(data: Mapping[str, Any]) -> str:
    tries = data.get("attempts")
    said = "" if tries is None else f"try {tries}"
    status = "" if data.get("status") is None else f"answered {data['status']}"
    return _joined(str(data.get("url") or ""), said, status, _error(data))


def _worker(data: Mapping[str, Any]) -> str:
    return f"worker {data.get('worker')} on {data.get('node')}"


def _node(data: Mapping[str, Any]) -> str:
    return _joined(str(data.get("node") or ""), f"musterd {data.get('version')}")


def _stopped(data: Mapping[str, Any]) -> str:
    cut_short = [f"{data[how]} {how}" for how in ("interrupted", "abandoned") if data.get(how)]
    return _joined(_node(data), *cut_short)


def acts_text(decision: Mapping[str, Any]) -> str:
    """What a decision did to the crew; empty if nothing."""
    acts = (("hired", "hired"), ("taken_back", "took back"), ("retired", "retired"))
    return ", ".join(f"{word} {decision[key]}" for key, word in acts if decision.get(key))


def _scale(data: Mapping[str, Any]) -> str:
    size = f"{data.get('size_before')} -> {data.get('desired')}"
    return _joined(str(data.get("node") or ""), size, acts_text(data))


def _reloaded(data: Mapping[str, Any]) -> str:
    changed = ", ".join(map(str, data.get("changed") or ()))
    return _joined(str(data.get("node") or ""), str(data.get("result") or ""), changed)


def _plain(data: Mapping[str, Any]) -> str:
    """For what has no words of its own."""
    return ", ".join(f"{name}={value}" for name, value in data.items())


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


class EventType(NamedTuple):
    """`keys` of its data; `words` says in a line what they say."""

    keys: tuple[str, ...]
    words: Callable[[Mapping[str, Any]], str] = _plain


_STARTED = ("attempt", "node", "worker")
_STOPPED = ("attempt", "reason")
_WORKER = ("node", "worker")
_NODE = ("node", "version")

# Of jobs, in the order in which a job may meet them, then of nodes. An end that no attempt has led
# to (a job that was canceled while it waited) has no `attempt`; a job that is held has `state`.
_TYPES: Mapping[str, EventType] = {
    "job.enqueued": EventType(("state", "run_at", "priority"), _enqueued),
    "job.released": EventType(()),
    "job.assigned": EventType(_STARTED, _attempt),
    "job.started": EventType(_STARTED, _attempt),
    "job.progress": EventType(("overall", "phase", "progress", "note"), _progress),
    "job.phase_completed": EventType(("attempt", "phase", "progress", "overall"), _phase_completed),
    "job.retrying": EventType(("attempt", "error", "run_at"), _retrying),
    "job.requeued": EventType(("attempt", "outcome", "reason", "run_at"), _requeued),
    "job.succeeded": EventType(("attempt",), _attempt),
    "job.failed": EventType(("attempt", "error"), _failed),
    "job.canceled": EventType(_STOPPED, _because),
    "job.paused": EventType(_STOPPED, _because),
    "job.resumed": EventType(()),
    "job.cleared": EventType(()),
    "job.webhook_delivered": EventType(("url", "attempts", "status"), _webhook),
    "job.webhook_failed": EventType(("url", "attempts", "error"), _webhook),
    "job.stale": EventType(("state",)),
    "job.deleted": EventType(("state", "by")),
    "worker.hired": EventType(_WORKER, _worker),
    "worker.retired": EventType(_WORKER, _worker),
    "worker.dismissed": EventType(_WORKER, _worker),
    "scale.decided": EventType(
        (
            *("node", "at", "policy", "due", "busy", "size_before", "raw_wish", "desired"),
            *("limited_by", "hired", "taken_back", "retired", "share", "others_free", "room"),
            *("because", "decided_by", "slack_seconds", "default_count", "max_count", "candidate"),
            "due_exact",
        ),
        _scale,
    ),
    "duty.acquired": EventType(("node", "duty")),
    "duty.released": EventType(("node", "duty", "reason")),
    "node.started": EventType(_NODE, _node),
    "node.draining": EventType(_NODE, _node),
    "node.stopped": EventType(
        (*_NODE, "interrupted", "abandoned", "interrupted_jobs", "abandoned_jobs"), _stopped
    ),
    "config.reloaded": EventType(("node", "result", "generation", "changed"), _reloaded),
}
EVENTS: Mapping[str, tuple[str, ...]] = {name: one.keys for name, one in _TYPES.items()}
EVENT_TYPES = tuple(EVENTS)
GROUPS = tuple(dict.fromkeys(name.partition(".")[0] for name in EVENT_TYPES))


def event_type(text: str) -> str:
    """Reads a type, or a group of types. Raises ValueError, which says what is wanted."""
    if text in EVENT_TYPES or text in GROUPS:
        return text
    hint = did_you_mean(text, (*EVENT_TYPES, *GROUPS)) or f"or a group: {', '.join(GROUPS)}"
    raise ValueError(f"found {text!r}, wanted a type of event, as job.failed is; {hint}")
