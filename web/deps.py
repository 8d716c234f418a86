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
from musterd.manager.events.feed import Feed
from musterd.manager.metrics.metrics import Metrics
from musterd.manager.node.status import Decision, NodeStatus, WorkerView
from musterd.manager.reload.outcome import ReloadOutcome
from musterd.store.engine import Engine
from musterd.store.payload import PayloadLimits
from musterd.store.queue import Counts

ENVELOPE_BYTES = 16_384  # around the payload: the other options, and white space


class NodeView(Protocol):
    """A node as it sees itself. Each call is cheap and returns at once."""

    def status(self) -> NodeStatus: ...


@frozen
class TenantAccess:
    """One tenant, as far as the routes need it. Calls other than the engine's return at once."""

    name: str
    engine: Engine
    limits: PayloadLimits
    catalog: Callable[[], Catalog]
    snapshot: Callable[
        [], Awaitable[Counts | None]
    ]  # shared by all readers; None = the store does not answer
    workers: Callable[[], Sequence[WorkerView]]
    decisions: Callable[[], Sequence[Decision]]  # the supervisor's journal, newest last
    feed: Feed
    at_rest: Callable[[], bool] = lambda: False  # nothing is known to happen in its store
    webhooks: UrlPolicy = STRICT  # URLs that webhooks may go to
    schedules: Callable[[], Mapping[str, Schedule]] = dict  # those that make jobs of this tenant


@frozen
class ReloadAccess:
    """Reloading the node: `ask` waits for the result, `soon` does not; `why_not` says why the node
    cannot reload now, or is empty.
    """

    ask: Callable[[], Awaitable[ReloadOutcome]]
    soon: Callable[[], None]
    why_not: Callable[[], str]


@frozen
class HttpDeps:
    """`tenant` gives access to a tenant that this node serves; `default` always exists.

    `drain` drains the node like TERM; a second call changes nothing. `body_bytes_max` bounds the
    body of every request.
    """

    listen: str
    keys: Keys
    node: NodeView
    tenant: Callable[[str], TenantAccess | None]
    drain: Callable[[], None]
    refresh: Callable[[], Awaitable[None]]  # updates the metrics of all queues
    reload: ReloadAccess
    body_bytes_max: Callable[[], int]
    event_readers_max: int
    metrics: Metrics
    log: logging.Logger


NOBODY = BearerToken("", "", ("admin",))  # callers, if no token is configured


def may(token: BearerToken, scope: HttpScope) -> bool:
    """`admin` may do everything; the others each what they say."""
    return "admin" in token.scopes or scope in token.scopes


@define(eq=False)
class Keys:
    """All bearer tokens. With none, everyone who can reach the daemon may do everything. A reload
    replaces them.
    """

    tokens: Sequence[BearerToken] = ()

    def holder(self, authorization: str) -> BearerToken | None:
        """The token in an `Authorization` header; None = an unknown one.

        Takes the same time whatever the token.
        """
        if not self.tokens:
            return NOBODY
        scheme, _, secret = authorization.partition(" ")
        found: BearerToken | None = None
        for token in self.tokens:
            same = hmac.compare_digest(secret.strip().encode("latin-1"), token.secret.encode())
            found = token if same else found
        return found if scheme.lower() == "bearer" else None
