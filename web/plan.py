"""What the web side needs of the daemon: values, and the few calls behind its routes."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from attrs import frozen

from musterd.catalog.kinds import Catalog
from musterd.config.schedules import Schedule
from musterd.config.webhook_urls import STRICT, UrlPolicy
from musterd.manager.events.feed.feed import Feed
from musterd.manager.metrics.metrics import Metrics
from musterd.manager.node.status import Decision, NodeStatus, WorkerView
from musterd.manager.reload.outcome import Outcome
from musterd.store.engine import Engine
from musterd.store.job import Counts, JobRecord, JobState
from musterd.store.payload import PayloadLimits
from musterd.web.server.keys import Keys

ENVELOPE_BYTES = 16_384  # what may stand around a payload: the other options, and white space


class NodeView(Protocol):
    """A node as it sees itself. Each call is cheap and returns at once."""

    def status(self) -> NodeStatus: ...


@frozen
class TargetSeen:
    """Where the jobs of one target stand."""

    job_id: int | None = None  # whose turn it is; None = nobody's: the next one that comes
    job_state: JobState | None = None
    reserved: bool = False  # it is the next, and no worker has it yet
    waiting: int = 0  # how many stand behind it, counted up to a bound
    next_ids: Sequence[int] = ()  # the first of those, in their order


@frozen
class TenantDoor:
    """One tenant, as far as the routes need it. Every call but those of the engine is cheap."""

    name: str
    engine: Engine
    limits: PayloadLimits
    catalog: Callable[[], Catalog]
    snapshot: Callable[[], Awaitable[Counts | None]]  # shared by all who look; None = store silent
    workers: Callable[[], Sequence[WorkerView]]
    decisions: Callable[[], Sequence[Decision]]  # the supervisor's journal, newest last
    target: Callable[[str], Awaitable[TargetSeen]]
    target_of: Callable[[JobRecord], str | None]
    feed: Feed
    at_rest: Callable[[], bool] = lambda: False  # nothing happens in its store, as far as is known
    webhooks: UrlPolicy = STRICT  # where the end of a job may be told
    schedules: Callable[[], Mapping[str, Schedule]] = dict  # those that make jobs of this tenant


@frozen
class ReloadDoor:
    """How the node is told to read its configuration anew: `soon` without waiting for it;
    `why_not` says why it can't now, or nothing.
    """

    ask: Callable[[], Awaitable[Outcome]]
    soon: Callable[[], None]
    why_not: Callable[[], str]


@frozen
class HttpPlan:
    """`tenant` gives the door of a tenant that this node serves; `default` always has one.

    `drain` lets the node end as TERM does; a second call changes nothing. `body_bytes_max` bounds
    every request's body of the moment, whatever its route.
    """

    listen: str
    keys: Keys
    node: NodeView
    tenant: Callable[[str], TenantDoor | None]
    drain: Callable[[], None]
    refresh: Callable[[], Awaitable[None]]  # tells the metrics of all tenants' queues
    reload: ReloadDoor
    body_bytes_max: Callable[[], int]
    event_readers_max: int
    metrics: Metrics
    log: logging.Logger
