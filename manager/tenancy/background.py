"""What a node does for all nodes of a tenant's store, and how it comes to do it."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import trio

from musterd.config.leasing import lease_plan
from musterd.config.listen import listen_address
from musterd.config.schedules import of_tenant
from musterd.manager.duties import names
from musterd.manager.duties.duty import Duty
from musterd.manager.duties.duty_reporter import DutyReporter
from musterd.manager.duties.events import TRIMMED_ROWS
from musterd.manager.duties.everyone import Everyone
from musterd.manager.duties.leadership import Identity, Leadership, Pace
from musterd.manager.duties.reaping import BATCH as REAPED_AT_ONCE
from musterd.manager.duties.reaping import Reaper
from musterd.manager.duties.retention import RetentionDeps, Retiring
from musterd.manager.duties.schedules.keeper import LOOK_SECONDS as SLOT_SECONDS
from musterd.manager.duties.schedules.keeper import SLOTS_A_ROUND, ScheduleKeeper
from musterd.manager.events.job_reporter import JobReporter
from musterd.manager.events.node_events import NodeEvents
from musterd.manager.tenancy.plans import TenancyDeps
from musterd.manager.tenancy.store_cache import (
    COUNTS_FRESH_SECONDS,
    VITALS_FRESH_SECONDS,
    StoreCache,
)
from musterd.manager.webhooks.postman import LOOK_SECONDS, LOOK_SECONDS_RESTING, Postman
from musterd.store.duties import FOLDED_ROWS
from musterd.store.queue import Counts
from musterd.store.vitals import Signs
from musterd.workers.claiming.desk import Desk

# Where nothing happens: a scrape asks for counts by itself.
RESTING = Pace(lease_seconds=90.0, heartbeat_seconds=30.0, rests=True)
COUNT_SECONDS, COUNT_SECONDS_RESTING = 15.0, 600.0
FOLD_SECONDS, FOLD_SECONDS_RESTING = 20.0, 600.0
REST_AFTER_SECONDS = 30.0  # a job now and then is no rest


@attrs.frozen
class Workplace:
    """What of a tenancy its duties are done with."""

    plan: TenancyDeps
    node_events: NodeEvents
    desk: Desk
    reporter: JobReporter
    postman: Postman


class Background:
    """Owned by a tenancy, which runs it from the crew's start to the beginning of the drain."""

    def __init__(self, place: Workplace) -> None:
        self._place = place
        self._idle_since_local: float | None = None
        self._is_watched = self.is_at_rest = False
        plan, self._settings = place.plan, place.plan.settings
        self.counts = StoreCache(plan.engine.queue.counts, COUNTS_FRESH_SECONDS, self._tell_counts)
        self.vitals = StoreCache(plan.engine.health.signs, VITALS_FRESH_SECONDS, self._tell_vitals)
        self._reaper = Reaper(plan.engine, place.desk, place.reporter, plan.catalog, plan.settings)
        self._retiring = Retiring(_retention_deps(plan))
        self._keeper = ScheduleKeeper(plan.engine.schedules, plan.settings, plan.catalog)
        self._all = {duty.name: duty for duty in self._make()}
        self._leading = self._make_leading()
        place.node_events.keeper.is_on_duty = lambda: self.holds(names.EVENTS)
        plan.settings.subscribe(self._settings_changed)

    @property
    def retention_trouble(self) -> str | None:
        """Why no job is deleted."""
        return self._retiring.trouble

    def holds(self, duty: str) -> bool:
        """Whether this node does it at the moment."""
        return duty in self._leading.held

    async def run(self) -> None:
        """Until cancelled; then others may take over at once."""
        await self._leading.run()

    def wake(self) -> None:
        """Another node has given a duty up."""
        self._leading.wake()

    def may_reap(self) -> None:
        """There may be leases that ran out."""
        self._reaper.wake()

    def _settings_changed(self) -> None:
        self._reaper.wake()  # a kind may have lost its limit
        self._retiring.wake()
        self._keeper.wake()
        self._leading.wake()

    def be_watched(self, watched: bool) -> None:
        """As `Tenancy.be_watched`."""
        self._is_watched = watched
        self._reaper.rests = self._is_watched or self.is_at_rest

    def be_at_rest(self, at_rest: bool) -> None:
        """Whether nothing happens in the store: nobody has anything in hand."""
        self.is_at_rest = at_rest
        self._reaper.rests = self._is_watched or at_rest
        if not at_rest:
            self._reaper.wake()

    def rest(self, rests: bool) -> None:
        """Whether there is nothing to do, and somebody else looks at the queue. A rest begins some
        time after it was told of, and ends at once.
        """
        did_rest, since_local = self._rests, self._idle_since_local
        self._idle_since_local = (since_local or trio.current_time()) if rests else None
        if did_rest and not rests:
            self._leading.change_pace()

    @property
    def _rests(self) -> bool:
        since_local = self._idle_since_local
        return since_local is not None and trio.current_time() - since_local >= REST_AFTER_SECONDS

    # -- what there is to do

    def _duties(self) -> Mapping[str, Duty]:
        """Those that this node could do at the moment."""
        settings = self._settings.now
        could = {
            names.SCHEDULES: self._has_schedules,
            names.METRICS: listen_address(settings.http.listen) is not None,  # else nobody reads
        }
        return {name: duty for name, duty in self._all.items() if could.get(name, True)}

    @property
    def _has_schedules(self) -> bool:
        settings = self._settings.now
        return bool(of_tenant(settings.schedules, settings.tenant))

    def _make(self) -> list[Duty]:
        place, events, retiring = self._place, self._place.node_events.keeper, self._retiring
        reaper, postman, keeper = self._reaper, place.postman, self._keeper
        fold = place.plan.engine.duties.fold_counts
        return [
            Duty(names.EVENTS, events.trim, events.trim_seconds, TRIMMED_ROWS, events.wait),
            Duty(names.METRICS, self.counts.refresh, self._count_seconds),
            Duty(names.REAPING, reaper.run, self._reap_seconds, REAPED_AT_ONCE, reaper.wait),
            Duty(names.RETENTION, retiring.look, retiring.look_seconds, wait=retiring.wait),
            Duty(names.SCHEDULES, keeper.run, lambda: SLOT_SECONDS, SLOTS_A_ROUND, keeper.wait),
            Duty(names.STATISTICS, fold, self._fold_seconds, FOLDED_ROWS),
            Duty(names.WEBHOOKS, postman.look, self._mail_seconds),
        ]

    def _reap_seconds(self) -> float:
        return lease_plan(self._settings.now).reap_interval_seconds

    def _count_seconds(self) -> float:
        return COUNT_SECONDS_RESTING if self._rests else COUNT_SECONDS

    def _fold_seconds(self) -> float:
        return FOLD_SECONDS_RESTING if self._rests else FOLD_SECONDS

    def _mail_seconds(self) -> float:
        return LOOK_SECONDS_RESTING if self._rests else LOOK_SECONDS

    # -- who does it

    def _make_leading(self) -> Leadership | Everyone:
        place, plan = self._place, self._place.plan
        told = DutyReporter(plan.metrics.duties, place.node_events.event_writer, plan, self._lost)
        if self._settings.now.duties.mode == "everyone":
            return Everyone(self._duties, plan.rng, told, plan.log)
        return Leadership(
            plan.engine.duties, self._duties, Identity(plan.node, plan.node_id, plan.tenant),
            self._pace, plan.boottime, plan.rng, told, plan.log,
        )  # fmt: skip

    def _pace(self) -> Pace:
        duties = self._settings.now.duties
        own = Pace(duties.lease_seconds, duties.heartbeat_seconds)
        is_short = own.lease_seconds < RESTING.lease_seconds
        # A schedule's next slot does not wait so long for another node.
        return RESTING if self._rests and is_short and not self._has_schedules else own

    def _lost(self, duty: str) -> None:
        if duty == names.METRICS:
            self._place.plan.metrics.counts(None, self._place.plan.tenant)
            self._place.plan.metrics.vitals.tell(None, self._place.plan.tenant)
            self.vitals.forget()

    def _tell_counts(self, counts: Counts | None) -> None:
        """One node exports what is true of all of them; what is not known is not kept either."""
        known = counts if self.holds(names.METRICS) else None
        self._place.plan.metrics.counts(known, self._place.plan.tenant)

    def _tell_vitals(self, signs: Signs | None) -> None:
        """As `_tell_counts`."""
        known = signs if self.holds(names.METRICS) else None
        self._place.plan.metrics.vitals.tell(known, self._place.plan.tenant)


def _retention_deps(plan: TenancyDeps) -> RetentionDeps:
    return RetentionDeps(
        plan.engine.retention, plan.settings, plan.catalog, plan.tenant, plan.rng, plan.log
    )
