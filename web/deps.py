"""What the web side needs of the daemon, and bearer tokens."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from attrs import define, frozen

from musterd.catalog.kinds import Catalog
from musterd.config.credentials import BearerToken
from musterd.config.outside import HttpScope
from musterd.config.schedules import Schedule
from musterd.config.settings import Settings
from musterd.config.webhook_urls import STRICT, UrlPolicy
from musterd.manager.events.feed import Feed
from musterd.manager.metrics.metrics import Metrics
from musterd.manager.node.status import Decision, NodeStatus, WorkerView
from musterd.manager.reload.outcome import ReloadOutcome
from musterd.manager.scaling.journal import JournalPage, Period
from musterd.store.engine import Engine
from musterd.store.input import PayloadLimits
from musterd.store.queue import Counts
from musterd.store.retention import DeleteRequest

ENVELOPE_BYTES = 16_384  # around the payload: the other options, and white space


class NodeView(Protocol):
    """The node as the web side knows it; see `Daemon`."""

    @property
    def settings(self) -> Settings: ...

    def status(self) -> NodeStatus:
        """Cheap; returns at once."""
        ...

    def drain(self) -> None: ...

    async def reload(self) -> ReloadOutcome: ...

    def reload_soon(self) -> None: ...

    def why_no_reload(self) -> str: ...


@frozen
class TenantAccess:
    """One tenant for the routes. Calls that are no coroutines return at once."""

    name: str
    engine: Engine
    limits: PayloadLimits
    catalog: Callable[[], Catalog]
    # Shared by all readers; None = the store does not answer.
    snapshot: Callable[[], Awaitable[Counts | None]]
    remarks: Callable[[], Awaitable[Sequence[str]]]  # shared too
    workers: Callable[[], Sequence[WorkerView]]
    decisions: Callable[[], Sequence[Decision]]  # the supervisor's latest, newest last
    journal: Callable[[Period], Awaitable[JournalPage]]  # of all nodes; asks the store
    wall_clock: Callable[[], float]
    feed: Feed
    at_rest: Callable[[], bool] = lambda: False  # nothing is known to happen in its store
    webhooks: UrlPolicy = STRICT  # URLs that webhooks may go to
    schedules: Callable[[], Mapping[str, Schedule]] = dict  # those that make jobs of this tenant
    delete_request: Callable[[str], DeleteRequest] = DeleteRequest  # in somebody's name


@frozen
class HttpDeps:
    """`tenant` returns a tenant of this node; `default` always exists."""

    keys: Keys
    node: NodeView
    tenant: Callable[[str], TenantAccess | None]
    refresh: Callable[[], Awaitable[None]]  # updates the metrics of all queues
    body_bytes_max: Callable[[], int]
    event_readers_max: int
    metrics: Metrics
    log: logging.Logger


NOBODY = BearerToken("", "", ("admin",))  # callers, if no token is configured


def may(token: BearerToken, scope: HttpScope) -> bool:
    """`admin` may do everything, `read` also reads metrics."""
    wider = ("admin", "read") if scope == "metrics" else ("admin",)
    return scope in token.scopes or any(one in token.scopes for one in wider)


@define(eq=False)
class Keys:
    """All bearer tokens; a reload replaces them. Without any, every caller may do everything."""

    tokens: Sequence[BearerToken] = ()

    def holder(self, authorization: str) -> BearerToken | None:
        """The token in an `Authorization` header; None = unknown. Takes constant time."""
        if not self.tokens:
            return NOBODY
        scheme, _, secret = authorization.partition(" ")
        found: BearerToken | None = None
        for token in self.tokens:
            same = hmac.compare_digest(secret.strip().encode("latin-1"), token.secret.encode())
            found = token if same else found
        return found if scheme.lower() == "bearer" else None
