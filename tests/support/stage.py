"""The product's own daemons on a store in memory, on a virtual clock."""

from __future__ import annotations

import logging
import random
import signal
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import attrs
import trio

from musterd.catalog.kinds import Catalog, Deterministic, WorkKind
from musterd.config.load import load
from musterd.config.settings import LiveSettings, Retry, Settings
from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.manager.metrics.metrics import InstrumentedEngine, Metrics
from musterd.manager.node.daemon import Daemon
from musterd.manager.node.status import Decision, WorkerView
from musterd.manager.node.systemd import ServiceManager
from musterd.manager.scaling.guard import Machine
from musterd.manager.tenancy.deps import DaemonDeps
from musterd.manager.tenancy.tenancy import Tenancy
from musterd.manager.webhooks.courier import Post
from musterd.store.idle_tenant_scan import TenantScan
from musterd.store.jobs import JobFilter, JobRecord, NewJob
from musterd.store.lifecycle import JobState
from musterd.store.sqlite.engine import SqliteEngine
from tests.support.assignments import KIND_DEFAULTS
from tests.support.faulty_engine import FaultyEngine
from tests.support.history import check_history
from tests.support.stage_idle_scan import wall_clock

T = TypeVar("T")

LOOK_SECONDS = 0.01
NO_FILE = Path("no-such-file.toml")
RETRY = Retry(3, "exponential", 1.0, 2.0, 300.0, "none")


def settings_with(file: Path | None = None, /, **changes: object) -> Settings:
    """The shipped defaults, or those of a file, but for `section__key=value`."""
    sets = [f"{name.replace('__', '.')}={value}" for name, value in changes.items()]
    return load(file, {}, sets, NO_FILE).settings


def live_settings(**changes: object) -> LiveSettings:
    return LiveSettings(settings_with(**changes))


def kind(name: str, duration_ms: int = 0, **values: Any) -> WorkKind:
    """A deterministic kind; what is left out is as in a catalog."""
    span_ms = values.pop("span_ms", 0)
    outcome = values.pop("outcome", "success")
    fail_first = values.pop("fail_first", 0)
    behaviour = Deterministic(duration_ms, duration_ms + span_ms, outcome, fail_first)
    return WorkKind(name, behaviour, **{**KIND_DEFAULTS, **values})


KINDS = (
    kind("noop"),
    kind("brief", 20),
    kind("report", 200),
    kind("slow", 5_000),
    kind("long", 100_000),
    kind("varied", 50, span_ms=200),
    kind("flaky", 100, retryable=True, fail_first=2),
    kind("broken", 100, outcome="fail"),
    kind("stubborn", 100, outcome="fail", retryable=True),
    kind("declined", 100, outcome="cancel"),
    kind("overdue", 3_000, time_limit_seconds=1.0),
    kind("once", 100_000, on_lease_lost="fail"),
)


