"""An event for programs, and in words for people. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from musterd.store.events import Event
from musterd.store.shown import time_text
from musterd.store.words import cut, one_line

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
    words = _WORDS.get(event.type, _plain)(event.data)
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


def _retrying(data: Mapping[str, Any]) -> str:
    due = f"again at {data['run_at']}" if data.get("run_at") else ""
    return _joined(_attempt(data), due, _error(data))


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


def _scale(data: Mapping[str, Any]) -> str:
    acts = (("hired", "hired"), ("taken_back", "took back"), ("retired", "retired"))
    done = ", ".join(f"{word} {data[key]}" for key, word in acts if data.get(key))
    size = f"{data.get('size_before')} -> {data.get('desired')}"
    return _joined(str(data.get("node") or ""), size, done)


def _reloaded(data: Mapping[str, Any]) -> str:
    changed = ", ".join(map(str, data.get("changed") or ()))
    return _joined(str(data.get("node") or ""), str(data.get("result") or ""), changed)


def _plain(data: Mapping[str, Any]) -> str:
    """For what has no words of its own."""
    return ", ".join(f"{name}={value}" for name, value in data.items())


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


_WORDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "job.assigned": _attempt,
    "job.started": _attempt,
    "job.progress": _progress,
    "job.phase_completed": _phase_completed,
    "job.retrying": _retrying,
    "job.requeued": _because,
    "job.succeeded": _attempt,
    "job.failed": _failed,
    "job.canceled": _because,
    "job.paused": _because,
    "job.webhook_delivered": _webhook,
    "job.webhook_failed": _webhook,
    "worker.hired": _worker,
    "worker.retired": _worker,
    "worker.dismissed": _worker,
    "scale.decided": _scale,
    "node.started": _node,
    "node.draining": _node,
    "node.stopped": _node,
    "config.reloaded": _reloaded,
}
