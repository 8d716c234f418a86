"""The one place where a tenancy is put together: its parts, in the order in which they need each
other.
"""

from __future__ import annotations

from typing import Protocol

import trio

from musterd.config.leasing import lease_plan
from musterd.manager.crew import Crew
from musterd.manager.duties import names
from musterd.manager.events.node_events import NodeEvents
from musterd.manager.events.reporters import JobReporter
from musterd.manager.node.heartbeat import Heartbeat
from musterd.manager.node.status import TenantStatus
from musterd.manager.scaling.supervisor import ScalingObserver, Supervisor
from musterd.manager.tenancy.deps import TenancyDeps
from musterd.manager.tenancy.kind_facts import KindPublisher
from musterd.manager.tenancy.tenant_duties import TenantDuties
from musterd.manager.webhooks.wiring import Mail, make_mail
from musterd.workers.claiming.desk import Desk
from musterd.workers.claiming.exchange_loop import ExchangeLoop
from musterd.workers.idle_mode import IdleMode
from musterd.workers.idleness import Idleness
from musterd.workers.leases import LeaseKeeper
from musterd.workers.phase_book import PhaseBook
from musterd.workers.progress import ProgressWriter
from musterd.workers.toolbox import Toolbox
from musterd.workers.tools import LiveTools
from musterd.workers.wakeups import Alarm, listen
from musterd.workers.worker import WorkerDeps


class Owner(ScalingObserver, Protocol):
    """The tenancy, as its parts know it."""

    def status(self) -> TenantStatus: ...

    def allowance(self) -> int | None: ...

    def crew_changed(self, how: str, worker: int) -> None: ...


class Parts:
    """Owned by a tenancy. `start` comes before the crew's life and `wind_up` after it."""

    def __init__(self, deps: TenancyDeps, owner: Owner) -> None:
        self._deps = deps
        settings, engine, rng, boottime = deps.settings, deps.engine, deps.rng, deps.boottime
        self.idleness = Idleness()
        self.tools = LiveTools(settings, boottime, deps.environ)
        self.node_events = NodeEvents(deps, lambda: self.duties.holds(names.EVENTS))
        self.idleness.on_news(self.node_events.news)
        self.mail: Mail = make_mail(deps, self.tools)
        self.reporter = JobReporter(
            deps.metrics, deps.log, deps.tenant, self.node_events.news, self.mail.settled
        )
        self.desk = Desk(
            deps.node, settings, lambda: deps.catalog().caps, self.idleness, self.reporter, rng
        )
        self.alarm = Alarm(engine, self.desk)
        self.exchange_loop = ExchangeLoop(self.desk, engine, boottime, rng, self.alarm.set)
        leases = lease_plan(settings.now)
        self.lease_keeper = LeaseKeeper(self.desk, engine, leases, boottime, self.reporter)
        self.phases = PhaseBook(self.desk, engine, rng)
        self.progress = ProgressWriter(self.desk, engine)
        self.kinds = KindPublisher(deps)
        self.idle_mode = IdleMode(engine, self.desk, self.idleness, deps.node_id, settings, rng)
        worker_deps = WorkerDeps(
            deps.catalog, settings, lambda: Toolbox(lambda: self.tools.now), self.phases
        )
        self.crew = Crew(self.desk, worker_deps, owner.crew_changed)
        self.supervisor = Supervisor(
            self.crew, self.desk, engine, self.idleness, settings, owner, deps.log,
            deps.wall_clock, owner.allowance, me=deps.node_id,
        )  # fmt: skip
        times = self.reporter.service_times
        self.heartbeat = Heartbeat(deps, owner.status, times, self.idleness)
        self.duties = TenantDuties(
            deps, self.idleness, self.desk, self.node_events, self.reporter, self.mail.postman
        )

    def start(self, nursery: trio.Nursery) -> None:
        """Starts what serves the crew. It runs until the nursery ends."""
        for part in (
            self.exchange_loop, self.lease_keeper, self.progress, self.phases, self.kinds,
            self.mail, self.alarm, self.node_events, self.idle_mode, self.heartbeat,
        ):  # fmt: skip
            nursery.start_soon(part.run)
        engine, rng = self._deps.engine, self._deps.rng
        nursery.start_soon(listen, engine, self.desk, self.lease_keeper, self.duties.wake, rng)

    async def wind_up(self, hurry: trio.Event) -> None:
        """The crew has gone, or never will: writes and reports what it handed in, in time."""
        self.exchange_loop.close()
        with trio.move_on_after(self._deps.settings.now.shutdown.dismiss_seconds):
            await self.exchange_loop.finished.wait()
        await self.mail.leave(hurry)
        await self.node_events.finish()
