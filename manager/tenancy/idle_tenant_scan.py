"""Looks after the idle tenants of a node: one question a store for all of them, and only who has
something to do is woken.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping

import attrs
import trio

from musterd.config.settings import LiveSettings
from musterd.manager.tenancy.tenancy import Tenancy
from musterd.store.errors import StoreError, StoreUnavailable
from musterd.store.idle_tenant_scan import EVERYTHING, TenantScan
from musterd.store.waiting import Bell


@attrs.define(eq=False)
class IdleTenantScan:
    """Owned by the daemon. A tenant alone on its node, or one that no scan knows, looks after
    itself. The others are looked at once a poll interval.
    """

    tenancies: Mapping[str, Tenancy]
    scans: Callable[[], Collection[TenantScan]]
    settings: LiveSettings  # of the node
    rng: random.Random
    _changed: Bell = attrs.field(factory=Bell, init=False)
    _scanned: dict[str, Tenancy] = attrs.field(factory=dict[str, Tenancy], init=False)
    _under_way: set[int] = attrs.field(factory=set[int], init=False)

    async def run(self) -> None:
        async with trio.open_nursery() as looks:
            while True:
                if len(self.tenancies) == 1 and not self._scanned:
                    await self._changed.wait()
                self._changed.clear()
                self._look_everywhere(looks)
                poll_seconds = self.settings.now.workers.poll_interval_ms / 1000
                await trio.sleep(poll_seconds * self.rng.uniform(0.9, 1.1))

    def _look_everywhere(self, looks: trio.Nursery) -> None:
        for gone in self._scanned.keys() - self.tenancies.keys():
            del self._scanned[gone]
        for scan in self.scans():
            # One that does not answer holds up nobody else.
            if id(scan) not in self._under_way:
                self._under_way.add(id(scan))
                looks.start_soon(self._look, scan)

    def tenants_changed(self) -> None:
        self._changed.ring()

    async def _look(self, scan: TenantScan) -> None:
        try:
            await self._see(scan, self._of(scan))
        finally:
            self._under_way.discard(id(scan))

    def _of(self, scan: TenantScan) -> list[str]:
        """Those of its tenants that can be looked at, and from now on are."""
        known = [name for name in scan.tenants if name in self.tenancies]
        running = [name for name in known if self.tenancies[name].phase == "running"]
        scanned = running if len(self.tenancies) > 1 else []
        for name in known:
            self._note(name, self.tenancies[name], is_scanned=name in scanned)
        return scanned

    def _note(self, name: str, tenancy: Tenancy, *, is_scanned: bool) -> None:
        was_scanned = self._scanned.get(name) is tenancy  # else an earlier one of this name was
        if is_scanned == was_scanned:
            return
        if is_scanned:
            self._scanned[name] = tenancy
            tenancy.begin_scan()
        else:
            del self._scanned[name]
            tenancy.end_scan()

    async def _see(self, scan: TenantScan, names: list[str]) -> None:
        if not names:
            return
        try:
            found = await scan.look(names)
        except StoreUnavailable:
            return  # whoever has something to do will notice, and tell
        except StoreError:
            # One of them spoils it for all: each looks for itself, and tells what is wrong.
            found = dict.fromkeys(names, EVERYTHING)
        for name, activity in found.items():
            if name in self.tenancies:
                self.tenancies[name].note_activity(activity)
