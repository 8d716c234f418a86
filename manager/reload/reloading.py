"""Takes a new configuration over while the node runs: whole, as far as it can, or not at all."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import attrs
import trio

from musterd.catalog.differences import kind_changes
from musterd.catalog.kinds import Catalog
from musterd.config.differences import Change
from musterd.config.faults import ConfigError
from musterd.config.live import LiveSettings
from musterd.config.reload import Changes, changes
from musterd.config.secrets import MASK
from musterd.config.settings import Settings
from musterd.config.tenants import settings_of
from musterd.manager.log import event, event_of_list
from musterd.manager.metrics.metrics import Metrics
from musterd.manager.node.fingerprint import fingerprint
from musterd.manager.node.status import Configured
from musterd.manager.reload.checks import check_takeover
from musterd.manager.reload.log import tell_taken
from musterd.manager.reload.outcome import NotNow, Outcome, Refused, Taken
from musterd.manager.tenancy.tenancy import Tenancy
from musterd.store.errors import StoreError

if TYPE_CHECKING:
    from musterd.manager.node.daemon import DaemonDeps

ASKED_MAX = 10  # reloads that somebody waits for
FAULTS_KEPT = 20


@attrs.define(eq=False)
class _Asked:
    """A reload that somebody waits for."""

    done: trio.Event = attrs.field(factory=trio.Event)
    outcome: Outcome = attrs.field(factory=lambda: NotNow("the node has ended meanwhile"))


@attrs.define(eq=False)
class Reloader:
    """Owned by the daemon, whose `tenancies` it adds to and takes from, and whose `settings` it
    replaces. `catalog` is that of the moment. `homes` is where tenancies live; None = this is no
    time to reload.
    """

    plan: DaemonDeps
    settings: LiveSettings
    tenancies: dict[str, Tenancy]
    make: Callable[[str, Settings], Tenancy]  # raises ConfigError or StoreError
    on_change: Callable[[], None] = lambda: None  # tenants have come or gone
    on_begin: Callable[[], None] = lambda: None  # a reload is under way
    on_end: Callable[[], None] = lambda: None  # it is over, whatever came of it
    homes: trio.Nursery | None = attrs.field(default=None, init=False)
    catalog: Catalog = attrs.field(init=False)
    generation: int = attrs.field(default=1, init=False)
    faults: tuple[str, ...] = attrs.field(default=(), init=False)  # of what was refused last
    configured: Configured = attrs.field(init=False)
    _taken_at: float = attrs.field(init=False)
    _turn: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    _asked: int = attrs.field(default=0, init=False)  # that wait or are under way
    _signalled: bool = attrs.field(default=False, init=False)  # one for a signal has not begun yet

    def __attrs_post_init__(self) -> None:
        self.catalog = self.plan.catalog
        self._note_configuration()
        self._taken_at = self.plan.wall_clock()

    def reload_soon(self) -> None:
        """As a signal asks for it. One that has not begun yet will read what stands there then: it
        does for all that come meanwhile.
        """
        if self.homes is None or self.plan.reread is None:
            event(self.plan.log, logging.WARNING, "not reloaded", message="the node does not run")
        elif not self._signalled:
            self._signalled = True
            self.homes.start_soon(self.reload, self.plan.reread)

    async def ask(self) -> Outcome:
        """Reloads, and gives what came of it. Who is cancelled here only does not hear of it."""
        if self.homes is None or self.plan.reread is None:
            return NotNow("the node does not run: it starts or drains")
        if self._asked >= ASKED_MAX:
            return NotNow(f"{self._asked} reloads are waiting for their turn")
        asked = _Asked()
        self._asked += 1
        self.homes.start_soon(self._reload_for, asked, self.plan.reread)
        await asked.done.wait()
        return asked.outcome

    async def _reload_for(
        self, asked: _Asked, reread: Callable[[], tuple[Settings, Catalog]]
    ) -> None:
        try:
            asked.outcome = await self.reload(reread)
        finally:
            self._asked -= 1
            asked.done.set()

    async def reload(self, reread: Callable[[], tuple[Settings, Catalog]]) -> Outcome:
        """One after the other. What is invalid is told, and changes nothing."""
        async with self._turn:
            self._signalled = False
            self.on_begin()
            try:
                return await self._reload(reread)
            finally:
                self.on_end()

    async def _reload(self, reread: Callable[[], tuple[Settings, Catalog]]) -> Outcome:
        fresh: dict[str, Tenancy] = {}
        try:
            settings, catalog = await trio.to_thread.run_sync(reread)
            found = changes(self.settings.now, settings)
            check_takeover(found, self.catalog, catalog)
            use_secrets = await trio.to_thread.run_sync(self.plan.read_secrets, found)
            self._make_all(found, fresh)
        except (ConfigError, StoreError) as error:
            await self._undo(fresh)
            return self._refuse(error)
        if self.homes is None:
            await self._undo(fresh)
            event(self.plan.log, logging.WARNING, "not reloaded", message="the node drains")
            return NotNow("the node drains")
        found = _with_secrets(found, use_secrets())
        taken = Taken(self.generation + 1, found, kind_changes(self.catalog, catalog))
        self._take_over(found, catalog, fresh)
        tell_taken(self.plan.log, taken, catalog)
        self._announce("applied", [*found.live, *found.restart])
        return taken

    def _make_all(self, found: Changes, fresh: dict[str, Tenancy]) -> None:
        for name in found.added:
            if name not in self.tenancies:  # else it comes back when it has left
                fresh[name] = self.make(name, found.settings)

    async def _undo(self, fresh: dict[str, Tenancy]) -> None:
        for name, tenancy in fresh.items():
            await tenancy.engine.close()
            self.plan.forget(name)

    def _refuse(self, error: ConfigError | StoreError) -> Refused:
        lines = tuple(str(error).splitlines())
        for line in lines:
            event_of_list(self.plan.log, logging.ERROR, "configuration fault", message=line)
        event(self.plan.log, logging.ERROR, "not reloaded", generation=self.generation)
        self.plan.metrics.config(self.generation, success=False, timestamp=self._taken_at)
        self._announce("refused", [])
        self.faults = lines[:FAULTS_KEPT]
        return Refused(self.generation, lines)

    def _take_over(self, found: Changes, catalog: Catalog, fresh: dict[str, Tenancy]) -> None:
        """Without a pause in between."""
        plan, before = self.plan, self.settings.now
        self.catalog = catalog
        self.settings.replace(found.settings)
        self.generation += 1
        self.faults = ()
        self._note_configuration()
        self._taken_at = plan.wall_clock()
        if before.log.level != found.settings.log.level:
            plan.log.setLevel(found.settings.log.level.upper())
        for name in (*found.removed, *found.moved):
            self._see_off(name)
        for name, tenancy in self.tenancies.items():
            if not tenancy.is_leaving and name in found.settings.tenants:
                tenancy.settings.replace(settings_of(found.settings, name))
        for name, tenancy in fresh.items():
            self._serve(name, tenancy)
        tell_bounds(plan.metrics, found.settings)
        plan.metrics.config(self.generation, success=True, timestamp=self._taken_at)

    def _note_configuration(self) -> None:
        """What is in effect: a change that needs a restart does not count."""
        digits = fingerprint(self.settings.now, self.catalog)
        self.configured = Configured(self.generation, digits)

    def _announce(self, result: str, changed: list[str]) -> None:
        """In the log of events of each tenant that is served."""
        for tenancy in self.tenancies.values():
            announce = tenancy.node_events.event_writer.announce
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
        if name in self.settings.now.tenants:  # it has moved, or was added again meanwhile
            self._serve_again(name)

    def _serve_again(self, name: str) -> None:
        try:
            self._serve(name, self.make(name, self.settings.now))
        except (ConfigError, StoreError) as error:
            self._refuse(error)


def tell_bounds(metrics: Metrics, settings: Settings) -> None:
    """Tells the least and the largest number of workers of a node."""
    floors = sum(tenant.workers.default_count for tenant in settings.tenants.values())
    metrics.crew_bounds(floors, settings.workers.max_count)


def _with_secrets(found: Changes, keys: Collection[str]) -> Changes:
    """Secrets that are others by now, though the settings name the same files."""
    secrets = (Change(key, MASK, MASK, "at once") for key in keys)
    return attrs.evolve(found, keys=(*found.keys, *secrets))
