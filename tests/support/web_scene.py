"""A node that is what its values say, and the web side over it and a store in memory."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import attrs
import trio

from musterd.catalog.kinds import Catalog
from musterd.catalog.load import catalog_of
from musterd.config.changes import Changes
from musterd.config.credentials import BearerToken
from musterd.config.listen import listen_address
from musterd.config.load import load
from musterd.config.settings import Metrics as MetricsSettings
from musterd.config.settings import Settings
from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.manager.events.feed import Feed
from musterd.manager.metrics.metrics import Metrics
from musterd.manager.node.status import Decision, NodeStatus, StoreAndCrew, TenantStatus, WorkerView
from musterd.manager.reload.outcome import ReloadOutcome, ReloadTaken, ReloadUnavailable
from musterd.manager.scaling.journal import JournalPage, Period, packed, page_of
from musterd.manager.tenancy.tenant_duties import COUNTS_FRESH_SECONDS, StoreCache
from musterd.store.engine import Engine
from musterd.store.input import PayloadLimits
from musterd.store.lifecycle import JobState
from musterd.store.queue import Counts
from musterd.store.sqlite.engine import SqliteEngine
from musterd.web.deps import ENVELOPE_BYTES, HttpDeps, Keys, TenantAccess
from musterd.web.samples import Samples
from musterd.web.server.listening import address_text, listener_at
from musterd.web.server.serving import serve_at
from tests.support.http_client import Answer, ask

SETTINGS = load(None, {}, (), Path("no.such.file")).settings
CATALOG: Catalog = catalog_of(SETTINGS, {})
PAYLOAD_BYTES_MAX = 100_000
SCHEDULES = load(
    None,
    {},
    (
        "schedules.nightly.kind=report",
        "schedules.nightly.cron=30 2 * * *",
        "schedules.pulse.kind=noop",
        "schedules.pulse.every_seconds=90",
    ),
    Path("no.such.file"),
).settings.schedules
EVENT_READERS_MAX = 3
COUNTS = Counts({JobState.QUEUED: 3, JobState.SUCCEEDED: 5}, 8, 2, 1.5, None, None)
CREW = StoreAndCrew(
    phase="running", engine="sqlite", store="sqlite:///x.db", store_trouble=None,
    store_trouble_seconds=0.0, store_message=None, idle=1, busy=1, retiring=0, default_count=2,
    max_count=8, depth=2, settled_total=5,
)  # fmt: skip
TENANT = TenantStatus(**attrs.asdict(CREW), name="default", retention_trouble=None)
STATUS = NodeStatus(
    **attrs.asdict(CREW), node="n1", version="1.2.3", up_seconds=61.0, drain_seconds_left=None,
    last_decision=None, tenants=(TENANT,),
)  # fmt: skip
WORKERS = (WorkerView(1, "busy", 7, "<b>bold</b>", 0.5), WorkerView(2, "idle", None, None, 0.0))
DECISIONS = (
    Decision(1.0, "demand", 2, 1, 1, 3, 2, "up_cooldown", 1, 0, 0),
    Decision(2.0, "demand", None, 1, 2, None, 2, "no_observation", 0, 0, 0),
)


@attrs.define
class StillNode:
    """A node whose answers stand still until a test changes them."""

    seen: NodeStatus = STATUS
    settings: Settings = SETTINGS
    crew: Sequence[WorkerView] = WORKERS
    journal: Sequence[Decision] = DECISIONS
    drained: int = 0
    reloaded: int = 0
    reload_seconds: float = 0.0
    no_reload: str = ""
    outcome: ReloadOutcome = attrs.Factory(lambda: ReloadTaken(2, Changes(SETTINGS)))

    def status(self) -> NodeStatus:
        return self.seen

    def workers(self) -> Sequence[WorkerView]:
        return self.crew

    def decisions(self) -> Sequence[Decision]:
        return self.journal

    async def read_journal(self, period: Period) -> JournalPage:
        await trio.lowlevel.checkpoint()
        return page_of(period, (), packed(self.journal, UUID(int=1), self.seen.node))

    async def reload(self) -> ReloadOutcome:
        await trio.sleep(self.reload_seconds)
        self.reloaded += 1
        return ReloadUnavailable(self.no_reload) if self.no_reload else self.outcome

    def reload_soon(self) -> None:
        self.reloaded += 1

    def why_no_reload(self) -> str:
        return self.no_reload

    def drain(self) -> None:
        self.drained += 1
        self.seen = attrs.evolve(self.seen, phase="draining", drain_seconds_left=300.0)


@attrs.define
class Web:
    """The web side while it serves."""

    address: str
    node: StillNode
    engine: Engine
    feed: Feed

    async def get(
        self, path: str, headers: Mapping[str, str] | None = None, *, method: str = "GET"
    ) -> Answer:
        return await trio.to_thread.run_sync(
            lambda: ask(self.address, path, headers, method=method)
        )

    async def post(
        self, path: str, value: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Posts the value as JSON; bytes as they are; nothing for None."""
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        if value is None:
            return await self.get(path, headers, method="POST")
        sent = {"Content-Type": "application/json", **(headers or {})}
        return await trio.to_thread.run_sync(
            lambda: ask(self.address, path, sent, method="POST", body=body)
        )