class Events(logging.Handler):
    """What was logged, as (phrase, fields)."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[tuple[str, Mapping[str, Any]]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.getMessage(), getattr(record, "fields", {})))

    def named(self, phrase: str) -> list[Mapping[str, Any]]:
        return [fields for said, fields in self.lines if said == phrase]


@attrs.define(eq=False)
class Node:
    """One daemon on the stage. `slept_seconds` is what its machine has slept so far. `abandoned`:
    here its process would have ended, with all that still runs in it.
    """

    name: str
    settings: Settings
    daemon: Daemon
    metrics: Metrics
    events: Events
    ended: trio.Event
    scope: trio.CancelScope
    sleep: dict[str, float]
    abandoned: trio.Event

    @property
    def size(self) -> int:
        """The crew without those that are leaving."""
        status = self.daemon.status()
        return status.idle + status.busy

    def tenancy(self, name: str = DEFAULT_TENANT) -> Tenancy:
        return self.daemon.tenancies[name]

    @property
    def workers(self) -> list[WorkerView]:
        return [one for each in self.daemon.tenancies.values() for one in each.workers()]

    @property
    def journal(self) -> list[Decision]:
        return list(self.tenancy().decisions())

    def machine_sleeps(self, seconds: float) -> None:
        """As a suspend looks from within: only the boot-time clock has run on."""
        self.sleep["seconds"] += seconds

    def metric(self, name: str, **labels: str) -> float:
        """Asked again and again, so it does not collect all metrics for one."""
        whole, registry = f"musterd_{name}", self.metrics.registry
        for family in registry.restricted_registry([whole]).collect():
            for sample in family.samples:
                if sample.name == whole and sample.labels == labels:
                    return sample.value
        return registry.get_sample_value(whole, labels) or 0.0

    async def stop(self) -> None:
        self.daemon.stop()
        await self.ended.wait()

    def kill(self) -> None:
        """The whole daemon ends at once, as its process would."""
        self.scope.cancel()


class Stage:
    """A store and its nodes. `store` is where faults are made; `stores` has those of all tenants,
    once there are any.
    """

    def __init__(self, store: FaultyEngine, nursery: trio.Nursery) -> None:
        self.store = store
        self.stores = {DEFAULT_TENANT: store}
        self.scans: list[TenantScan] = []
        self.nodes: list[Node] = []
        self.post: Post | None = None  # what webhooks are sent with
        self.service_manager: ServiceManager | None = None  # of nodes to come
        self.config_file: Path | None = None  # of nodes to come; None = the shipped defaults
        self.machine = Machine()  # as its nodes see it
        self.kinds: dict[str, WorkKind] = {one.name: one for one in KINDS}
        self._nursery = nursery

    async def start(self, name: str = "north", **changes: object) -> Node:
        """A node that is up and running."""
        node = self.start_soon(name, **changes)
        await until(lambda: node.daemon.status().phase != "starting")
        return node

    def start_soon(self, name: str = "north", **changes: object) -> Node:
        node = self.make(name, **changes)
        self._nursery.start_soon(self._run, node)
        return node

    def make(self, name: str, **changes: object) -> Node:
        settings = settings_with(self.config_file, **changes)
        metrics, events = Metrics(settings.metrics, "1"), Events()
        log = logging.getLogger(f"musterd.stage.{name}")
        log.handlers, log.propagate = [events], False
        log.setLevel(logging.DEBUG)
        sleep, abandoned = {"seconds": 0.0}, trio.Event()
        namesakes = sum(one.name == name for one in self.nodes)
        plan = DaemonDeps(
            settings=settings,
            catalog=Catalog(self.kinds.values()),
            engine=InstrumentedEngine(self.line(name), metrics, log, trio.current_time),
            node=name,
            rng=random.Random(f"{name}{namesakes or ''}"),
            metrics=metrics,
            log=log,
            boottime=lambda: trio.current_time() + sleep["seconds"],
            wall_clock=wall_clock,
            engine_of=lambda own: InstrumentedEngine(
                self.stores[own.tenant], metrics, log, trio.current_time
            ),
            scans=lambda: self.scans,
            post=self.post,
            load=lambda: 0.5,
            machine=lambda: self.machine,
            abandon=lambda _status: abandoned.set(),
            compute=compute,
            service_manager=self.service_manager,
        )
        scope, ended = trio.CancelScope(), trio.Event()
        daemon = Daemon(plan)
        node = Node(name, settings, daemon, metrics, events, ended, scope, sleep, abandoned)
        self.nodes.append(node)
        return node

    def line(self, name: str) -> FaultyEngine:
        """What a node reaches the store by: here all share one."""
        del name
        return self.store

    async def _run(self, node: Node) -> None:
        try:
            with node.scope:
                await node.daemon.run()
        finally:
            node.ended.set()

    async def add_tenants(self, *names: str) -> None:
        """Makes their stores; which node serves them its settings say."""
        for name in names:
            self.stores[name] = FaultyEngine(await _fresh_store(), self._nursery)

    async def put(
        self, kind_name: str, count: int = 1, *, tenant: str = DEFAULT_TENANT, **options: Any
    ) -> list[int]:
        jobs = [NewJob(kind_name, **options)] * count
        return await self.stores[tenant].engine.jobs.enqueue(jobs)

    async def put_one(self, kind_name: str, **options: Any) -> int:
        (job_id,) = await self.put(kind_name, **options)
        return job_id

    async def job(self, job_id: int) -> JobRecord:
        """As the store has it, whatever the weather."""
        record = await self.store.engine.jobs.get(job_id)
        assert record is not None
        return record

    async def state(self, job_id: int) -> JobState:
        return (await self.job(job_id)).state

    async def jobs(self, *states: JobState) -> list[JobRecord]:
        return await self.store.engine.jobs.find(JobFilter(states, limit=100_000))

    async def all_ended(self, within_seconds: float = 60) -> None:
        """Waits for it, and fails if it does not come in time."""
        with trio.fail_after(within_seconds):
            while await self.unended():  # noqa: ASYNC110 - only asking again tells
                await trio.sleep(LOOK_SECONDS)

    async def unended(self) -> int:
        counts = (await self.store.engine.queue.counts()).by_state
        return sum(
            counts[state] for state in (JobState.QUEUED, JobState.ASSIGNED, JobState.RUNNING)
        )

    def raw(self, sql: str) -> list[tuple[Any, ...]]:
        database = self.store.engine._database  # pyright: ignore[reportPrivateUsage] - the only way in
        assert database is not None
        return database.connection.execute(sql).fetchall()

    def running_now(self) -> list[int]:
        """The jobs that workers of any node have in hand."""
        return [one.job_id for node in self.nodes for one in node.workers if one.job_id is not None]


async def compute(steps: Generator[None, None, T], /) -> T:
    """At once: on a clock that jumps, a thread would take ages."""
    await trio.lowlevel.checkpoint()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: T = end.value
            return found


S = TypeVar("S", bound=Stage)


async def until(holds: Callable[[], object], within_seconds: float = 30) -> float:
    """Waits until it holds; returns how long that took. Fails if it does not come in time."""
    start = trio.current_time()
    with trio.fail_after(within_seconds):
        while not holds():  # noqa: ASYNC110 - only asking again tells
            await trio.sleep(LOOK_SECONDS)
    return trio.current_time() - start


@asynccontextmanager
async def open_stage(kind: type[S]) -> AsyncGenerator[S]:
    """Ends every node that still runs, then judges the history of the store."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    engine = await _fresh_store()
    async with trio.open_nursery() as nursery:
        stage = kind(FaultyEngine(engine, nursery), nursery)
        yield stage
        nursery.cancel_scope.cancel()
    for store in stage.stores.values():
        await store.engine.close()
    for number, handler in handlers.items():
        signal.signal(number, handler)
    for store in stage.stores.values():
        check_history(store.deeds)


async def _fresh_store() -> SqliteEngine:
    engine = SqliteEngine(":memory:", wall_clock, inline=True, busy_timeout_seconds=2.0)
    await engine.open()
    await engine.migrate()
    return engine
