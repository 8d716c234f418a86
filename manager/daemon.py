"""One node: the only place that wires, and the order in which things start and end."""

from __future__ import annotations

import logging
import os
import random
import signal
import time
from collections.abc import Callable, Sequence

import attrs
import trio

from musterd import __version__
from musterd.catalog.kinds import Catalog
from musterd.config.leasing import lease_plan
from musterd.config.settings import Settings
from musterd.manager.crew import Crew
from musterd.manager.log import event
from musterd.manager.looplag import measure_loop_lag
from musterd.manager.metrics import Metrics
from musterd.manager.reaping import Reaper
from musterd.manager.starting import open_store
from musterd.manager.supervisor import Supervisor, policy_of
from musterd.manager.telling import Telling
from musterd.manager.view import Decision, NodePhase, NodeStatus, WorkerView
from musterd.manager.watched import WatchedEngine
from musterd.workers.carrier import Carrier
from musterd.workers.desk import Desk, DeskPlan
from musterd.workers.leases import LeaseKeeper
from musterd.workers.progress import ProgressTeller
from musterd.workers.toolbox import Toolbox
from musterd.workers.tools import make_tools
from musterd.workers.wakeups import Alarm, listen
from musterd.workers.worker import Rules

CLOSE_SECONDS = 5.0


