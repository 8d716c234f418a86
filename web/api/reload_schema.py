"""The shapes of what a reload answers, as JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from musterd.config.differences import When
from musterd.web.api.cluster_schema import COUNT, TEXT, Schema, whole

NAMES: Schema = {"type": "array", "items": TEXT}
VALUES: Mapping[str, Schema] = {"from": {}, "to": {}}  # any JSON value
CHANGE = whole(key=TEXT, **VALUES, applies={"enum": list(get_args(When))})
CHANGES: Schema = {"type": "array", "items": CHANGE}
NAMED = whole(
    added=NAMES, changed={"type": "array", "items": whole(name=TEXT, keys=CHANGES)}, removed=NAMES
)
RELOADED = whole(
    node=TEXT,
    result={"enum": ["applied", "unchanged"]},
    generation=COUNT,
    changed=CHANGES,
    restart=NAMES,
    tenants=whole(added=NAMES, removed=NAMES, moved=NAMES),
    kinds=NAMED,
    schedules=NAMED,
)
STARTED = whole(node=TEXT, result={"enum": ["started"]})