async def steady_counts() -> Counts:
    await trio.lowlevel.checkpoint()
    return COUNTS


async def no_remarks() -> Sequence[str]:
    await trio.lowlevel.checkpoint()
    return ()


def refreshing(tenant: TenantAccess) -> Callable[[], Awaitable[None]]:
    async def refresh() -> None:
        await tenant.snapshot()

    return refresh


def http_deps(
    node: StillNode,
    store: Engine,
    counts: Callable[[], Awaitable[Counts]] = steady_counts,
    tokens: Sequence[BearerToken] = (),
    remarks: Callable[[], Awaitable[Sequence[str]]] = no_remarks,
) -> HttpDeps:
    """What the web side is made of."""
    metrics = Metrics(MetricsSettings((1.0,), (1.0,), 5, 48.0), "1.2.3")
    tenant = TenantAccess(
        name=DEFAULT_TENANT,
        engine=store,
        limits=PayloadLimits(PAYLOAD_BYTES_MAX, 20),
        catalog=lambda: CATALOG,
        snapshot=StoreCache(counts, COUNTS_FRESH_SECONDS, metrics.counts).get,
        remarks=remarks,
        workers=node.workers,
        decisions=node.decisions,
        journal=node.read_journal,
        wall_clock=lambda: 10.0,
        feed=Feed(DEFAULT_TENANT, store.events, counts),
        schedules=lambda: SCHEDULES,
    )

    return HttpDeps(
        keys=Keys(tokens),
        node=node,
        tenant={tenant.name: tenant}.get,
        refresh=refreshing(tenant),
        event_readers_max=EVENT_READERS_MAX,
        body_bytes_max=lambda: PAYLOAD_BYTES_MAX + ENVELOPE_BYTES,
        metrics=metrics,
        log=logging.getLogger("musterd.test"),
    )


def store_in_memory() -> SqliteEngine:
    return SqliteEngine(":memory:", time.time, busy_timeout_seconds=1.0)


async def serve(
    deps: HttpDeps, listen: str, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED
) -> None:
    """Listens there until cancelled and passes the address to `started()`; returns at once if it is
    off. Raises `StartError` if it cannot listen there.
    """
    address = listen_address(listen)
    if address is None:
        task_status.started("")
        return
    with listener_at(address) as listener:
        task_status.started(address_text(listener))
        samples = Samples(deps)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(samples.run)
            await serve_at(deps, address, listener, samples)


@asynccontextmanager
async def serving(
    *,
    listen: str = "127.0.0.1:0",
    token: str = "",
    tokens: Sequence[BearerToken] = (),
    counts: Callable[[], Awaitable[Counts]] = steady_counts,
    engine: Engine | None = None,
) -> AsyncGenerator[Web, None]:
    """Serves while the block lasts; over a new store in memory unless there is an `engine`."""
    node, store = StillNode(), engine or store_in_memory()
    admin = [BearerToken("admin", token, ("admin",))] if token else []
    deps = http_deps(node, store, counts, (*admin, *tokens))
    tenant = deps.tenant(DEFAULT_TENANT)
    assert tenant is not None
    if engine is None:
        await store.open()
        await store.migrate()
    async with trio.open_nursery() as nursery:
        address: str = await nursery.start(serve, deps, listen)
        yield Web(address, node, store, tenant.feed)
        nursery.cancel_scope.cancel()
    if engine is None:
        await store.close()
