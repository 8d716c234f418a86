"""What the web side needs of the daemon: values and three calls, nothing to write with."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from attrs import field, frozen

from musterd.manager.metrics import Metrics
from musterd.manager.view import Decision, NodeStatus, WorkerView
from musterd.store.job import Counts


class NodeView(Protocol):
    """A node as it sees itself. Each call is cheap and returns at once."""

    def status(self) -> NodeStatus: ...

    def workers(self) -> Sequence[WorkerView]: ...

    def decisions(self) -> Sequence[Decision]:
        """The journal of the supervisor, newest last."""
        ...


@frozen
class HttpPlan:
    """`token` is the bearer token itself, wherever it was read from; empty = none is asked for."""

    listen: str
    token: str = field(repr=False)
    node: NodeView
    counts: Callable[[], Awaitable[Counts]]
    metrics: Metrics
    log: logging.Logger
