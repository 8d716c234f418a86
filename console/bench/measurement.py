"""Measures: enqueues many jobs, lets a crew do them, then enqueues one at a time; and reports the
findings, as lines for people and as an object for programs.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Literal, NamedTuple

import attrs
import trio
from attrs import evolve

from musterd import __version__
from musterd.catalog.kinds import Catalog, Deterministic, Python, WorkKind
from musterd.config.load import SHIPPED_FILE, load, resolve_store_url
from musterd.config.settings import Metrics as MetricsSettings
from musterd.config.settings import Retry, Settings, Tenant, TenantPlace, TenantWorkers
from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.console.wiring import Node, early_and_late_signals, make_node
from musterd.manager.metrics.metrics import Metrics
from musterd.manager.node.process import collect_seldom
from musterd.manager.scaling.model.figures import quantile
from musterd.store.client import Client
from musterd.store.errors import NoSuchJob, StoreError
from musterd.store.leases import Settlement, Successes
from musterd.store.lifecycle import ENDED
from musterd.store.opening import make_scratch, visit
from musterd.store.scratch import Scratch
from musterd.store.words import count_text, duration_text, plural, table
from musterd.workers.context import JobContext

ANSWER_SECONDS = 10.0  # for one call of the client, which nothing else can cut short
REST_SECONDS = 1.0  # after the many: the crew is idle, and listens
GAP_SECONDS = 0.025  # after each single one
END_SECONDS = 10.0  # for the node, from the request to stop until its store is closed
REMOVE_SECONDS = 30.0


@attrs.frozen
class Measurement:
    """`own`: the tenant's settings; `name`: of the temporary store. `clock` must be thread-safe."""

    order: Plan
    own: Settings
    name: str
    found: Findings
    log: logging.Logger
    clock: Callable[[], float]

    async def run(self) -> None:
        """Fills `found` and removes its store. Raises the store's errors."""
        deadline = trio.current_time() + self.order.within_seconds
        scope = trio.CancelScope(deadline=deadline + END_SECONDS)
        place = make_scratch(resolve_store_url(self.own, os.environ), self.own, self.name)
        with early_and_late_signals(scope.cancel):
            try:
                with scope:
                    self.found.place = await place.make()
                    await self._measure(deadline)
                if not self.found.is_whole:
                    self.found.cut = "time" if trio.current_time() >= deadline else "signal"
            finally:
                until = trio.current_time() + REMOVE_SECONDS
                with trio.CancelScope(shield=True, deadline=until) as removing:
                    await self._remove(place.remove)
        if removing.cancelled_caught:
            self.found.not_removed = f"it took longer than {REMOVE_SECONDS:g} s"

    async def _measure(self, deadline: float) -> None:
        place = self.found.place
        assert place is not None, "it has been made"
        settings = bench_settings(self.own, place, self.order.workers)
        await visit(settings, lambda engine: engine.schema(), creates=True)  # which makes it
        client = Client(place.url, schema=place.schema, pool_size=1, answer_seconds=ANSWER_SECONDS)
        try:
            with trio.move_on_at(deadline) as filling:
                await self._fill(client)
            if not filling.cancelled_caught:
                await self._serve(settings, client, deadline)
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + END_SECONDS):
                await trio.to_thread.run_sync(client.close)

    async def _fill(self, client: Client) -> None:
        found = self.found
        found.stage = "enqueueing"
        with suppress(NoSuchJob):  # connecting does not count
            await trio.to_thread.run_sync(client.job, 0)
        began = self.clock()
        while found.enqueued < self.order.jobs:
            last = min(found.enqueued + BATCH, self.order.jobs)
            jobs = [(NOTHING, {"number": number}) for number in range(found.enqueued, last)]
            await trio.to_thread.run_sync(client.enqueue_many, jobs)
            found.enqueued, found.enqueue_seconds = last, self.clock() - began

    async def _serve(self, settings: Settings, client: Client, deadline: float) -> None:
        """Runs a node while the jobs are done."""
        marks = TimingMetrics(settings.metrics, self.clock)
        node = make_node(settings, bench_catalog(settings.retry), self.log, marks)
        on_begin.set(marks.begins)
        collect_seldom()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, marks, client, node, deadline)
            await node.daemon.run()
            nursery.cancel_scope.cancel()
        if not self.found.is_whole:
            self.found.trouble = node.engine.last_message or ""

    async def _watch(
        self, marks: TimingMetrics, client: Client, node: Node, deadline: float
    ) -> None:
        """Stops the daemon after all phases. If it stops earlier, the measurement is cut short."""
        with trio.move_on_at(deadline):
            await self._drain(marks)
            await trio.sleep(REST_SECONDS)
            await self._pick_up(marks, client)
            self.found.is_whole = True
        node.daemon.stop()

    async def _drain(self, marks: TimingMetrics) -> None:
        found = self.found
        found.stage = "doing"
        while found.done < self.order.jobs:
            if marks.ended == found.done:
                await marks.more()
            found.done, found.done_seconds = marks.ended, marks.busy_seconds

    async def _pick_up(self, marks: TimingMetrics, client: Client) -> None:
        found = self.found
        found.stage = "picking up"

        def enqueue() -> tuple[int, float]:
            """The job's id, and when its commit was known."""
            return client.enqueue(REPORTS_BEGIN), self.clock()

        for _ in range(self.order.pick_ups):
            await trio.sleep(GAP_SECONDS)
            before = marks.ended
            job_id, committed = await trio.to_thread.run_sync(enqueue)
            while marks.ended == before:
                await marks.more()
            # The job may begin before this task knows of its commit.
            found.pick_ups_seconds.append(max(0.0, marks.begun_local[job_id] - committed))

    async def _remove(self, remove: Callable[[], Awaitable[None]]) -> None:
        try:
            await remove()
        except StoreError as error:
            self.found.not_removed = str(error)


