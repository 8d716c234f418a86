"""What the web side needs of the daemon: values, the calls behind its routes, bearer tokens."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from attrs import define, frozen

from musterd.catalog.kinds import Catalog
from musterd.config.credentials import BearerToken
from musterd.config.schedules import Schedule
from musterd.config.settings import HttpScope
from musterd.config.webhook_urls import STRICT, UrlPolicy
from musterd.manager.events.feed.feed import Feed
from musterd.manager.metrics.metrics import Metrics
from musterd.manager.node.status import Decision, NodeStatus, WorkerView
from musterd.manager.reload.outcome import ReloadOutcome
from musterd.store.engine import Engine
from musterd.store.payload import PayloadLimits
from musterd.store.queue import Counts

ENVELOPE_BYTES = 16_384  # what may stand around a payload: the other options, and white space


class NodeView(Protocol):
    """A node as it sees itself. Each call is cheap and returns at once."""

    def status(self) -> NodeStatus: ...


@frozen
class TenantAccess:
    """One tenant, as far as the routes need it. Every call but those of the engine is cheap."""

    name: str
    engine: Engine
    limits: PayloadLimits
    catalog: Callable[[], Catalog]
    snapshot: Callable[[], Awaitable[Counts | None]]  # shared by all who look; None = store silent
    workers: Callable[[], Sequence[WorkerView]]
    decisions: Callable[[], Sequence[Decision]]  # the supervisor's journal, newest last
    feed: Feed
    at_rest: Callable[[], bool] = lambda: False  # nothing happens in its store, as far as is known
    webhooks: UrlPolicy = STRICT  # where the end of a job may be told
    schedules: Callable[[], Mapping[str, Schedule]] = dict  # those that make jobs of this tenant


@frozen
class ReloadAccess:
    """How the node is told to read its configuration anew: `soon` without waiting for it;
    `why_not` says why it can't now, or nothing.
    """

    ask: Callable[[], Awaitable[ReloadOutcome]]
    soon: Callable[[], None]
    why_not: Callable[[], str]


@frozen
class HttpDeps:
    """`tenant` gives the tenant of a tenant that this node serves; `default` always has one.

    `drain` lets the node end as TERM does; a second call changes nothing. `body_bytes_max` bounds
    every request's body of the moment, whatever its route.
    """

    listen: str
    keys: Keys
    node: NodeView
    tenant: Callable[[str], TenantAccess | None]
    drain: Callable[[], None]
    refresh: Callable[[], Awaitable[None]]  # tells the metrics of all tenants' queues
    reload: ReloadAccess
    body_bytes_max: Callable[[], int]
    event_readers_max: int
    metrics: Metrics
    log: logging.Logger


NOBODY = BearerToken("", "", ("admin",))  # whoever asks where no token is asked for


def may(token: BearerToken, scope: HttpScope) -> bool:
    """`admin` may do everything; the others each what they say."""
    return "admin" in token.scopes or scope in token.scopes


@define(eq=False)
class Keys:
    """All tokens; where there are none, everybody who can reach the daemon may do everything. A
    reload puts others in their place.
    """

    tokens: Sequence[BearerToken] = ()

    def holder(self, authorization: str) -> BearerToken | None:
        """Gives whose token stands in an `Authorization` header; None = nobody's.

        It takes as long whichever token it is, or is like.
        """
        if not self.tokens:
            return NOBODY
        scheme, _, given = authorization.partition(" ")
        found: BearerToken | None = None
        for token in self.tokens:
            same = hmac.compare_digest(given.strip().encode("latin-1"), token.secret.encode())
            found = token if same else found
        return found if scheme.lower() == "bearer" else None
