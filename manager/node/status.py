"""What one node says of itself: values for `status`, the page, the log and the tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import attrs

from musterd.workers.observer import Ignored

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
    limited_by: str | None  # of `scaling.Limit`
    hired: int
    taken_back: int
    retired: int
    share: int | None = None  # of what is due, what falls to this node
    others_free: int | None = None  # how many more workers the other nodes could have, as last seen
    room: int | None = None  # how many more jobs may run on all nodes; None = any number


@attrs.frozen
class Configured:
    """What a node runs with: how many configurations it has had since its start, and the
    `fingerprint` of the present one.
    """

    generation: int
    hash: str


@attrs.frozen
class TenantStatus:
    """How one tenant gets on, as its node sees it; the fields as in `NodeStatus`."""

    name: str
    phase: NodePhase
    engine: str
    store: str
    store_trouble: str | None
    store_trouble_seconds: float
    store_message: str | None
    idle: int
    busy: int
    retiring: int
    default_count: int
    max_count: int
    depth: int | None
    settled_total: int
    retention_trouble: str | None  # why no job of it is deleted


@attrs.frozen
class NodeStatus:
    """One screen's worth of truth about a running daemon. The store and the decision are the
    default tenant's, the counts are those of all tenants together.
    """

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
    ignored: Sequence[Ignored] = ()  # requests that the work of this node does not obey
    tenants: tuple[TenantStatus, ...] = ()
    generation: int = 1  # of its configuration
    reload_faults: tuple[str, ...] = ()  # why the configuration offered last was refused