QUIET = ("http.listen=", "log.level=error", "shutdown.grace_period_seconds=3")


def bench_settings(own: Settings, place: Scratch, workers: int) -> Settings:
    """Store, claims and leases as in `own`, a crew of exactly `workers`; the rest as shipped: no
    schedules, webhooks, hooks, other tenants or HTTP.
    """
    shipped = load(SHIPPED_FILE, {}, QUIET).settings
    limits = evolve(own.limits, max_running=0)
    crew = TenantWorkers(workers, workers)
    tenant = Tenant(DEFAULT_TENANT, TenantPlace("", "", place.schema), crew, limits)
    return evolve(
        shipped,
        store=evolve(own.store, url=place.url, url_file="", schema=place.schema, migrate=True),
        workers=evolve(own.workers, default_count=workers, max_count=workers),
        leases=own.leases,
        limits=limits,
        tenants={DEFAULT_TENANT: tenant},
    )


def core_count() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


NOTHING = "nothing"
REPORTS_BEGIN = "report-begin"

# Set where the node is started, for all its tasks; called with the id of each job that begins.
on_begin: ContextVar[Callable[[int], None]] = ContextVar("on_begin")


async def report_begin(job: JobContext) -> None:  # noqa: ASYNC124 - a task kind is an async def
    on_begin.get()(job.fence.id)


def bench_catalog(retry: Retry) -> Catalog:
    """Neither kind ever fails, so `retry` does not matter."""
    handler = Python(__name__, report_begin.__name__, "task", ())
    nothing = Deterministic(0, 0, "success", 0)
    kind = WorkKind(NOTHING, nothing, False, retry, None, 0, "requeue", "musterd bench")
    return Catalog([kind, evolve(kind, name=REPORTS_BEGIN, behaviour=handler)])


class TimingMetrics(Metrics):
    """Also record the first claim, the start of each handler, and how many jobs have ended."""

    def __init__(self, settings: MetricsSettings, clock: Callable[[], float]) -> None:
        super().__init__(settings, __version__)
        self._clock = clock
        self._more = trio.Event()
        self.first_claim_local: float | None = None
        self.last_end_local = 0.0  # counts where jobs have ended
        self.ended = 0
        self.begun_local: dict[int, float] = {}

    def store_operation(self, operation: str, seconds: float) -> None:
        super().store_operation(operation, seconds)
        if operation == "claim" and self.first_claim_local is None:
            self.first_claim_local = self._clock() - seconds

    def settled(self, settlements: Sequence[Settlement], tenant: str = DEFAULT_TENANT) -> None:
        super().settled(settlements, tenant)
        self._note_ends(sum(one.state in ENDED for one in settlements))

    def succeeded(self, successes: Successes, tenant: str = DEFAULT_TENANT) -> None:
        super().succeeded(successes, tenant)
        self._note_ends(len(successes.ids))

    def _note_ends(self, count: int) -> None:
        self.ended += count
        self.last_end_local = self._clock()
        self._more.set()
        self._more = trio.Event()

    def begins(self, job_id: int) -> None:
        """A handler begins. If a job begins again, the first time counts."""
        self.begun_local.setdefault(job_id, self._clock())

    async def more(self) -> None:
        """Returns when another job has ended."""
        await self._more.wait()

    @property
    def busy_seconds(self) -> float:
        """From the crew's first claim to the last ended job."""
        if self.first_claim_local is None or not self.ended:
            return 0.0
        return self.last_end_local - self.first_claim_local


BATCH = 5_000  # jobs in one call of the client

# Why a measurement ended before its end.
Cut = Literal["time", "signal"]
Stage = Literal["making a store", "enqueueing", "doing", "picking up"]


@attrs.frozen
class Plan:
    """What to measure, and for how long at most."""

    jobs: int
    workers: int
    pick_ups: int
    within_seconds: float


class Spread(NamedTuple):
    p50: float
    p99: float
    max: float


