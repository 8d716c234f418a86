"""How traces and the settings of a simulation are shown. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from musterd.config.toml_text import plain
from musterd.manager.scaling.model.figures import PLACES, waits_object, waits_of
from musterd.manager.scaling.model.settings import ModelSettings
from musterd.manager.scaling.model.trace import Trace
from musterd.store.words import count_text, duration_text, plural, time_text


def trace_object(trace: Trace) -> dict[str, Any]:
    return {
        "begun_at": time_text(trace.begun_at),
        "span_seconds": trace.span_seconds,
        "attempts": len(trace),
        **waits_object(waits_of(trace.waits)),
        "due_unknown": trace.left_out.undue,
        "nodes": trace.nodes,
        "pick_up_seconds": round(trace.pick_up_seconds, PLACES),
        "handover_seconds": round(trace.handover_seconds, PLACES),
        "guarded_seconds": round(sum(until - since for since, until in trace.guarded), PLACES),
        "busy_most": trace.most_at_once,
        "busy_seconds": round(trace.busy_seconds, 6),
        "left_out": attrs.asdict(trace.left_out, filter=lambda field, _: field.name != "undue"),
    }


def trace_lines(trace: Trace) -> list[str]:
    """What was read, and what could not be used."""
    begun = (time_text(trace.begun_at) or "")[:19].replace("T", " ")
    span = duration_text(trace.span_seconds)
    nodes = f" on {trace.nodes} nodes" if trace.nodes > 1 else ""
    lines = [f"trace: {plural(len(trace), 'attempt')} in {span} from {begun}Z{nodes}"]
    left = trace.left_out
    parts = (
        (left.running, "still running"),
        (left.waiting, "never started"),
        (left.unstarted, "whose start is not in the log"),
    )
    if said := ", ".join(f"{count_text(count)} {what}" for count, what in parts if count):
        lines.append(f"left out: {said}")
    if left.undue:
        count = plural(left.undue, "attempt")
        lines.append(f"the log does not say when {count} became due: assumed due at their start")
    if trace.pick_up_seconds or trace.handover_seconds:
        idle, busy = (duration_text(one) for one in (trace.pick_up_seconds, trace.handover_seconds))
        lines.append(f"an idle worker had a job after {idle}, a busy one the next after {busy}")
    if trace.guarded:
        held = duration_text(sum(until - since for since, until in trace.guarded))
        lines.append(f"the guard held the crew for {held}: it holds the simulated one then")
    if left.cut:
        lines.append("no more can be simulated at once: anything later was not read")
    return lines


def settings_object(settings: ModelSettings) -> dict[str, Any]:
    policy = settings.policy
    return {
        "workers.default_count": policy.default_count,
        "workers.max_count": policy.max_count,
        "workers.scale_interval_ms": round(settings.interval_seconds * 1000),
        "scaling.policy": policy.policy,
        "scaling.max_wait_seconds": policy.promises.max_wait_seconds,
        "scaling.headroom": policy.promises.headroom,
        "scaling.up_cooldown_seconds": policy.up_cooldown_seconds,
        "scaling.down_cooldown_seconds": policy.down_cooldown_seconds,
        "scaling.stabilization_seconds": policy.stabilization_seconds,
        "scaling.hours": plain(settings.hours),
        "scaling.guard": plain(policy.guard),
        "scaling.mode": policy.mode,
        "scaling.up_step": policy.steps.up,
        "scaling.down_step": policy.steps.down,
        "scaling.tolerance_percent": policy.steps.tolerance_percent,
        "limits.max_running": policy.max_running or 0,
        "kinds.max_running": dict(settings.caps),
        "nodes": settings.nodes,
    }


def changed_settings(before: ModelSettings, after: ModelSettings) -> Mapping[str, tuple[Any, Any]]:
    """Before and after, by name."""
    old, new = settings_object(before), settings_object(after)
    return {name: (old[name], new[name]) for name in old if old[name] != new[name]}
