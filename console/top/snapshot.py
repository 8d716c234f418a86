"""One look, for a pipe or a program: what the screen shows, as text or as one object. Pure."""

from __future__ import annotations

import attrs

from musterd.console.exits import Exit
from musterd.console.top.cells import plain
from musterd.console.top.drawing import draw
from musterd.console.top.header import judged
from musterd.console.top.state import Size, State, layout, resized
from musterd.manager.node.objects import counts_object
from musterd.store.board import BoardJob
from musterd.store.nodes import node_object
from musterd.store.shown import time_text
from musterd.store.words import one_line

COLUMNS_MIN = 200  # where no terminal says how wide it is


def text(state: State) -> list[str]:
    """All rows, whatever the height of a terminal."""
    rows = len(state.jobs) + sum(layout(Size(COLUMNS_MIN, 100))) - layout(Size(1, 100)).table
    whole = resized(attrs.evolve(state, chosen=None), Size(COLUMNS_MIN, max(rows, 20)))
    drawn = [plain(one) for one in draw(attrs.evolve(whole, chosen=None))[:-1]]
    while drawn and not drawn[-1]:
        drawn.pop()
    return drawn


def snapshot_object(state: State) -> dict[str, object]:
    """What the screen shows, as one object."""
    code, words = judged(state)
    seen = state.store
    node = None if state.node is None or state.node.whole is None else state.node.whole["node"]
    return {
        "healthy": code is Exit.DONE,
        "verdict": words,
        "tenant": state.tenant,
        "store": {"where": state.where, "error": state.trouble},
        "at": None if seen is None else time_text(seen.now),
        "counts": None if seen is None else counts_object(seen.counts),
        "node": node,
        "nodes": [] if seen is None else [node_object(one) for one in seen.nodes],
        "jobs": [job_brief(one) for one in state.jobs],
    }


def job_brief(job: BoardJob) -> dict[str, object]:
    """A job in short, by the names of the job object."""
    return {
        "id": job.id,
        "kind": job.kind,
        "state": job.state.value,
        "target": job.target,
        "priority": job.priority,
        "attempt": job.attempt,
        "created_at": time_text(job.created_at),
        "run_at": time_text(job.run_at),
        "started_at": time_text(job.started_at),
        "finished_at": time_text(job.finished_at),
        "node": job.node,
        "worker": job.worker,
        "request": job.request,
        "progress": job.progress,
        "waits_for_kind": job.parked,
        "waits_for_target": job.behind,
        "remark": one_line(job.remark),
    }
