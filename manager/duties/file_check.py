"""The duty of looking for damage in the file of an embedded store, rarely and beside the work."""

from __future__ import annotations

import logging
from collections.abc import Callable

import attrs

from musterd.config.settings import LiveSettings
from musterd.manager.log import Log, event
from musterd.store.errors import StoreMisconfigured
from musterd.store.health import Health

HOUR_SECONDS = 3_600.0
LOOK_SECONDS = 60.0  # between two looks at whether it is time
FIRST_SECONDS = HOUR_SECONDS  # after the start, which many daemons do not outlive by a day
RUN_SHARE = 0.5  # of the longest run of a duty


@attrs.define(eq=False)
class FileCheck:
    """Owned by its tenant. While damage is known each run fails, and nothing is read again."""

    health: Health
    settings: LiveSettings
    boottime: Callable[[], float]
    log: Log
    _due_boottime: float = attrs.field(init=False)
    _fault: str | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._due_boottime = self.boottime() + min(FIRST_SECONDS, self._interval_seconds)

    async def run(self) -> int:
        """Returns the number of checks. Raises `StoreMisconfigured` while the file is damaged."""
        done = 0
        if self._interval_seconds and self.boottime() >= self._due_boottime:
            await self._check()
            done = 1
        if self._fault is not None:
            raise StoreMisconfigured(self._fault)
        return done

    def look_seconds(self) -> float:
        return min(LOOK_SECONDS, self._interval_seconds or LOOK_SECONDS)

    @property
    def _interval_seconds(self) -> float:
        return self.settings.now.store.check_hours * HOUR_SECONDS

    async def _check(self) -> None:
        began = self.boottime()
        limit_seconds = self.settings.now.duties.run_limit_seconds * RUN_SHARE
        found = await self.health.file_beside(self.boottime, limit_seconds)
        self._due_boottime = self.boottime() + self._interval_seconds
        self._fault = None
        if found is None:
            return
        fields = {"path": found.path, "seconds": round(self.boottime() - began, 1)}
        if found.fault is not None:
            self._fault = (
                f"{found.path} is damaged: {found.fault.strip()}: restore it from a backup"
            )
            event(
                self.log, logging.ERROR, "the store's file is damaged", **fields, fault=found.fault
            )
        else:
            said = "the store's file is sound"
            if not found.checked_whole:
                said = "the store's file is sound as far as there was time to check"
            event(self.log, logging.INFO, said, **fields)
