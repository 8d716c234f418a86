"""One node: what its tenants share, and the order in which things start and end."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Collection
from uuid import UUID

import trio

from musterd import __version__
from musterd.catalog.kinds import Catalog
from musterd.config.settings import LiveSettings, Settings
from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.config.tenants import settings_of
from musterd.manager.duties.duty import METRICS
from musterd.manager.log import event, tenant_log
from musterd.manager.node.process import cancel_when, measure_loop_lag
from musterd.manager.node.status import NodePhase, NodeStatus
from musterd.manager.node.systemd import Liveness, Notifier, drain_seconds_max, liveness_of
from musterd.manager.reload.outcome import ReloadOutcome, ReloadUnavailable
from musterd.manager.reload.reloader import Reloader
from musterd.manager.scaling.supervisor import TenantLimits
from musterd.manager.tenancy.deps import DaemonDeps, TenancyDeps
from musterd.manager.tenancy.idle_tenant_scan import IdleTenantScan
from musterd.manager.tenancy.tenancy import Tenancy

GRACE_MARGIN_SECONDS = 2.0  # from KILL to the end of a child's attempt
REFRESHED_AT_ONCE = 4  # stores asked at the same time: they have other things to do
REFRESH_SECONDS = 5.0
IGNORED_MAX = 20  # shown in the status


class Daemon:
    """`run` serves until `stop` is called and the crews have drained."""

    def __init__(self, plan: DaemonDeps) -> None:
        self._plan = plan
        self._phase: NodePhase = "starting"
        self._started_local = trio.current_time()
        self._drain_until: float | None = None
        self._stop_requested = False
        self._id = UUID(int=plan.rng.getrandbits(128), version=4)
        self._ready, self._drain, self._hurry = trio.Event(), trio.Event(), trio.Event()
        self._settings = LiveSettings(plan.settings)
        self._tenant_limits = TenantLimits(self._settings, trio.current_time)
        self.tenancies = {  # the current ones, the default one first
            name: self._tenancy(name, plan.settings) for name in plan.settings.tenants
        }
        self._idle_tenant_scan = IdleTenantScan(
            self.tenancies, plan.scans, self._settings, self._id, plan.rng
        )
        self._notifier = Notifier(
            plan.service_manager, self.status, self._liveness,
            lambda: drain_seconds_max(self._settings.now), plan.log,
        )  # fmt: skip
        self._reloader = Reloader(
            plan, self._settings, self.tenancies, self._tenancy, self._notifier,
            self._idle_tenant_scan.bell.ring,
        )  # fmt: skip

    def stop(self) -> None:
        """The first call drains: running jobs may finish. The second dismisses the crews."""
        (self._hurry if self._stop_requested else self._drain).set()
        self._stop_requested = True

    def drain(self) -> None:
        """Like the first `stop`, however often it is called; a later `stop` counts as the first."""
        self._drain.set()

    async def reload(self) -> ReloadOutcome:
        """Reloads, as HUP does, and returns the outcome."""
        if why := self.why_no_reload():
            return ReloadUnavailable(why)
        return await self._reloader.ask()

    def reload_soon(self) -> None:
        """Reloads, as HUP does; the outcome is logged."""
        self._reloader.reload_soon()

    def why_no_reload(self) -> str:
        """ "" if it can reload."""
        return "" if self._phase == "running" else f"the node is {self._phase}: it does not reload"

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Raises `StoreMisconfigured` if waiting for the store would not help."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self._obey_signals)
            nursery.start_soon(self._live, nursery.cancel_scope)
            await self._ready.wait()
            task_status.started()

    async def _live(self, whole: trio.CancelScope) -> None:
        """From opening the stores to closing them; then ends everything else."""
        async with trio.open_nursery() as homes:
            for tenancy in self.tenancies.values():
                homes.start_soon(tenancy.run)
            homes.start_soon(measure_loop_lag, self._plan.metrics.loop_lag)
            homes.start_soon(self._idle_tenant_scan.run)
            homes.start_soon(self._notifier.run)
            self._reloader.begin(homes)
            await self._start()
            await self._drain.wait()
            self._reloader.end()
            self._begin_drain()
            await self._all_ended(homes)
            homes.cancel_scope.cancel()
        self._phase = "stopped"
        settled = sum(each.status().settled_total for each in self.tenancies.values())
        interrupted, abandoned = self._cut_short()
        fields = {"settled": settled, "interrupted": interrupted, "abandoned": abandoned}
        event(self._plan.log, logging.INFO, "stopped", **fields)
        whole.cancel()

    async def _start(self) -> None:
        """Returns when the default tenant is ready and all stores were tried, or on a stop."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel_when, self._drain, nursery.cancel_scope)
            await self.tenancies[DEFAULT_TENANT].ready.wait()
            for tenancy in list(self.tenancies.values()):
                await tenancy.tried.wait()
            self._phase = "running"
            event(self._plan.log, logging.INFO, "ready", node=self._plan.node)
            self._ready.set()
            self._notifier.look_soon()
            nursery.cancel_scope.cancel()

    @property
    def exit_status(self) -> int:
        """Of the process, once it has stopped."""
        return self._settings.now.shutdown.interrupted_exit if any(self._cut_short()) else 0

    def _cut_short(self) -> tuple[int, int]:
        """How many jobs were interrupted, and how many abandoned."""
        tenancies = self.tenancies.values()
        return (
            sum(len(each.interrupted) for each in tenancies),
            sum(len(each.abandoned) for each in tenancies),
        )

    def _begin_drain(self) -> None:
        was_running = self._phase == "running"
        for tenancy in self.tenancies.values():
            tenancy.drain()
        self._notifier.stop()
        if not was_running:
            return
        grace_seconds = self._settings.now.shutdown.grace_period_seconds
        self._phase = "draining"
        self._plan.metrics.draining()
        self._drain_until = trio.current_time() + grace_seconds
        busy = sum(tenancy.status().busy for tenancy in self.tenancies.values())
        event(self._plan.log, logging.INFO, "draining", busy=busy, grace_seconds=grace_seconds)

    async def _all_ended(self, homes: trio.Nursery) -> None:
        homes.start_soon(self._hurry_all)
        patience_seconds = self._settings.now.shutdown.abandon_seconds
        homes.start_soon(
            abandon_late, list(self.tenancies.values()), patience_seconds, self._plan.log,
            lambda: self._plan.abandon(self.exit_status),
        )  # fmt: skip
        for tenancy in list(self.tenancies.values()):
            await tenancy.ended.wait()

    async def _hurry_all(self) -> None:
        await self._hurry.wait()
        for tenancy in self.tenancies.values():
            tenancy.hurry()

    async def _obey_signals(
        self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as received:
            task_status.started()
            async for number in received:
                event(self._plan.log, logging.INFO, "signal", name=signal.Signals(number).name)
                if number != signal.SIGHUP:
                    self.stop()
                else:
                    self._reloader.reload_soon()

    def _tenancy(self, name: str, settings: Settings) -> Tenancy:
        plan = self._plan
        own = settings_of(settings, name)
        if name == DEFAULT_TENANT:
            engine = plan.engine
        else:
            assert plan.engine_of is not None, (
                "a node with tenants is told how to reach their stores"
            )
            engine = plan.engine_of(own)
        return Tenancy(
            TenancyDeps(
                LiveSettings(own), engine, lambda: self._reloader.catalog, self._tenant_limits,
                plan.node, self._id, lambda: self._reloader.configured, plan.rng, plan.metrics,
                tenant_log(plan.log, own.tenant), plan.boottime, plan.wall_clock,
                post=plan.post, own_port=plan.own_port, load=plan.load,
                machine=plan.machine, tracing=plan.tracing, compute=plan.compute,
            )
        )  # fmt: skip

    def _liveness(self) -> list[Liveness]:
        now_local = trio.current_time()
        return [
            liveness_of(one.name, one.lease_keeper, one.engine.trouble, now_local)
            for one in self.tenancies.values()
        ]

    # -- for metrics and people

    async def refresh_metrics(self) -> None:
        """Updates the exported queue metrics, within a time limit; slow stores come next time."""
        limit = trio.CapacityLimiter(REFRESHED_AT_ONCE)
        exported = [one for one in self.tenancies.values() if one.duties.holds(METRICS)]
        with trio.move_on_after(REFRESH_SECONDS):
            async with trio.open_nursery() as nursery:
                for tenancy in exported:
                    nursery.start_soon(self._refresh_one, tenancy, limit)

    async def _refresh_one(self, tenancy: Tenancy, limit: trio.CapacityLimiter) -> None:
        async with limit:
            await tenancy.duties.counts.get()
            await tenancy.duties.situation.get()
            await tenancy.duties.nodes_desired.get()
            await tenancy.duties.health.get()
            if tenancy.name not in self.tenancies:  # it has left meanwhile
                self._plan.metrics.forget(tenancy.name)

    def status(self) -> NodeStatus:
        plan = self._plan
        tenants = [tenancy.status() for tenancy in self.tenancies.values()]
        first = tenants[0]
        depths = [tenant.depth for tenant in tenants if tenant.depth is not None]
        ignored = [one for each in self.tenancies.values() for one in each.ignored()]
        left = None if self._drain_until is None else self._drain_until - trio.current_time()
        return NodeStatus(
            node=plan.node, version=__version__, phase=self._phase,
            up_seconds=trio.current_time() - self._started_local,
            engine=first.engine, store=first.store, store_trouble=first.store_trouble,
            store_trouble_seconds=first.store_trouble_seconds, store_message=first.store_message,
            idle=sum(tenant.idle for tenant in tenants),
            busy=sum(tenant.busy for tenant in tenants),
            retiring=sum(tenant.retiring for tenant in tenants),
            default_count=sum(tenant.default_count for tenant in tenants),
            max_count=self._tenant_limits.overall if len(tenants) > 1 else first.max_count,
            depth=sum(depths) if depths else None,
            depth_exact=all(tenant.depth_exact for tenant in tenants),
            settled_total=sum(tenant.settled_total for tenant in tenants),
            drain_seconds_left=left, last_decision=self.tenancies[DEFAULT_TENANT].last_decision,
            ignored=ignored[:IGNORED_MAX], generation=self._reloader.generation,
            reload_faults=self._reloader.faults, tenants=tuple(tenants),
        )  # fmt: skip

    @property
    def settings(self) -> Settings:
        """Those in effect."""
        return self._settings.now

    @property
    def catalog(self) -> Catalog:
        return self._reloader.catalog


# -- the end of a node whose work goes on though it was dismissed


async def abandon_late(
    tenancies: Collection[Tenancy],
    abandon_seconds: float,
    log: logging.Logger,
    end_process: Callable[[], None],
) -> None:
    """Ends the process if work still runs long after all crews were dismissed, as nothing else can
    end it. Everything else ends normally first. The leases of that work are kept until then and
    expire afterwards, so that nothing runs twice at a time.
    """
    for tenancy in tenancies:
        await tenancy.dismissed.wait()
    graces = [held.grace_seconds for tenancy in tenancies for held in tenancy.held()]
    await trio.sleep(abandon_seconds + (max(graces) + GRACE_MARGIN_SECONDS if graces else 0.0))
    stubborn = [tenancy for tenancy in tenancies if tenancy.held()]
    if not stubborn:
        return  # the last one is on its way out
    for tenancy in stubborn:
        _log_abandoned(tenancy, log)
    async with trio.open_nursery() as nursery:
        for tenancy in stubborn:
            nursery.start_soon(tenancy.wind_up)
        for tenancy in tenancies:
            if tenancy not in stubborn:
                await tenancy.ended.wait()
    end_process()


def _log_abandoned(tenancy: Tenancy, log: logging.Logger) -> None:
    log_of_tenant = tenant_log(log, tenancy.name)
    for held in tenancy.held():
        claim = held.claim
        fields = {"job_id": claim.id, "kind": claim.kind, "attempt": claim.attempt}
        event(log_of_tenant, logging.ERROR, "job abandoned; its lease will expire", **fields)
