"""Applies a new configuration while the node runs: all of it that needs no restart, or nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Protocol

import attrs
import trio

from musterd.catalog.differences import check_takeover, fingerprint, kind_changes
from musterd.catalog.kinds import Catalog
from musterd.config.changes import Change, Changes, changes
from musterd.config.faults import ConfigError
from musterd.config.secrets import MASK
from musterd.config.settings import LiveSettings, Settings
from musterd.config.tenants import settings_of
from musterd.manager.log import event, event_of_list
from musterd.manager.metrics.metrics import Metrics
from musterd.manager.node.status import Configured
from musterd.manager.reload.outcome import (
    ReloadOutcome,
    ReloadRefused,
    ReloadTaken,
    ReloadUnavailable,
    log_taken,
)
from musterd.manager.tenancy.deps import DaemonDeps
from musterd.manager.tenancy.tenancy import Tenancy
from musterd.store.errors import StoreError
from musterd.store.threads import in_thread

REQUESTS_MAX = 10  # reloads whose callers wait
FAULTS_KEPT = 20


class ReloadObserver(Protocol):
    def reload_begins(self) -> None: ...

    def reload_ends(self, *, refused: bool) -> None: ...


@attrs.define(eq=False)
class _ReloadRequest:
    """A reload whose caller waits for the outcome."""

    done: trio.Event = attrs.field(factory=trio.Event)
    outcome: ReloadOutcome = attrs.field(
        factory=lambda: ReloadUnavailable("the node has ended meanwhile")
    )


@attrs.define(eq=False)
class Reloader:
    """Owned by the daemon. Adds and removes `tenancies` and replaces `settings`; `catalog` is the
    current one. Reloads only between `begin` and `end`. `make` raises ConfigError or StoreError.
    """

    plan: DaemonDeps
    settings: LiveSettings
    tenancies: dict[str, Tenancy]
    make: Callable[[str, Settings], Tenancy]
    observer: ReloadObserver
    on_tenants_changed: Callable[[], None]
    catalog: Catalog = attrs.field(init=False)
    generation: int = attrs.field(default=1, init=False)
    faults: tuple[str, ...] = attrs.field(default=(), init=False)  # of the last one, if refused
    configured: Configured = attrs.field(init=False)
    _homes: trio.Nursery | None = attrs.field(default=None, init=False)  # where tenancies live
    _taken_at: float = attrs.field(init=False)
    _turn: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    _requested: int = attrs.field(default=0, init=False)  # waiting or under way
    _signalled: bool = attrs.field(default=False, init=False)  # one for a signal has yet to begin

    def __attrs_post_init__(self) -> None:
        self.catalog = self.plan.catalog
        self._note_configuration()
        self._taken_at = self.plan.wall_clock()

    def begin(self, homes: trio.Nursery) -> None:
        """New tenancies live in `homes`."""
        self._homes = homes

    def end(self) -> None:
        """A reload under way changes nothing from now on."""
        self._homes = None

    def reload_soon(self) -> None:
        """For a signal. A reload that has not begun yet serves all signals that come before."""
        if self._homes is None or self.plan.reread is None:
            event(self.plan.log, logging.WARNING, "not reloaded", message="the node does not run")
        elif not self._signalled:
            self._signalled = True
            self._homes.start_soon(self.reload, self.plan.reread)

    async def ask(self) -> ReloadOutcome:
        """Reloads and returns the outcome. The reload continues if the caller is cancelled."""
        if self._homes is None or self.plan.reread is None:
            return ReloadUnavailable("the node does not run: it starts or drains")
        if self._requested >= REQUESTS_MAX:
            return ReloadUnavailable(f"{self._requested} reloads are waiting for their turn")
        request = _ReloadRequest()
        self._requested += 1
        self._homes.start_soon(self._reload_for, request, self.plan.reread)
        await request.done.wait()
        return request.outcome

    async def _reload_for(
        self, request: _ReloadRequest, reread: Callable[[], tuple[Settings, Catalog]]
    ) -> None:
        try:
            request.outcome = await self.reload(reread)
        finally:
            self._requested -= 1
            request.done.set()

    async def reload(self, reread: Callable[[], tuple[Settings, Catalog]]) -> ReloadOutcome:
        """One at a time. An invalid configuration is logged and changes nothing."""
        async with self._turn:
            self._signalled, before = False, self.generation
            self.observer.reload_begins()
            try:
                return await self._reload(reread)
            finally:
                self.observer.reload_ends(refused=self.generation == before)

    async def _reload(self, reread: Callable[[], tuple[Settings, Catalog]]) -> ReloadOutcome:
        fresh: dict[str, Tenancy] = {}
        try:
            settings, catalog = await in_thread(reread)
            found = changes(self.settings.now, settings)
            check_takeover(found, self.catalog, catalog)
            use_secrets = await in_thread(partial(self.plan.read_secrets, found))
            for name in found.added:
                if name not in self.tenancies:  # otherwise it returns once it has left
                    fresh[name] = self.make(name, found.settings)
        except (ConfigError, StoreError) as error:
            await self._undo(fresh)
            return self._refuse(error)
        if self._homes is None:
            await self._undo(fresh)
            event(self.plan.log, logging.WARNING, "not reloaded", message="the node drains")
            return ReloadUnavailable("the node drains")
        # Secrets that have changed although the settings name the same files.
        secrets = (Change(key, MASK, MASK, "at once") for key in use_secrets())
        found = attrs.evolve(found, keys=(*found.keys, *secrets))
        taken = ReloadTaken(self.generation + 1, found, kind_changes(self.catalog, catalog))
        self._take_over(found, catalog, fresh)
        log_taken(self.plan.log, taken, catalog)
        self._announce("applied", [*found.live, *found.restart])
        return taken

    async def _undo(self, fresh: dict[str, Tenancy]) -> None:
        for name, tenancy in fresh.items():
            await tenancy.engine.close()
            self.plan.forget(name)

    def _refuse(self, error: ConfigError | StoreError) -> ReloadRefused:
        lines = tuple(str(error).splitlines())
        for line in lines:
            event_of_list(self.plan.log, logging.ERROR, "configuration fault", message=line)
        event(self.plan.log, logging.ERROR, "not reloaded", generation=self.generation)
        self.plan.metrics.config(self.generation, success=False, timestamp=self._taken_at)
        self._announce("refused", [])
        self.faults = lines[:FAULTS_KEPT]
        return ReloadRefused(self.generation, lines)

    def _take_over(self, found: Changes, catalog: Catalog, fresh: dict[str, Tenancy]) -> None:
        """Without a checkpoint, so that nobody sees half of it."""
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
        publish_bounds(plan.metrics, found.settings)
        plan.metrics.config(self.generation, success=True, timestamp=self._taken_at)

    def _note_configuration(self) -> None:
        """Of what is in effect: changes that wait for a restart do not count."""
        digits = fingerprint(self.settings.now, self.catalog)
        self.configured = Configured(self.generation, digits)

    def _announce(self, result: str, changed: list[str]) -> None:
        """In the event log of every tenant."""
        for tenancy in self.tenancies.values():
            tenancy.node_events.reloaded(result, self.generation, changed)

    def _serve(self, name: str, tenancy: Tenancy) -> None:
        if self._homes is not None:
            self.tenancies[name] = tenancy
            self._homes.start_soon(tenancy.run)
            self.on_tenants_changed()

    def _see_off(self, name: str) -> None:
        """It claims no more jobs, and leaves when its running ones have ended."""
        tenancy = self.tenancies[name]
        busy = tenancy.status().busy
        event(self.plan.log, logging.INFO, "tenant leaving", tenant=name, busy=busy)
        tenancy.drain()
        if self._homes is not None:
            self._homes.start_soon(self._forget, name, tenancy)

    async def _forget(self, name: str, tenancy: Tenancy) -> None:
        await tenancy.ended.wait()
        if self.tenancies.get(name) is not tenancy:
            return  # it was removed more than once
        del self.tenancies[name]
        self.plan.metrics.forget(name)
        self.plan.forget(name)
        self.on_tenants_changed()
        event(self.plan.log, logging.INFO, "tenant left", tenant=name)
        if name in self.settings.now.tenants:  # it has moved, or was added again meanwhile
            self._serve_again(name)

    def _serve_again(self, name: str) -> None:
        try:
            self._serve(name, self.make(name, self.settings.now))
        except (ConfigError, StoreError) as error:
            self._refuse(error)


def publish_bounds(metrics: Metrics, settings: Settings) -> None:
    floors = sum(tenant.workers.default_count for tenant in settings.tenants.values())
    metrics.crew_bounds(floors, settings.workers.max_count)
