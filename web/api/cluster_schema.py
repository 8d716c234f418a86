"""The shapes of nodes and duties, as JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from musterd.manager.node.status import NodePhase

Schema = Mapping[str, object]


def whole(**properties: Schema) -> Schema:
    """An object that has these names, all of them, and no other."""
    return {
        "type": "object",
        "required": list(properties),
        "additionalProperties": False,
        "properties": properties,
    }


TEXT: Schema = {"type": "string"}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}
TIME: Schema = {"type": "string", "format": "date-time"}
MAYBE_TIME: Schema = {"type": ["string", "null"], "format": "date-time"}
COUNT: Schema = {"type": "integer", "minimum": 0}
MAYBE_COUNT: Schema = {"type": ["integer", "null"], "minimum": 0}
NUMBER: Schema = {"type": "number"}
MAYBE_NUMBER: Schema = {"type": ["number", "null"]}
YES_OR_NO: Schema = {"type": "boolean"}

KIND_THERE = whole(
    broken=MAYBE_TEXT, max_running=MAYBE_COUNT, runs=COUNT, mean_seconds=NUMBER,
    deviation_seconds=NUMBER,
)  # fmt: skip
NODE_SEEN = whole(
    id={"type": "string", "format": "uuid"},
    node=TEXT,
    version=TEXT,
    live=YES_OR_NO,
    phase={"enum": list(get_args(NodePhase))},
    started_at=TIME,
    heartbeat_at=TIME,
    silent_seconds=NUMBER,
    idle=COUNT,
    busy=COUNT,
    retiring=COUNT,
    default_count=COUNT,
    max_count=COUNT,
    config_generation=MAYBE_COUNT,
    config_hash=MAYBE_TEXT,
    load=MAYBE_NUMBER,
    kinds={"type": "object", "additionalProperties": KIND_THERE},
    kinds_whole=YES_OR_NO,
)
NODES_SCHEMA = whole(
    nodes={"type": "array", "items": NODE_SEEN}, warnings={"type": "array", "items": TEXT}
)

DUTY = whole(
    duty=TEXT,
    tenant=TEXT,
    node=MAYBE_TEXT,
    acquired_at=MAYBE_TIME,
    heartbeat_at=MAYBE_TIME,
    held_for=MAYBE_NUMBER,
    last_run_at=MAYBE_TIME,
    runs=COUNT,
    items=COUNT,
    errors=COUNT,
    last_error=MAYBE_TEXT,
    hand_overs=COUNT,
)
DUTIES_SCHEMA = whole(duties={"type": "array", "items": DUTY})