def boottime() -> float:
    """Seconds on the clock that runs on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@attrs.frozen
class DaemonPlan:
    """What a node is made of. `engine` is not yet open; the daemon opens and closes it."""

    settings: Settings
    catalog: Catalog
    engine: WatchedEngine
    node: str
    dice: random.Random
    metrics: Metrics
    log: logging.Logger
    boottime: Callable[[], float] = boottime
    wall_clock: Callable[[], float] = time.time


class Daemon:
    """`run` serves until `stop` was called and the crew has drained. `status` may be asked at any
    time.
    """

    def __init__(self, plan: DaemonPlan) -> None:
        self._plan = plan
        self._phase: NodePhase = "starting"
        self._started_local = trio.current_time()
        self._drain_until: float | None = None
        self._ready, self._drain, self._hurry = trio.Event(), trio.Event(), trio.Event()
        settings, dice = plan.settings, plan.dice
        leases = lease_plan(settings)
        self._telling = Telling(plan.metrics, plan.log)
        self._desk = Desk(_desk_plan(plan), self._telling, dice)
        self._alarm = Alarm(plan.engine, self._desk)
        self._carrier = Carrier(self._desk, plan.engine, plan.boottime, dice, self._alarm.set)
        self._keeper = LeaseKeeper(self._desk, plan.engine, leases, plan.boottime)
        self._tools = make_tools(settings, plan.boottime, os.environ)
        rules = Rules(
            lambda: plan.catalog, settings.limits.max_error_bytes, settings.shutdown.interrupted,
            lambda: Toolbox(self._tools),
        )  # fmt: skip
        self._crew = Crew(self._desk, rules, self._telling.crew_changed)
        self._supervisor = Supervisor(
            self._crew, self._desk, plan.engine, policy_of(settings),
            settings.workers.scale_interval_ms / 1000, plan.metrics, plan.log, plan.wall_clock,
        )  # fmt: skip
        self._reaper = Reaper(
            plan.engine, self._desk, self._telling, dice, leases.reap_interval_seconds,
            lambda: plan.catalog, settings.retry,
        )  # fmt: skip

    def stop(self) -> None:
        """The first call drains: no more claims, running jobs may finish. The second dismisses the
        crew at once.
        """
        (self._hurry if self._drain.is_set() else self._drain).set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Raises `StoreMisconfigured` where waiting for the store will not help."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self._obey_signals)
            nursery.start_soon(self._live, nursery.cancel_scope)
            await self._ready.wait()
            task_status.started()

    async def _live(self, whole: trio.CancelScope) -> None:
        """From opening the store to closing it; ends everything else with it."""
        try:
            if await self._open():
                await self._serve()
        finally:
            self._tools.connections.close()
            with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_SECONDS):
                await self._plan.engine.close()
        self._phase = "stopped"
        event(self._plan.log, logging.INFO, "stopped", settled=self._telling.settled_total)
        whole.cancel()

    async def _open(self) -> bool:
        """Opens the store, however long it is away. False = told to stop before that."""
        opened = False
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_when, self._drain, nursery.cancel_scope)
            await open_store(self._plan)
            opened = True
            nursery.cancel_scope.cancel()
        return opened

    async def _serve(self) -> None:
        plan = self._plan
        async with trio.open_nursery() as services:
            services.start_soon(self._carrier.run)
            services.start_soon(self._keeper.run)
            services.start_soon(ProgressTeller(self._desk, plan.engine).run)
            services.start_soon(self._reaper.run)
            services.start_soon(self._alarm.run)
            services.start_soon(listen, plan.engine, self._desk, self._keeper, plan.dice)
            services.start_soon(measure_loop_lag, plan.metrics.loop_lag)
            await self._work()
            # Whatever the crew handed in is written before the services end, within a bound.
            self._carrier.close()
            with trio.move_on_after(plan.settings.shutdown.dismiss_seconds):
                await self._carrier.finished.wait()
            services.cancel_scope.cancel()

    async def _work(self) -> None:
        """The crew's life, from the first hiring to the last leaving."""
        async with trio.open_nursery() as crew_nursery:
            await crew_nursery.start(self._crew.run)
            self._supervisor.start()
            self._phase = "running"
            event(self._plan.log, logging.INFO, "ready", node=self._plan.node)
            self._ready.set()
            async with trio.open_nursery() as supervising:
                supervising.start_soon(self._supervisor.run)
                await self._drain.wait()
                supervising.cancel_scope.cancel()
            self._begin_drain()
            await self._dismiss_in_time()

    def _begin_drain(self) -> None:
        grace_seconds = self._plan.settings.shutdown.grace_period_seconds
        self._phase = "draining"
        self._drain_until = trio.current_time() + grace_seconds
        busy = self._crew.head.busy
        event(self._plan.log, logging.INFO, "draining", busy=busy, grace_seconds=grace_seconds)
        self._desk.stop_claiming()
        self._crew.close()

    async def _dismiss_in_time(self) -> None:
        """Dismisses whoever is still there when the grace period ends, or at once when hurried."""
        with trio.move_on_after(self._plan.settings.shutdown.grace_period_seconds):
            async with trio.open_nursery() as waiting:
                waiting.start_soon(_cancel_when, self._hurry, waiting.cancel_scope)
                await self._crew.gone.wait()
                waiting.cancel_scope.cancel()
        if not self._crew.gone.is_set():
            event(self._plan.log, logging.WARNING, "dismissing", busy=len(self._desk.seats))
            self._crew.dismiss()

    async def _obey_signals(
        self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as received:
            task_status.started()
            async for number in received:
                event(self._plan.log, logging.INFO, "signal", name=signal.Signals(number).name)
                if number == signal.SIGHUP:
                    advice = "settings are read at the start: restart the daemon"
                    event(self._plan.log, logging.WARNING, "not reloaded", message=advice)
                else:
                    self.stop()

    # -- for people

    def status(self) -> NodeStatus:
        plan, head = self._plan, self._crew.head
        left = None if self._drain_until is None else self._drain_until - trio.current_time()
        journal = self._supervisor.journal
        return NodeStatus(
            node=plan.node,
            version=__version__,
            phase=self._phase,
            up_seconds=trio.current_time() - self._started_local,
            engine=plan.engine.name,
            store=plan.engine.where,
            store_trouble=plan.engine.trouble,
            store_trouble_seconds=plan.engine.trouble_seconds(),
            store_message=plan.engine.last_message,
            idle=head.idle,
            busy=head.busy,
            retiring=head.retiring,
            default_count=plan.settings.workers.default_count,
            max_count=plan.settings.workers.max_count,
            depth=journal[-1].due if journal else None,
            settled_total=self._telling.settled_total,
            drain_seconds_left=left,
            last_decision=journal[-1] if journal else None,
        )

    def workers(self) -> Sequence[WorkerView]:
        return self._crew.workers(trio.current_time())

    def decisions(self) -> Sequence[Decision]:
        return list(self._supervisor.journal)


async def _cancel_when(event_: trio.Event, scope: trio.CancelScope) -> None:
    await event_.wait()
    scope.cancel()


def _desk_plan(plan: DaemonPlan) -> DeskPlan:
    settings, leases = plan.settings, lease_plan(plan.settings)
    return DeskPlan(
        node=plan.node,
        lease_seconds=leases.lease_seconds,
        margin_seconds=leases.margin_seconds,
        poll_seconds=settings.workers.poll_interval_ms / 1000,
        batch_max=settings.limits.claim_batch,
        ahead_seconds=settings.limits.claim_ahead_ms / 1000,
        caps=lambda: plan.catalog.caps,
    )
