"""Whether the store's clock was set forward, so that what it says of ages is too much."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from musterd.store.errors import StoreError
from musterd.store.health import Health

# Two good clocks come apart by less between two looks; a slow way of the answer counts too.
DRIFT_SECONDS = 5.0


@attrs.define
class ClockWatch:
    """Owned by a tenancy, asked by the duties that delete what is old. Compares the store's clock
    with one of this node that nobody sets, and that goes on in the machine's sleep. What was done
    to the store's clock before this node began, it does not know.
    """

    health: Health
    boottime: Callable[[], float]
    _ahead_seconds: float | None = attrs.field(default=None, init=False)  # the store's clock is
    _noticed_boottime: float | None = attrs.field(default=None, init=False)

    async def begin(self) -> None:
        """Looks at both clocks for the first time, if the store answers."""
        try:
            await self.too_old_seconds(0.0)
        except StoreError:
            return  # at the next look

    async def too_old_seconds(self, longest_seconds: float) -> float:
        """How much older things seem than they are; 0 = nobody has set the clock forward. Once the
        longest age has passed since then, whatever was there before is as old as it seems.
        """
        asked = self.boottime()
        epoch = await self.health.now()
        ahead = epoch - asked  # at most: so an answer that took long does not look like a jump back
        before = self._ahead_seconds
        if before is None or ahead <= before + DRIFT_SECONDS:
            self._ahead_seconds, self._noticed_boottime = ahead, None
            return 0.0
        if self._noticed_boottime is None:
            self._noticed_boottime = asked
        if asked - self._noticed_boottime > longest_seconds:
            self._ahead_seconds, self._noticed_boottime = ahead, None
            return 0.0
        return ahead - before
