"""Takes a new configuration over while the node runs: whole, as far as it can, or not at all."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
import trio

from musterd.catalog.kinds import Catalog
from musterd.config.faults import ConfigError
from musterd.config.reload import Changes, changes
from musterd.config.settings import Settings
from musterd.config.tenants import settings_of
from musterd.manager.fingerprint import fingerprint
from musterd.manager.headcount import Headcount
from musterd.manager.log import event
from musterd.manager.metrics import Metrics
from musterd.manager.tenancy import Tenancy
from musterd.manager.view import Configured
from musterd.store.errors import StoreError

if TYPE_CHECKING:
    from musterd.manager.daemon import DaemonPlan


@attrs.define(eq=False)
class Reloader:
    """Owned by the daemon, whose `tenancies` it adds to and takes from. `settings` and `catalog`
    are those of the moment. `homes` is where tenancies live; None = this is no time to reload.
    """

    plan: DaemonPlan
    tenancies: dict[str, Tenancy]
    headcount: Headcount
    make: Callable[[str, Settings], Tenancy]  # raises ConfigError or StoreError
    on_change: Callable[[], None] = lambda: None  # tenants have come or gone
    homes: trio.Nursery | None = attrs.field(default=None, init=False)
    settings: Settings = attrs.field(init=False)
    catalog: Catalog = attrs.field(init=False)
    generation: int = attrs.field(default=1, init=False)
    configured: Configured = attrs.field(init=False)
    _taken_at: float = attrs.field(init=False)
    _turn: trio.Lock = attrs.field(factory=trio.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self.settings, self.catalog = self.plan.settings, self.plan.catalog
        self._note_configuration()
        self._taken_at = self.plan.wall_clock()

    @property
    def poll_seconds(self) -> float:
        return self.settings.workers.poll_interval_ms / 1000

    def reload_soon(self) -> None:
        if self.homes is None or self.plan.reread is None:
            event(self.plan.log, logging.WARNING, "not reloaded", message="the node does not run")
        else:
            self.homes.start_soon(self.reload, self.plan.reread)

    async def reload(self, reread: Callable[[], tuple[Settings, Catalog]]) -> None:
        """One after the other. What is invalid is told, and changes nothing."""
        async with self._turn:
            fresh: dict[str, Tenancy] = {}
            try:
                settings, catalog = await trio.to_thread.run_sync(reread)
                found = changes(self.settings, settings)
                self._make_all(found, fresh)
            except (ConfigError, StoreError) as error:
                self._refuse(error)
                await self._undo(fresh)
                return
            self._take_over(found, catalog, fresh)

    def _make_all(self, found: Changes, fresh: dict[str, Tenancy]) -> None:
        for name in found.added:
            if name not in self.tenancies:  # else it comes back when it has left
                fresh[name] = self.make(name, found.settings)

    async def _undo(self, fresh: dict[str, Tenancy]) -> None:
        for name, tenancy in fresh.items():
            await tenancy.engine.close()
            self.plan.forget(name)

    def _refuse(self, error: Exception) -> None:
        for line in str(error).splitlines():
            event(self.plan.log, logging.ERROR, "configuration fault", message=line)
        event(self.plan.log, logging.ERROR, "not reloaded", generation=self.generation)
        self.plan.metrics.config(self.generation, success=False, timestamp=self._taken_at)
        self._announce("refused", [])

    def _take_over(self, found: Changes, catalog: Catalog, fresh: dict[str, Tenancy]) -> None:
        """Without a pause in between."""
        plan, self.settings, self.catalog = self.plan, found.settings, catalog
        self.generation += 1
        self._note_configuration()
        self._taken_at = plan.wall_clock()
        for name in (*found.removed, *found.moved):
            self._see_off(name)
        for name, tenancy in self.tenancies.items():
            if not tenancy.is_leaving and name in found.settings.tenants:
                tenancy.take_over(settings_of(found.settings, name))
        for name, tenancy in fresh.items():
            self._serve(name, tenancy)
        self.headcount.set_overall(found.settings.workers.max_count)
        tell_bounds(plan.metrics, found.settings)
        plan.metrics.config(self.generation, success=True, timestamp=self._taken_at)
        self._tell(found)

    def _note_configuration(self) -> None:
        """What is in effect: a change that needs a restart does not count."""
        digits = fingerprint(self.settings, self.catalog)
        self.configured = Configured(self.generation, digits)

    def _tell(self, found: Changes) -> None:
        log = self.plan.log
        for key in found.restart:
            event(log, logging.WARNING, "needs a restart", key=key)
        told = {"added": found.added, "removed": found.removed, "moved": found.moved}
        told["changed"] = found.live
        listed = {name: ",".join(names) for name, names in told.items() if names}
        kinds = len(self.catalog)
        event(log, logging.INFO, "reloaded", generation=self.generation, kinds=kinds, **listed)
        self._announce("applied", [*found.live, *found.restart])

    def _announce(self, result: str, changed: list[str]) -> None:
        """In the log of events of each tenant that is served."""
        for tenancy in self.tenancies.values():
            announce = tenancy.chronicle.announcer.announce
            announce("config.reloaded", result=result, generation=self.generation, changed=changed)

    def _serve(self, name: str, tenancy: Tenancy) -> None:
        if self.homes is not None:
            self.tenancies[name] = tenancy
            self.homes.start_soon(tenancy.run)
            self.on_change()

    def _see_off(self, name: str) -> None:
        """No more claims for it; it is gone when its jobs have ended."""
        tenancy = self.tenancies[name]
        busy = tenancy.status().busy
        event(self.plan.log, logging.INFO, "tenant leaves", tenant=name, busy=busy)
        tenancy.drain()
        if self.homes is not None:
            self.homes.start_soon(self._forget, name, tenancy)

    async def _forget(self, name: str, tenancy: Tenancy) -> None:
        await tenancy.ended.wait()
        if self.tenancies.get(name) is not tenancy:
            return  # it was to leave more than once
        del self.tenancies[name]
        self.plan.metrics.forget(name)
        self.plan.forget(name)
        self.on_change()
        event(self.plan.log, logging.INFO, "tenant left", tenant=name)
        if name in self.settings.tenants:  # at its new place, or somebody has thought better of it
            self._serve_again(name)

    def _serve_again(self, name: str) -> None:
        try:
            self._serve(name, self.make(name, self.settings))
        except (ConfigError, StoreError) as error:
            self._refuse(error)


def tell_bounds(metrics: Metrics, settings: Settings) -> None:
    """Tells the least and the largest number of workers of a node."""
    floors = sum(tenant.workers.default_count for tenant in settings.tenants.values())
    metrics.crew_bounds(floors, settings.workers.max_count)
