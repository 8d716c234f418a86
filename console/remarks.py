"""What is wrong, or soon will be, and what to do about it: the lower half of `musterd status`.

Pure: what the store and the daemon have said goes in, lines come out, the worst first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from musterd.console.asking import Asked
from musterd.store.words import count_text, cut, duration_text, one_line, plural

LATE_SECONDS = 60.0  # a job that is due for so long waits for workers that there are too few of
LONG_SECONDS = 6 * 3600.0
NAMES_MAX = 3
FAULT_WIDTH = 120


def remarks(
    asked: Asked, node: Mapping[str, Any] | None, crew: Mapping[str, Any] | None
) -> list[str]:
    """Of one tenant; `node` and `crew` are what the daemon here says of itself and of it."""
    found = [*_of_node(node, crew), *_of_store(asked, crew), *_of_nodes(asked)]
    return [one_line(each) for each in found]


def _of_node(node: Mapping[str, Any] | None, crew: Mapping[str, Any] | None) -> Iterator[str]:
    if crew is not None and crew["store_trouble"] is not None:
        since = duration_text(crew["store_trouble_seconds"])
        yield f"TROUBLE {crew['store_trouble']} for {since}: {crew['store_message'] or ''}"
    if node is None:
        return
    if faults := node.get("reload_faults"):
        more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
        first = cut(one_line(faults[0]), FAULT_WIDTH)
        yield f"REFUSED the new configuration: {first}{more}; mend it, then `musterd reload --wait`"
    for one in node.get("tenants", ()):
        if said := one.get("retention_trouble"):
            yield f"TROUBLE no job of {one['name']} is deleted: archive {said}"
    for one in node.get("ignored", ()):
        since = duration_text(one["seconds"])
        what = f"job {one['job_id']} ({one['kind']}) goes on"
        yield f"IGNORED {one['request']}: {what}, told to stop {since} ago"


def _of_store(asked: Asked, crew: Mapping[str, Any] | None) -> Iterator[str]:
    counts, troubles = asked.counts, asked.troubles
    if counts is None or troubles is None:
        return
    if counts.paused_at is not None:
        yield f"PAUSED  by {counts.paused_by or 'somebody'}: `musterd queue resume`"
    if troubles.halted_targets:
        names = ", ".join(cut(one_line(one), 30) for one in troubles.halted_first)
        halted = plural(troubles.halted_targets, "target")
        do = "`musterd jobs --state failed --state paused`, then resume or clear"
        yield f"HALTED  {halted} ({names}): {do}"
    if troubles.leases_overdue:
        late = plural(troubles.leases_overdue, "lease has", "leases have")
        yield f"LATE    {late} run out, and no node ends them: `musterd duties`"
    if troubles.oldest_seconds is not None and troubles.oldest_seconds >= LONG_SECONDS:
        name = f"job {troubles.oldest_id} ({cut(one_line(troubles.oldest_kind or ''), 30)})"
        since = duration_text(troubles.oldest_seconds)
        yield f"LONG    {name} runs for {since}: `musterd job {troubles.oldest_id}`"
    is_late = counts.due and counts.oldest_due_seconds >= LATE_SECONDS
    if is_late and counts.paused_at is None and crew is not None:
        size = crew["idle"] + crew["busy"]
        if size >= crew["max_count"]:
            yield "FULL    the crew is at its most: raise workers.max_count, or start another node"


def _of_nodes(asked: Asked) -> Iterator[str]:
    live = [node for node in asked.nodes if node.is_live]
    silent = [node.name for node in asked.nodes if not node.is_live]
    if silent:
        more = f" and {len(silent) - NAMES_MAX} more" if len(silent) > NAMES_MAX else ""
        names = ", ".join(cut(name, 40) for name in silent[:NAMES_MAX])
        yield f"SILENT  {names}{more}: died without a word; its jobs come back by themselves"
    if asked.counts is not None and asked.counts.due and not live:
        due = count_text(asked.counts.due)
        yield f"NOBODY  {due} due and no node is alive: `musterd run`"
    without = [one.duty for one in asked.duties if one.node is None]
    if live and without and asked.settings.duties.mode == "leader":
        yield f"DUTIES  nobody does {', '.join(without)}: `musterd duties`"
