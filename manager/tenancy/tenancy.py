"""One tenant on a node: its store, its desk, its crew, from opening to closing."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

import trio

from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.manager.crew import Crew
from musterd.manager.events.job_reporter import JobReporter
from musterd.manager.events.node_events import NodeEvents
from musterd.manager.log import event, event_of_list
from musterd.manager.node.cancelling import came_in_time, cancel_when
from musterd.manager.node.heartbeat import Heartbeat
from musterd.manager.node.status import Decision, NodePhase, TenantStatus, WorkerView
from musterd.manager.scaling.sharing import Ask
from musterd.manager.scaling.supervisor import Supervisor
from musterd.manager.tenancy.background import Background, Workplace
from musterd.manager.tenancy.plans import TenancyDeps
from musterd.manager.tenancy.services import Services
from musterd.manager.tenancy.starting import open_store_in_time
from musterd.store.lookout import EVERYTHING, Sight
from musterd.workers.claiming.desk import Desk
from musterd.workers.claiming.held import Held
from musterd.workers.ignoring import all_ignored
from musterd.workers.leases import LeaseKeeper
from musterd.workers.observer import Ignored

CLOSE_SECONDS = 5.0


class Tenancy:
    """`run` serves until `drain` was called and the crew has gone. `status` may be asked at any
    time. `tried`: the store has been asked once, whatever came of it. `dismissed`: who is still in
    the crew has been told to leave.
    """

    def __init__(self, plan: TenancyDeps) -> None:
        self._plan = plan
        self.name, self.settings = plan.tenant, plan.settings
        self.engine = plan.engine
        self.phase: NodePhase = "starting"
        self.tried, self.ready, self.ended = trio.Event(), trio.Event(), trio.Event()
        self._drain, self._hurry, self.dismissed = trio.Event(), trio.Event(), trio.Event()
        self.node_events = NodeEvents(plan)
        self.reporter = JobReporter(plan.metrics, plan.log, self.name, self.node_events.news)
        self._desk = Desk(
            plan.node, plan.settings, lambda: plan.catalog().caps, self.reporter, plan.rng
        )
        self._services = Services(plan, self._desk, self.reporter, self.node_events)
        self._crew = Crew(self._desk, self._services.worker_deps, self._crew_changed)
        self._supervisor = Supervisor(
            self._crew, self._desk, plan.engine, plan.settings, self, plan.log, plan.wall_clock,
            self._share, me=plan.node_id,
        )  # fmt: skip
        self._size_told = 0
        self._heartbeat = Heartbeat(plan, self.status, self.reporter.service_times)
        postman = self._services.mail.postman
        place = Workplace(plan, self.node_events, self._desk, self.reporter, postman)
        self.background = Background(place)
        self._desk.on_work = self._begin_work
        for on_change in (self._desk.poll, self._heartbeat.wake):
            plan.settings.subscribe(on_change)

    @property
    def is_default(self) -> bool:
        return self.name == DEFAULT_TENANT

    @property
    def keeper(self) -> LeaseKeeper:
        """Of this tenant's leases."""
        return self._services.keeper

    @property
    def is_leaving(self) -> bool:
        return self._drain.is_set()

    def drain(self) -> None:
        """No more claims; running jobs may finish within the grace period."""
        self._drain.set()

    def hurry(self) -> None:
        """The crew is dismissed at once."""
        self._drain.set()
        self._hurry.set()

    def be_watched(self, watched: bool) -> None:
        """Whether somebody else looks at the queue of an idle tenant, and calls `see`."""
        self._supervisor.rests = self._heartbeat.rests = watched
        self._heartbeat.wake()
        self.background.be_watched(watched)
        self._desk.be_watched(watched)
        if not watched:
            self.see(EVERYTHING)

    def see(self, sight: Sight) -> None:
        """What there is to do, as seen from outside."""
        if self.phase != "running":
            return
        if sight.work:
            self._desk.poll()
        if sight.reaping:
            self.background.may_reap()

    def _begin_work(self) -> None:
        self._supervisor.end_rest()
        self.node_events.news()
        if self._desk.held:
            self.background.may_reap()

    async def run(self) -> None:
        """From opening the store to closing it.

        Raises `StoreMisconfigured` where waiting for the default tenant's will not help: without it
        there is no node. Any other tenant is tried again later.
        """
        try:
            if await self._open():
                await self._serve()
        finally:
            self._plan.tenant_limits.leave(self.name)
            self._services.close()
            with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_SECONDS):
                await self.engine.close()
            self.phase = "stopped"
            for passed in (self.tried, self.dismissed, self.ended):
                passed.set()

    async def _open(self) -> bool:
        """Opens the store, however long it is away. False = told to stop before that."""
        opened = False
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel_when, self._drain, nursery.cancel_scope)
            await open_store_in_time(self._plan, self.tried.set)
            opened = True
            nursery.cancel_scope.cancel()
        return opened

    async def _serve(self) -> None:
        async with trio.open_nursery() as nursery:
            self._services.begin(nursery, self.background.wake, self.background.be_at_rest)
            nursery.start_soon(self._heartbeat.run)
            await self._work()
            await self.wind_up()
            nursery.cancel_scope.cancel()

    async def wind_up(self) -> None:
        """As `Services.wind_up`."""
        await self._services.wind_up(self._hurry)

    async def _work(self) -> None:
        """The crew's life, from the first hiring to the last leaving."""
        async with trio.open_nursery() as crew_nursery:
            await crew_nursery.start(self._crew.run)
            self._plan.tenant_limits.join(self.name, self)
            self.phase = "running"
            self.node_events.node_is("started")
            self._supervisor.start()
            if not self.is_default:
                event_of_list(self._plan.log, logging.INFO, "tenant ready")
            self.ready.set()
            async with trio.open_nursery() as supervising:
                supervising.start_soon(self._supervisor.run)
                supervising.start_soon(self.background.run)
                await self._drain.wait()
                self._begin_drain()
                supervising.cancel_scope.cancel()
            await self._dismiss_in_time()

    def _begin_drain(self) -> None:
        self.phase = "draining"
        self.node_events.node_is("draining")
        self._heartbeat.wake()
        self._desk.stop_claiming()
        self._crew.close()

    async def _dismiss_in_time(self) -> None:
        """Dismisses whoever is still there when the grace period ends, or at once when hurried."""
        grace_seconds = self.settings.now.shutdown.grace_period_seconds
        if not await came_in_time(self._crew.gone, grace_seconds, unless=self._hurry):
            event(self._plan.log, logging.WARNING, "dismissing", busy=len(self._desk.seats))
            self._crew.dismiss()
        self.dismissed.set()

    # -- for the tenant_limits (see `Member`) and the supervisor

    def ask(self) -> Ask:
        workers, head = self.settings.now.workers, self._crew.head
        if self.phase != "running":
            return Ask(0, 0, 0, head.size, head.retiring)
        wish = self._supervisor.wish
        return Ask(workers.default_count, workers.max_count, wish, head.size, head.retiring)

    def shrink(self, count: int) -> None:
        self._crew.retire_beyond(count)
        self.crew(*self._crew.head)

    def wake(self) -> None:
        self._supervisor.wake()

    def scaled(self, decision: Decision) -> None:
        self._plan.metrics.scaled(decision, self.name)
        self.node_events.scaled(decision)

    def rest(self, rests: bool) -> None:
        self.background.rest(rests)

    def crew(self, idle: int, busy: int, retiring: int) -> None:
        self._plan.metrics.crew(idle, busy, retiring, self.name)
        if idle + busy != self._size_told:
            self._size_told = idle + busy
            self._heartbeat.wake()

    def _share(self) -> int | None:
        tenant_limits = self._plan.tenant_limits
        return tenant_limits.allowance(self.name) if tenant_limits.is_shared else None

    def _crew_changed(self, how: str, worker: int) -> None:
        self.reporter.crew_changed(how, worker)
        self.node_events.crew_changed(how, worker)
        if how != "hired":
            self._plan.tenant_limits.freed()

    # -- for people

    def status(self) -> TenantStatus:
        engine, head, last = self.engine, self._crew.head, self.last_decision
        workers = self.settings.now.workers
        return TenantStatus(
            name=self.name,
            phase=self.phase,
            engine=engine.name,
            store=engine.where,
            store_trouble=engine.trouble,
            store_trouble_seconds=engine.trouble_seconds(),
            store_message=engine.last_message,
            idle=head.idle,
            busy=head.busy,
            retiring=head.retiring,
            default_count=workers.default_count,
            max_count=workers.max_count,
            depth=None if last is None else last.due,
            settled_total=self.reporter.settled_total,
            retention_trouble=self.background.retention_trouble,
        )

    def held(self) -> Collection[Held]:
        """The jobs in this tenant's hands."""
        return self._desk.held.values()

    def ignored(self) -> list[Ignored]:
        """Requests that the work of this tenant does not obey."""
        return all_ignored(self.held(), trio.current_time())

    @property
    def last_decision(self) -> Decision | None:
        journal = self._supervisor.journal
        return journal[-1] if journal else None

    def workers(self) -> Sequence[WorkerView]:
        return self._crew.workers(trio.current_time())

    def decisions(self) -> Sequence[Decision]:
        return list(self._supervisor.journal)
