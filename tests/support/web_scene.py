"""A node that is what its values say, and the web side over it."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import attrs
import trio

from musterd.config.settings import Metrics as MetricsSettings
from musterd.manager.http.plan import HttpPlan
from musterd.manager.http.serving import serve
from musterd.manager.metrics import Metrics
from musterd.manager.view import Decision, NodeStatus, WorkerView
from musterd.store.job import Counts, JobState
from tests.support.http_client import Answer, ask

COUNTS = Counts({JobState.QUEUED: 3, JobState.SUCCEEDED: 5}, 8, 2, 1.5, None, None)
STATUS = NodeStatus(
    node="n1",
    version="1.2.3",
    phase="running",
    up_seconds=61.0,
    engine="sqlite",
    store="sqlite:///x.db",
    store_trouble=None,
    store_trouble_seconds=0.0,
    store_message=None,
    idle=1,
    busy=1,
    retiring=0,
    default_count=2,
    max_count=8,
    depth=2,
    settled_total=5,
    drain_seconds_left=None,
    last_decision=None,
)
WORKERS = (WorkerView(1, "busy", 7, "<b>bold</b>", 0.5), WorkerView(2, "idle", None, None, 0.0))
DECISIONS = (
    Decision(1.0, "demand", 2, 1, 1, 3, 2, "up_cooldown", 1, 0, 0),
    Decision(2.0, "demand", None, 1, 2, None, 2, "no_observation", 0, 0, 0),
)


@attrs.define
class StillNode:
    """A node whose answers stand still until a test changes them."""

    seen: NodeStatus = STATUS
    crew: Sequence[WorkerView] = WORKERS
    journal: Sequence[Decision] = DECISIONS

    def status(self) -> NodeStatus:
        return self.seen

    def workers(self) -> Sequence[WorkerView]:
        return self.crew

    def decisions(self) -> Sequence[Decision]:
        return self.journal


@attrs.define
class Web:
    """The web side while it serves."""

    address: str
    node: StillNode

    async def get(
        self, path: str, headers: Mapping[str, str] | None = None, *, method: str = "GET"
    ) -> Answer:
        return await trio.to_thread.run_sync(
            lambda: ask(self.address, path, headers, method=method)
        )


async def steady_counts() -> Counts:
    await trio.lowlevel.checkpoint()
    return COUNTS


@asynccontextmanager
async def serving(
    *,
    listen: str = "127.0.0.1:0",
    token: str = "",
    counts: Callable[[], Awaitable[Counts]] = steady_counts,
) -> AsyncGenerator[Web, None]:
    """Serves while the block lasts."""
    node = StillNode()
    metrics = Metrics(MetricsSettings((1.0,), (1.0,), 5), "1.2.3")
    plan = HttpPlan(listen, token, node, counts, metrics, logging.getLogger("musterd.test"))
    async with trio.open_nursery() as nursery:
        address: str = await nursery.start(serve, plan)
        yield Web(address, node)
        nursery.cancel_scope.cancel()
