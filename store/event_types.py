"""Every type of event, with what its data holds. Readers skip types and keys that they do not know;
a type that is here keeps its meaning and its keys.
"""

from __future__ import annotations

from collections.abc import Mapping

from musterd.config.faults import did_you_mean

_STARTED = ("attempt", "node", "worker")
_STOPPED = ("attempt", "reason")

# Of jobs, in the order in which a job may meet them. An end that no attempt has led to (a job that
# was canceled while it waited) has no `attempt`; a job that is held has `state`.
JOB_EVENTS: Mapping[str, tuple[str, ...]] = {
    "job.enqueued": ("state",),
    "job.released": (),
    "job.assigned": _STARTED,
    "job.started": _STARTED,
    "job.progress": ("overall", "phase", "progress", "note"),
    "job.phase_completed": ("attempt", "phase", "progress", "overall"),
    "job.retrying": ("attempt", "error", "run_at"),
    "job.requeued": ("attempt", "outcome", "reason"),
    "job.succeeded": ("attempt",),
    "job.failed": ("attempt", "error"),
    "job.canceled": _STOPPED,
    "job.paused": _STOPPED,
    "job.resumed": (),
    "job.cleared": (),
    "job.webhook_delivered": ("url", "attempts", "status"),
    "job.webhook_failed": ("url", "attempts", "error"),
    "job.stale": ("state",),
    "job.deleted": ("state",),
}

# Of nodes, which tell them themselves.
NODE_EVENTS: Mapping[str, tuple[str, ...]] = {
    "worker.hired": ("node", "worker"),
    "worker.retired": ("node", "worker"),
    "worker.dismissed": ("node", "worker"),
    "scale.decided": (
        *("node", "at", "policy", "due", "busy", "size_before", "raw_wish", "desired"),
        *("limited_by", "hired", "taken_back", "retired", "share", "others_free", "room"),
    ),
    "duty.acquired": ("node", "duty"),
    "duty.released": ("node", "duty", "reason"),
    "node.started": ("node", "version"),
    "node.draining": ("node", "version"),
    "node.stopped": ("node", "version"),
    "config.reloaded": ("node", "result", "generation", "changed"),
}

EVENTS: Mapping[str, tuple[str, ...]] = {**JOB_EVENTS, **NODE_EVENTS}


EVENT_TYPES = tuple(EVENTS)
GROUPS = tuple(dict.fromkeys(name.partition(".")[0] for name in EVENT_TYPES))


def event_type(text: str) -> str:
    """Reads a type, or a group of types. Raises ValueError, which says what is wanted."""
    if text in EVENT_TYPES or text in GROUPS:
        return text
    hint = did_you_mean(text, (*EVENT_TYPES, *GROUPS)) or f"or a group: {', '.join(GROUPS)}"
    raise ValueError(f"found {text!r}, wanted a type of event, as job.failed is; {hint}")
