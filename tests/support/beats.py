"""Nodes that exist only by their sign of life."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

from musterd.store.engine import Engine
from musterd.store.nodes import Beat, KnownKind, kinds_text

REPORT = {"report": KnownKind()}


def beat_of(
    name: str = "north",
    kinds: Mapping[str, KnownKind] | None = REPORT,
    node_id: UUID | None = None,
    max_running: int | None = None,
    **values: Any,
) -> Beat:
    """A running node with two idle workers of at most eight; `kinds` None = not told this time."""
    counts = {"idle": 2, "busy": 0, "retiring": 0, "default_count": 2, "max_count": 8}
    fields: dict[str, Any] = {
        "version": "1",
        "up_seconds": 60.0,
        "phase": "running",
        **counts,
        **values,
    }
    text = None if kinds is None else kinds_text(kinds, max_running)
    return Beat(id=node_id or uuid4(), name=name, kinds=text, **fields)


async def live_node(engine: Engine, name: str = "north", **values: Any) -> Beat:
    beat = beat_of(name, **values)
    await engine.nodes.beat(beat)
    return beat
