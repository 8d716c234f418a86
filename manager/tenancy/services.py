"""What serves a tenancy's crew: it carries settlements and claims, keeps leases, tells of progress,
phases and messages, and hears what others want.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from musterd.config.leasing import lease_plan
from musterd.manager.events.job_reporter import JobReporter
from musterd.manager.events.node_events import NodeEvents
from musterd.manager.tenancy.kind_facts import KindPublisher
from musterd.manager.tenancy.plans import TenancyDeps
from musterd.manager.webhooks.wiring import make_mail
from musterd.workers.claiming.desk import Desk
from musterd.workers.claiming.exchange_loop import ExchangeLoop
from musterd.workers.idleness import IdleMode
from musterd.workers.leases import LeaseKeeper
from musterd.workers.phase_book import PhaseBook
from musterd.workers.progress import ProgressTeller
from musterd.workers.toolbox import Toolbox
from musterd.workers.tools import make_tools
from musterd.workers.wakeups import Alarm, listen
from musterd.workers.worker import WorkerDeps


class Services:
    """Owned by a tenancy: begun before its crew is hired, wound up when that has gone."""

    def __init__(
        self,
        plan: TenancyDeps,
        desk: Desk,
        reporter: JobReporter,
        node_events: NodeEvents,
    ) -> None:
        self._plan, self._desk, self._node_events = plan, desk, node_events
        settings, engine, rng = plan.settings, plan.engine, plan.rng
        self._alarm = Alarm(engine, desk)
        self._carrier = ExchangeLoop(desk, engine, plan.boottime, rng, self._alarm.set)
        self.keeper = LeaseKeeper(desk, engine, lease_plan(settings.now), plan.boottime, reporter)
        self._tools = make_tools(settings.now, plan.boottime, plan.environ)
        self._phases = PhaseBook(desk, engine, rng)
        self._rules = KindPublisher(plan)
        self.mail = make_mail(plan, reporter, lambda: self._tools)
        self.worker_deps = WorkerDeps(
            plan.catalog, settings,
            lambda: Toolbox(self._tools, lambda: self._tools), self._phases,
        )  # fmt: skip
        settings.subscribe(self._renew_tools)
        settings.subscribe(self._rules.wake)

    def begin(
        self,
        nursery: trio.Nursery,
        duties_free: Callable[[], None],
        at_rest: Callable[[bool], None],
    ) -> None:
        """They run until the nursery ends. `duties_free`: somebody has given up a duty; `at_rest`:
        nothing happens in the store, or no longer nothing.
        """
        engine, desk = self._plan.engine, self._desk
        teller = ProgressTeller(desk, engine)
        for run in (self._carrier.run, self.keeper.run, teller.run, self._phases.run):
            nursery.start_soon(run)
        for run in (self._rules.run, self.mail.run, self._alarm.run, self._node_events.run):
            nursery.start_soon(run)
        plan = self._plan
        idle_mode = IdleMode(engine, desk, plan.node_id, plan.settings, plan.rng, at_rest)
        nursery.start_soon(idle_mode.run)
        nursery.start_soon(listen, engine, desk, self.keeper, duties_free, self._plan.rng)

    def _renew_tools(self) -> None:
        """After every reload: workers replace children that may run old code."""
        plan = self._plan
        tools = make_tools(plan.settings.now, plan.boottime, plan.environ)
        self._tools = attrs.evolve(tools, connections=self._tools.connections)

    async def wind_up(self, hurry: trio.Event) -> None:
        """The crew has gone, or never will: what it handed in is written and told, in time."""
        self._carrier.close()
        with trio.move_on_after(self._plan.settings.now.shutdown.dismiss_seconds):
            await self._carrier.finished.wait()
        await self.mail.leave(hurry)
        await self._node_events.finish()

    def close(self) -> None:
        """Lets go of what runners share."""
        self._tools.connections.close()
