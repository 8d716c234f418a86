"""One tenant on a node: its parts, in order of their needs, and its life from start to end."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from functools import partial

import trio
from attrs import evolve

from musterd.config.settings import lease_plan
from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.manager.crew import Crew
from musterd.manager.duties.duty import EVENTS
from musterd.manager.events.node_events import FaultReporter, JobReporter, NodeEvents
from musterd.manager.log import event, event_of_list
from musterd.manager.metrics.history import HistoryWriter, QueueWatch
from musterd.manager.node.heartbeat import Heartbeat
from musterd.manager.node.process import came_in_time, cancel_when
from musterd.manager.node.status import Decision, NodePhase, TenantStatus, WorkerView
from musterd.manager.scaling.guard import Footprints, Machine
from musterd.manager.scaling.journal import JournalPage, Period
from musterd.manager.scaling.journal_writer import JournalWriter
from musterd.manager.scaling.supervisor import Supervisor
from musterd.manager.tenancy.deps import TenancyDeps
from musterd.manager.tenancy.starting import KindPublisher, open_store_in_time
from musterd.manager.tenancy.tenant_duties import TenantDuties
from musterd.manager.webhooks.postman import make_mail
from musterd.store.idle_tenant_scan import EVERYTHING, TenantActivity
from musterd.store.leases import Leases
from musterd.store.remarks import behind, remarks
from musterd.workers.claiming.desk import ClockAndRng, Desk
from musterd.workers.claiming.exchange_loop import ExchangeLoop
from musterd.workers.claiming.held import Held, Ignored, all_ignored
from musterd.workers.idleness import Alarm, IdleMode, Idleness, listen
from musterd.workers.leases import LeaseKeeper
from musterd.workers.log_writer import LogWriter
from musterd.workers.progress import PhaseBook, ProgressWriter
from musterd.workers.toolbox import Toolbox
from musterd.workers.tools import LiveTools
from musterd.workers.worker import WorkerDeps, attempt

CLOSE_SECONDS = 5.0


class Tenancy:
    """`run` serves until `drain` is called and the crew has left. `tried`: the store was asked
    once, whatever the result. `dismissed`: the remaining crew was told to leave.
    """

    def __init__(self, deps: TenancyDeps) -> None:
        self._deps = deps
        self.name, self.settings, self.engine = deps.tenant, deps.settings, deps.engine
        self.wall_clock = deps.wall_clock
        self.phase: NodePhase = "starting"
        self.tried, self.ready, self.ended = trio.Event(), trio.Event(), trio.Event()
        self._drain, self._hurry, self.dismissed = trio.Event(), trio.Event(), trio.Event()
        self._size_said = 0
        self.abandoned: list[int] = []  # jobs whose work did not end
        settings, engine, rng, boottime = deps.settings, deps.engine, deps.rng, deps.boottime
        self.idleness = Idleness()
        contained = FaultReporter(deps).contained
        self._footprints = Footprints()
        self._tools = LiveTools(settings, boottime, deps.environ, contained, self._footprints.note)
        self.node_events = self._make_node_events()
        self.idleness.on_news(self.node_events.news)
        self.journal = JournalWriter(engine.journal, settings, deps.log, deps.node, deps.node_id)
        self._mail = make_mail(deps, self._tools)
        self._reporter = JobReporter(deps, self.node_events, self._mail.ended)
        self._desk = Desk(
            deps.node, settings, lambda: deps.catalog().caps, self.idleness, self._reporter,
            ClockAndRng(boottime, rng),
        )  # fmt: skip
        self._alarm = Alarm(engine, self._desk)
        self._exchange_loop = ExchangeLoop(
            self._desk, self._leases(), boottime, rng, self._alarm.set, contained
        )
        leases = lease_plan(settings.now)
        self.lease_keeper = LeaseKeeper(self._desk, engine, leases, boottime, self._reporter)
        self._progress = ProgressWriter(self._desk, engine, settings, contained)
        self._logs = LogWriter(engine, settings, contained)
        self._phases = PhaseBook(self._desk, engine, rng, self._progress, self._logs)
        self._kinds = KindPublisher(deps)
        self._idle_mode = IdleMode(engine, self._desk, self.idleness, deps.node_id, settings, rng)
        self._crew = Crew(self._desk, self._worker_deps(), self.crew_changed)
        self._supervisor = Supervisor(
            self.name, deps.tenant_limits, self._crew, self._desk, engine, self.idleness, settings,
            self, deps.log, deps.wall_clock, deps.node_id, deps.catalog,
            self._reporter.service_times, self._reporter.arrivals, self._machine,
        )  # fmt: skip
        self._heartbeat = Heartbeat(
            deps, self.status, self._reporter.service_times, self.idleness, self._wish
        )
        self.duties = TenantDuties(
            deps, self.idleness, self._desk, self.node_events, self._reporter, self._mail.postman
        )

    def _leases(self) -> Leases:
        deps, engine = self._deps, self.engine
        if deps.tracing is None:
            return engine.leases
        return deps.tracing.leases(engine, self.name, deps.wall_clock)

    def _worker_deps(self) -> WorkerDeps:
        deps, make_box = self._deps, partial(Toolbox, lambda: self._tools.now)
        run = attempt if deps.tracing is None else deps.tracing.attempt
        return WorkerDeps(deps.catalog, deps.settings, make_box, self._phases, run)

    def _make_node_events(self) -> NodeEvents:
        watch = QueueWatch(self._deps, self.idleness, self.status, self.decisions)
        return NodeEvents(
            self._deps, lambda: self.duties.holds(EVENTS), HistoryWriter(self._deps), watch
        )

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

    def end_scan(self) -> None:
        self.idleness.end_scan()
        self.note_activity(EVERYTHING)

    def note_activity(self, activity: TenantActivity) -> None:
        """What the node's scan has seen."""
        if self.phase != "running":
            return
        if activity.work:
            self._desk.poll()
        if activity.reaping:
            self.duties.reaper.wake()

    async def run(self) -> None:
        """From opening the store to closing it. Raises `StoreMisconfigured` if the default tenant's
        store cannot be used: without it there is no node.
        """
        try:
            if await self._open():
                await self._serve()
        finally:
            self._deps.tenant_limits.leave(self.name)
            self._tools.close()
            with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_SECONDS):
                await self.engine.close()
            self.phase = "stopped"
            for passed in (self.tried, self.dismissed, self.ended):
                passed.set()

    async def _open(self) -> bool:
        """Waits for the store without limit. False = told to stop before it opened."""
        opened = False
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel_when, self._drain, nursery.cancel_scope)
            await open_store_in_time(self._deps, self.tried.set)
            opened = True
            nursery.cancel_scope.cancel()
        return opened

    async def _serve(self) -> None:
        async with trio.open_nursery() as nursery:
            for part in (
                self._exchange_loop, self.lease_keeper, self._progress, self._logs, self._phases,
                self._kinds, self._mail, self._alarm, self.node_events, self.journal,
                self._idle_mode, self._heartbeat,
            ):  # fmt: skip
                nursery.start_soon(part.run)
            nursery.start_soon(
                listen, self.engine, self._desk, self.lease_keeper, self.duties.leading.wake,
                self._deps.rng, FaultReporter(self._deps).contained,
            )  # fmt: skip
            await self._work()
            await self.wind_up()
            nursery.cancel_scope.cancel()

    async def wind_up(self) -> None:
        """After the crew has left, or never will: writes and reports its last results, in time."""
        self._exchange_loop.close()
        with trio.move_on_after(self.settings.now.shutdown.dismiss_seconds):
            await self._exchange_loop.finished.wait()
        await self._mail.leave(self._hurry)
        self.abandoned = [held.claim.id for held in self.held() if not held.settling]
        await self.journal.finish()
        await self.node_events.finish(self.interrupted, self.abandoned)

    async def _work(self) -> None:
        """The crew's life, from the first hire to the last leave."""
        async with trio.open_nursery() as crew_nursery:
            await crew_nursery.start(self._crew.run)
            self._deps.tenant_limits.join(self._supervisor)
            self.phase = "running"
            self.node_events.node_is("started")
            self._supervisor.start()
            if self.name != DEFAULT_TENANT:
                event_of_list(self._deps.log, logging.INFO, "tenant ready")
            self.ready.set()
            async with trio.open_nursery() as supervising:
                supervising.start_soon(self._supervisor.run)
                supervising.start_soon(self.duties.leading.run)
                await self._drain.wait()
                self._begin_drain()
                supervising.cancel_scope.cancel()
            await self._dismiss_in_time()

    def _begin_drain(self) -> None:
        self.phase = "draining"
        self.node_events.node_is("draining")
        self._heartbeat.bell.ring()
        self._desk.stop_claiming()
        self._crew.close()

    async def _dismiss_in_time(self) -> None:
        """Dismisses the remaining crew after the grace period, or at once when hurried."""
        grace_seconds = self.settings.now.shutdown.grace_period_seconds
        if not await came_in_time(self._crew.gone, grace_seconds, unless=self._hurry):
            busy = len(self._desk.seats)
            event(self._deps.log, logging.WARNING, "dismissing", busy=busy)
            self._crew.dismiss()
        self.dismissed.set()

    # -- what its crew and its supervisor report

    def scaled(self, decision: Decision) -> None:
        self._deps.metrics.scaled(decision, self.name)
        self.node_events.scaled(decision)
        self.journal.note(decision)

    def crew(self, idle: int, busy: int, retiring: int) -> None:
        self._deps.metrics.crew(idle, busy, retiring, self.name)
        if idle + busy != self._size_said:
            self._size_said = idle + busy
            self._heartbeat.bell.ring()

    def crew_changed(self, how: str, worker: int) -> None:
        event(self._deps.log, logging.DEBUG, f"worker {how}", worker=worker)
        self.node_events.crew_changed(how, worker)
        if how != "hired":
            self._deps.tenant_limits.freed()

    def _machine(self) -> Machine:
        return evolve(
            self._deps.machine(),
            claim_p99_seconds=self.engine.claim_p99_seconds(),
            worker_bytes=self._footprints.largest_bytes,
        )

    # -- for people

    def status(self) -> TenantStatus:
        engine, head, last = self.engine, self._crew.head, self.last_decision
        policy = self._supervisor.policy
        return TenantStatus(
            name=self.name, phase=self.phase, engine=engine.name, store=engine.where,
            store_trouble=engine.trouble, store_trouble_seconds=engine.trouble_seconds(),
            store_message=engine.last_message, idle=head.idle, busy=head.busy,
            retiring=head.retiring, default_count=policy.default_count,
            max_count=policy.max_count, depth=None if last is None else last.due,
            depth_exact=last is None or last.due_exact,
            settled_total=self._reporter.settled_total,
            retention_trouble=self.duties.retiring.trouble,
        )  # fmt: skip

    async def remarks(self) -> Sequence[str]:
        """Those about its store and its promises; none if the store does not answer."""
        seen, last = await self.duties.situation.get(), self.last_decision
        if seen is None:
            return []
        slack_seconds = None if last is None else last.slack_seconds
        return [*behind(slack_seconds), *remarks(seen, self.settings.now)]

    @property
    def interrupted(self) -> Sequence[int]:
        """Jobs that were running when the crew was dismissed, and did not end by themselves."""
        return self._desk.interrupted

    def held(self) -> Collection[Held]:
        return self._desk.held.values()

    def ignored(self) -> list[Ignored]:
        """Requests that running work does not obey."""
        return all_ignored(self.held(), trio.current_time())

    @property
    def last_decision(self) -> Decision | None:
        journal = self._supervisor.journal
        return journal[-1] if journal else None

    def _wish(self) -> int | None:
        last = self.last_decision
        return None if last is None else last.raw_wish

    def workers(self) -> Sequence[WorkerView]:
        return self._crew.workers(trio.current_time())

    def decisions(self) -> Sequence[Decision]:
        return list(self._supervisor.journal)

    async def read_journal(self, period: Period) -> JournalPage:
        """The journal of all nodes."""
        return await self.journal.read(period, self.decisions())