@attrs.define(eq=False)
class Findings:
    place: Scratch | None = None
    stage: Stage = "making a store"
    enqueued: int = 0
    enqueue_seconds: float = 0.0
    done: int = 0
    done_seconds: float = 0.0
    pick_ups_seconds: list[float] = attrs.field(factory=list[float])
    is_whole: bool = False
    cut: Cut | None = None
    trouble: str = ""  # of the store, where it was in trouble when the measurement was cut short
    not_removed: str = ""  # why its store is still there

    @property
    def enqueued_per_second(self) -> float | None:
        return _per_second(self.enqueued, self.enqueue_seconds)

    @property
    def done_per_second(self) -> float | None:
        return _per_second(self.done, self.done_seconds)


def spread_of(seconds: Sequence[float]) -> Spread | None:
    """None = nothing was measured."""
    if not seconds:
        return None
    ordered = sorted(seconds)
    return Spread(*(quantile(ordered, share) for share in (0.5, 0.99, 1.0)))


def _per_second(count: int, seconds: float) -> float | None:
    return count / seconds if count and seconds > 0 else None


AGAINST = "Anything else that machine and database do meanwhile lowers these figures."


@attrs.frozen
class Machine:
    musterd: str
    python: str
    cores: int


def report_lines(order: Plan, found: Findings, machine: Machine) -> list[str]:
    """Where it was measured, the figures, and what limits them."""
    crew = f"{plural(order.workers, 'worker')} in this process"
    versions = f"musterd {machine.musterd}, Python {machine.python}"
    where = f"{crew}, {plural(machine.cores, 'core')}, {versions}"
    figures = (f"  {line}" for line in _figure_lines(found))
    return [*_place_lines(found.place), where, "", *figures, "", AGAINST]


def report_object(order: Plan, found: Findings, machine: Machine) -> dict[str, object]:
    """The figures and their circumstances; None = not measured."""
    place, spread = found.place, spread_of(found.pick_ups_seconds)
    picked_up = spread and {name: round(each, 6) for name, each in spread._asdict().items()}
    return {
        "whole": found.is_whole,
        "enqueued_jobs_per_second": _rounded(found.enqueued_per_second),
        "done_jobs_per_second": _rounded(found.done_per_second),
        "pick_up_seconds": picked_up,
        "enqueued": found.enqueued,
        "enqueue_seconds": round(found.enqueue_seconds, 6),
        "done": found.done,
        "done_seconds": round(found.done_seconds, 6),
        "pick_ups": len(found.pick_ups_seconds),
        "wanted": {"jobs": order.jobs, "pick_ups": order.pick_ups},
        "workers": order.workers,
        "store": place and place.where,
        "database": place and place.product,
        "pooler": place is not None and place.pooled,
        "removed": list(place.removed) if place else [],
        "left": list(place.left) if place else [],
        **attrs.asdict(machine),
    }


def cut_text(order: Plan, found: Findings) -> str:
    """How far a measurement came that was cut short."""
    why = f"after {duration_text(order.within_seconds)}" if found.cut == "time" else "by a signal"
    return f"cut short {why}, while {found.stage}: {_far_text(order, found)}"


def progress_text(order: Plan, found: Findings) -> str:
    return f"{found.stage} · {_far_text(order, found)}"


def _far_text(order: Plan, found: Findings) -> str:
    parts = (
        (found.enqueued, order.jobs, "enqueued"),
        (found.done, order.jobs, "done"),
        (len(found.pick_ups_seconds), order.pick_ups, "single jobs picked up"),
    )
    return ", ".join(f"{count_text(n)} of {count_text(most)} {what}" for n, most, what in parts)


def _place_lines(place: Scratch | None) -> list[str]:
    if place is None:
        return ["no store was made"]
    own = "in its own folder" if place.url.startswith("sqlite:") else "in its own schema"
    pooler = ", through a pooler" if place.pooled else ""
    return [
        f"{place.product}, {place.where}, {own}{pooler}",
        *(f"removed what a killed measurement had left: {one}" for one in place.removed),
        *(f"LEFT BEHIND by a killed measurement: {one}" for one in place.left),
    ]


def _figure_lines(found: Findings) -> Sequence[str]:
    calls = f"by one client, up to {count_text(BATCH)} per call"
    enqueued = f"{plural(found.enqueued, 'job')} {calls}"
    done = f"{plural(found.done, 'job')} that do nothing, from the first claim to the last result"
    single = f"{plural(len(found.pick_ups_seconds), 'single job')}, from commit to start"
    p50, p99, most = spread_of(found.pick_ups_seconds) or (None, None, None)
    rows = [
        ("enqueued", _measured(found.enqueued_per_second, _rate_text), enqueued),
        ("done", _measured(found.done_per_second, _rate_text), done),
        ("pick-up p50", _measured(p50, duration_text), single),
        ("pick-up p99", _measured(p99, duration_text), ""),
        ("pick-up max", _measured(most, duration_text), ""),
    ]
    return table(("figure", "measured", "of"), rows, right=frozenset({1}))


def _measured(figure: float | None, text: Callable[[float], str]) -> str:
    return "not measured" if figure is None else text(figure)


def _rate_text(rate: float) -> str:
    return f"{count_text(round(rate))} jobs/s"


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 1)
