"""What a node does for all nodes of a tenant's store, and how it gets its duties."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Generic, TypeVar

import attrs
import trio

from musterd.config.listen import listen_address
from musterd.config.schedules import of_tenant
from musterd.config.settings import lease_plan
from musterd.manager.duties.duty import (
    EVENTS,
    FILE,
    METRICS,
    REAPING,
    REST_AFTER_SECONDS,
    RETENTION,
    SCHEDULES,
    STATISTICS,
    WEBHOOKS,
    Duty,
)
from musterd.manager.duties.file_check import FileCheck
from musterd.manager.duties.leadership import Everyone, Identity, Leadership, Pace
from musterd.manager.duties.past_hours import PastHours
from musterd.manager.duties.reaping import Reaper
from musterd.manager.duties.retention import Retiring
from musterd.manager.duties.schedules import LOOK_SECONDS as SLOT_SECONDS
from musterd.manager.duties.schedules import SLOTS_A_ROUND, ScheduleKeeper
from musterd.manager.events.node_events import TRIMMED_ROWS, DutyReporter, JobReporter, NodeEvents
from musterd.manager.scaling.nodes import nodes_for
from musterd.manager.scaling.work_ahead import ask_workers_desired
from musterd.manager.tenancy.deps import TenancyDeps
from musterd.manager.webhooks.postman import LOOK_SECONDS, LOOK_SECONDS_RESTING, Postman
from musterd.store.duties import FOLDED_ROWS
from musterd.store.embedded import is_file
from musterd.store.errors import StoreError
from musterd.store.health import Signs
from musterd.store.queue import Counts
from musterd.store.remarks import Situation, look_at
from musterd.workers.claiming.desk import Desk
from musterd.workers.idleness import Idleness, Move

COUNTS_FRESH_SECONDS = 1.0
HEALTH_FRESH_SECONDS = 30.0
SITUATION_FRESH_SECONDS = 5.0
LIMIT_SECONDS = 2.0

T = TypeVar("T")


@attrs.define(eq=False)
class StoreCache(Generic[T]):
    """One answer for all readers, for `fresh_seconds`; None if the store is away or slow."""

    ask: Callable[[], Awaitable[T]]
    fresh_seconds: float
    on_answer: Callable[[T | None], None] = lambda _: None
    _lock: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    _answer: T | None = attrs.field(default=None, init=False)
    _asked_local: float = attrs.field(default=float("-inf"), init=False)

    async def get(self) -> T | None:
        """A fresh answer; None if the store does not answer."""
        async with self._lock:
            if trio.current_time() - self._asked_local >= self.fresh_seconds:
                self._answer = None
                with trio.move_on_after(LIMIT_SECONDS), suppress(StoreError):
                    self._answer = await self.ask()  # what goes wrong, the engine has logged
                self._asked_local = trio.current_time()
                self.on_answer(self._answer)
            return self._answer

    async def refresh(self) -> int:
        """Like `get`; returns the number of answers."""
        return int(await self.get() is not None)

    def forget(self) -> None:
        self._asked_local = float("-inf")


# Where nothing happens: a scrape asks for counts by itself.
RESTING = Pace(lease_seconds=90.0, heartbeat_seconds=30.0, rests=True)
COUNT_SECONDS, COUNT_SECONDS_RESTING = 15.0, 600.0


class TenantDuties:
    """Owned by a tenancy, which runs it from the crew's start until the drain begins."""

    def __init__(
        self,
        deps: TenancyDeps,
        idleness: Idleness,
        desk: Desk,
        node_events: NodeEvents,
        reporter: JobReporter,
        postman: Postman,
    ) -> None:
        self._deps, self._idleness, self._node_events = deps, idleness, node_events
        self._settings, self._postman = deps.settings, postman
        self._watch = node_events.watch
        engine, settings, catalog = deps.engine, deps.settings, deps.catalog
        self.counts = StoreCache(engine.queue.counts, COUNTS_FRESH_SECONDS, self._export_counts)
        self.health = StoreCache(engine.health.signs, HEALTH_FRESH_SECONDS, self._export_health)
        self.situation = StoreCache(
            partial(look_at, engine), SITUATION_FRESH_SECONDS, self._export_unknown
        )
        self.nodes_desired = StoreCache(
            self._ask_nodes_desired, SITUATION_FRESH_SECONDS, self._export_nodes_desired
        )
        self.reaper = Reaper(engine, desk, idleness, reporter, catalog, settings)
        self.retiring = Retiring(
            engine.retention, engine.journal, settings, catalog, deps.tenant, deps.log,
            node_events.clock,
        )  # fmt: skip
        self._file_check = FileCheck(engine.health, settings, deps.boottime, deps.log)
        self._past_hours = PastHours(
            deps.tenant, engine, settings, catalog, deps.wall_clock, deps.compute,
            partial(deps.metrics.model_error, tenant=deps.tenant), deps.log,
        )  # fmt: skip
        self._keeper = ScheduleKeeper(engine.schedules, settings, catalog)
        self._all = {duty.name: duty for duty in self._make()}
        self.leading = self._make_leading()
        settings.subscribe(self._settings_changed)
        idleness.on_move(self._end_rest)

    def holds(self, duty: str) -> bool:
        """Whether this node has the duty now."""
        return duty in self.leading.held

    def _settings_changed(self) -> None:
        self.retiring.wake()
        self._keeper.wake()
        self.leading.wake()

    def _end_rest(self, move: Move) -> None:
        if move.rested_seconds >= REST_AFTER_SECONDS:
            self.leading.change_pace()

    @property
    def _rests(self) -> bool:
        """A rest begins some time after the crew has become idle, and ends at once."""
        return self._idleness.rested_seconds >= REST_AFTER_SECONDS

    # -- what there is to do

    def _duties(self) -> Mapping[str, Duty]:
        """Those that this node could do now."""
        settings = self._settings.now
        could = {
            SCHEDULES: self._has_schedules,
            METRICS: listen_address(settings.http.listen) is not None,  # else nobody reads
            FILE: is_file(self._deps.engine.where),
        }
        return {name: duty for name, duty in self._all.items() if could.get(name, True)}

    @property
    def _has_schedules(self) -> bool:
        settings = self._settings.now
        return bool(of_tenant(settings.schedules, settings.tenant))

    def _make(self) -> list[Duty]:
        events, retiring, postman = self._node_events.keeper, self.retiring, self._postman
        reaper, keeper, watch = self.reaper, self._keeper, self._watch

        def reap_seconds() -> float:
            return lease_plan(self._settings.now).reap_interval_seconds

        def reap_batch() -> int:
            return self._settings.now.leases.reap_batch

        def run_limit_seconds() -> float:
            return self._settings.now.duties.run_limit_seconds

        duties = [
            Duty(EVENTS, events.trim, events.trim_seconds, lambda: TRIMMED_ROWS, events.wait),
            Duty(FILE, self._file_check.run, self._file_check.look_seconds),
            Duty(METRICS, self._refresh, self._paced(COUNT_SECONDS, COUNT_SECONDS_RESTING)),
            Duty(REAPING, reaper.run, reap_seconds, reap_batch, reaper.wait),
            Duty(RETENTION, retiring.look, retiring.look_seconds, wait=retiring.wait),
            Duty(SCHEDULES, keeper.run, lambda: SLOT_SECONDS, lambda: SLOTS_A_ROUND, keeper.wait),
            Duty(
                STATISTICS,
                self._count,
                lambda: watch.pause_seconds,
                lambda: FOLDED_ROWS,
                watch.wait,
            ),
            Duty(WEBHOOKS, postman.look, self._paced(LOOK_SECONDS, LOOK_SECONDS_RESTING)),
        ]
        return [attrs.evolve(duty, run_limit_seconds=run_limit_seconds) for duty in duties]

    async def _count(self) -> int:
        folded = await self._deps.engine.duties.fold_counts()
        await self._watch.look_if_due()
        await self._past_hours.compare_if_due()
        return folded

    async def _refresh(self) -> int:
        await self.situation.get()
        return await self.counts.refresh()

    async def _ask_nodes_desired(self) -> int:
        settings = self._settings.now
        workers = await ask_workers_desired(self._deps.engine, settings)
        return nodes_for(workers, settings.workers.max_count)

    def _paced(self, seconds: float, resting_seconds: float) -> Callable[[], float]:
        return lambda: resting_seconds if self._rests else seconds

    # -- who does it

    def _make_leading(self) -> Leadership | Everyone:
        deps, events = self._deps, self._node_events.event_writer
        deps.metrics.duties.serve(deps.tenant)
        reporter = DutyReporter(deps.metrics.duties, events, deps, self._lost)
        if self._settings.now.duties.mode == "everyone":
            return Everyone(self._duties, deps.rng, reporter, deps.log)
        return Leadership(
            deps.engine.duties, self._duties, Identity(deps.node, deps.node_id, deps.tenant),
            self._pace, deps.boottime, deps.rng, reporter, deps.log,
        )  # fmt: skip

    def _pace(self) -> Pace:
        duties = self._settings.now.duties
        own = Pace(
            duties.lease_seconds, duties.heartbeat_seconds, rotate_seconds=duties.rotate_seconds
        )
        is_short = own.lease_seconds < RESTING.lease_seconds
        # A schedule's next slot does not wait so long for another node.
        return RESTING if self._rests and is_short and not self._has_schedules else own

    def _lost(self, duty: str) -> None:
        if duty == METRICS:
            self._deps.metrics.counts(None, self._deps.tenant)
            self._deps.metrics.unknown_kinds(None, self._deps.tenant)
            self._deps.metrics.nodes_desired(None, self._deps.tenant)
            self._deps.metrics.store_health.record(None, self._deps.tenant)
            self.health.forget()
        if duty == STATISTICS:
            self._past_hours.forget()

    def _export_counts(self, counts: Counts | None) -> None:
        """Only one node exports them; unknown counts are removed."""
        known = counts if self.holds(METRICS) else None
        self._deps.metrics.counts(known, self._deps.tenant)

    def _export_unknown(self, seen: Situation | None) -> None:
        known = seen if self.holds(METRICS) else None
        number = None if known is None else sum(known.unknown.values())
        self._deps.metrics.unknown_kinds(number, self._deps.tenant)

    def _export_nodes_desired(self, number: int | None) -> None:
        known = number if self.holds(METRICS) else None
        self._deps.metrics.nodes_desired(known, self._deps.tenant)

    def _export_health(self, signs: Signs | None) -> None:
        known = signs if self.holds(METRICS) else None
        self._deps.metrics.store_health.record(known, self._deps.tenant)
