"""One tenant on a node: its store, its desk, its crew, from opening to closing."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

import trio

from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.manager.events.node_events import NodeEvents
from musterd.manager.log import event, event_of_list
from musterd.manager.node.status import Decision, NodePhase, TenantStatus, WorkerView
from musterd.manager.node.waits import came_in_time, cancel_when
from musterd.manager.scaling.sharing import Ask
from musterd.manager.tenancy.deps import TenancyDeps
from musterd.manager.tenancy.starting import open_store_in_time
from musterd.manager.tenancy.tenant_duties import TenantDuties
from musterd.manager.tenancy.wiring import Parts
from musterd.store.idle_tenant_scan import EVERYTHING, TenantActivity
from musterd.workers.claiming.held import Held, all_ignored
from musterd.workers.idleness import Idleness
from musterd.workers.leases import LeaseKeeper
from musterd.workers.observer import Ignored

CLOSE_SECONDS = 5.0


class Tenancy:
    """`run` serves until `drain` was called and the crew has gone. `status` may be asked at any
    time. `tried`: the store has been asked once, whatever came of it. `dismissed`: who is still in
    the crew has been told to leave.
    """

    def __init__(self, deps: TenancyDeps) -> None:
        self._deps = deps
        self.name, self.settings, self.engine = deps.tenant, deps.settings, deps.engine
        self.phase: NodePhase = "starting"
        self.tried, self.ready, self.ended = trio.Event(), trio.Event(), trio.Event()
        self._drain, self._hurry, self.dismissed = trio.Event(), trio.Event(), trio.Event()
        self._size_said = 0
        self._parts = Parts(deps, self)

    @property
    def is_default(self) -> bool:
        return self.name == DEFAULT_TENANT

    @property
    def idleness(self) -> Idleness:
        return self._parts.idleness

    @property
    def lease_keeper(self) -> LeaseKeeper:
        return self._parts.lease_keeper

    @property
    def node_events(self) -> NodeEvents:
        return self._parts.node_events

    @property
    def duties(self) -> TenantDuties:
        return self._parts.duties

    @property
    def settled_total(self) -> int:
        return self._parts.reporter.settled_total

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

    def begin_scan(self) -> None:
        """From now on the node looks at this tenant's queue while it is idle, and calls
        `note_activity`.
        """
        self.idleness.begin_scan()

    def end_scan(self) -> None:
        self.idleness.end_scan()
        self.note_activity(EVERYTHING)

    def note_activity(self, activity: TenantActivity) -> None:
        """What there is to do, as the node's scan has seen it."""
        if self.phase != "running":
            return
        if activity.work:
            self._parts.desk.poll()
        if activity.reaping:
            self.duties.may_reap()

    async def run(self) -> None:
        """From opening the store to closing it.

        Raises `StoreMisconfigured` where waiting for the default tenant's will not help: without it
        there is no node. Any other tenant is tried again later.
        """
        try:
            if await self._open():
                await self._serve()
        finally:
            self._deps.tenant_limits.leave(self.name)
            self._parts.tools.close()
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
            await open_store_in_time(self._deps, self.tried.set)
            opened = True
            nursery.cancel_scope.cancel()
        return opened

    async def _serve(self) -> None:
        async with trio.open_nursery() as nursery:
            self._parts.start(nursery)
            await self._work()
            await self.wind_up()
            nursery.cancel_scope.cancel()

    async def wind_up(self) -> None:
        """Writes and reports what the crew handed in, in time."""
        await self._parts.wind_up(self._hurry)

    async def _work(self) -> None:
        """The crew's life, from the first hiring to the last leaving."""
        async with trio.open_nursery() as crew_nursery:
            await crew_nursery.start(self._parts.crew.run)
            self._deps.tenant_limits.join(self.name, self)
            self.phase = "running"
            self.node_events.node_is("started")
            self._parts.supervisor.start()
            if not self.is_default:
                event_of_list(self._deps.log, logging.INFO, "tenant ready")
            self.ready.set()
            async with trio.open_nursery() as supervising:
                supervising.start_soon(self._parts.supervisor.run)
                supervising.start_soon(self.duties.run)
                await self._drain.wait()
                self._begin_drain()
                supervising.cancel_scope.cancel()
            await self._dismiss_in_time()

    def _begin_drain(self) -> None:
        self.phase = "draining"
        self.node_events.node_is("draining")
        self._parts.heartbeat.wake()
        self._parts.desk.stop_claiming()
        self._parts.crew.close()

    async def _dismiss_in_time(self) -> None:
        """Dismisses whoever is still there when the grace period ends, or at once when hurried."""
        grace_seconds = self.settings.now.shutdown.grace_period_seconds
        if not await came_in_time(self._parts.crew.gone, grace_seconds, unless=self._hurry):
            busy = len(self._parts.desk.seats)
            event(self._deps.log, logging.WARNING, "dismissing", busy=busy)
            self._parts.crew.dismiss()
        self.dismissed.set()

    # -- for the tenant limits (see `Member`) and its parts (see `Owner`)

    def ask(self) -> Ask:
        workers, head = self.settings.now.workers, self._parts.crew.head
        if self.phase != "running":
            return Ask(0, 0, 0, head.size, head.retiring)
        wish = self._parts.supervisor.wish
        return Ask(workers.default_count, workers.max_count, wish, head.size, head.retiring)

    def shrink(self, count: int) -> None:
        self._parts.crew.retire_beyond(count)
        self.crew(*self._parts.crew.head)

    def wake(self) -> None:
        self._parts.supervisor.wake()

    def scaled(self, decision: Decision) -> None:
        self._deps.metrics.scaled(decision, self.name)
        self.node_events.scaled(decision)

    def crew(self, idle: int, busy: int, retiring: int) -> None:
        self._deps.metrics.crew(idle, busy, retiring, self.name)
        if idle + busy != self._size_said:
            self._size_said = idle + busy
            self._parts.heartbeat.wake()

    def allowance(self) -> int | None:
        """How many of the node's workers there are for this crew now, given its wish; None = as
        many as it wants.
        """
        tenant_limits = self._deps.tenant_limits
        return tenant_limits.allowance(self.name) if tenant_limits.is_shared else None

    def crew_changed(self, how: str, worker: int) -> None:
        self._parts.reporter.crew_changed(how, worker)
        self.node_events.crew_changed(how, worker)
        if how != "hired":
            self._deps.tenant_limits.freed()

    # -- for people

    def status(self) -> TenantStatus:
        engine, head, last = self.engine, self._parts.crew.head, self.last_decision
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
            settled_total=self._parts.reporter.settled_total,
            retention_trouble=self.duties.retention_trouble,
        )

    def held(self) -> Collection[Held]:
        """The jobs in this tenant's hands."""
        return self._parts.desk.held.values()

    def ignored(self) -> list[Ignored]:
        """Requests that the work of this tenant does not obey."""
        return all_ignored(self.held(), trio.current_time())

    @property
    def last_decision(self) -> Decision | None:
        journal = self._parts.supervisor.journal
        return journal[-1] if journal else None

    def workers(self) -> Sequence[WorkerView]:
        return self._parts.crew.workers(trio.current_time())

    def decisions(self) -> Sequence[Decision]:
        return list(self._parts.supervisor.journal)
