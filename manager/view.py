"""What one node says of itself: values for `status`, the page, the log and the tests."""

from __future__ import annotations

from typing import Literal

import attrs

NodePhase = Literal["starting", "running", "draining", "stopped"]


@attrs.frozen
class WorkerView:
    """One worker of the crew, now."""

    worker: int
    state: Literal["idle", "busy", "retiring"]
    job_id: int | None
    kind: str | None
    busy_seconds: float


@attrs.frozen
class Decision:
    """One tick of the supervisor, whole: what was seen, what was wished, what held it back, what
    came of it.
    """

    at: float  # seconds since the epoch, for people
    policy: str
    due: int | None  # None = the observation failed
    busy: int
    size_before: int
    raw_wish: int | None
    desired: int
    limited_by: (
        str | None
    )  # min | max | up_cooldown | down_cooldown | stabilization | busy | no_observation
    hired: int
    taken_back: int
    retired: int


@attrs.frozen
class NodeStatus:
    """One screen's worth of truth about a running daemon."""

    node: str
    version: str
    phase: NodePhase
    up_seconds: float
    engine: str
    store: str  # address without secrets
    store_trouble: str | None  # see store.errors.StoreUnavailable.trouble
    store_trouble_seconds: float
    store_message: str | None
    idle: int
    busy: int
    retiring: int
    default_count: int
    max_count: int
    depth: int | None  # due and claimable as last seen, bounded
    settled_total: int
    drain_seconds_left: float | None
    last_decision: Decision | None
