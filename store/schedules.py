"""What a store remembers of schedules: the slot that was last seen to, and the job it made."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, Protocol

import attrs


@attrs.frozen
class Firing:
    """A slot whose time has come. `skip_if_busy`: no job while that of the last slot, or the one
    that was made last by hand, has not ended. `slot` None = now, since somebody wants it: it is no
    slot, and moves none.
    """

    schedule: str
    slot: datetime | None
    kind: str
    payload: str
    priority: int
    target: str | None
    skip_if_busy: bool = False


class Fired(NamedTuple):
    """What became of a firing. `taken` False = that slot, or a later one, had been seen to, or the
    schedule is paused.
    """

    taken: bool
    job_id: int | None  # None = none was made: not taken, or the job of an earlier slot was busy


@attrs.frozen
class ScheduleRecord:
    """Where a schedule stands. Slots up to `last_slot` have been seen to, one way or another."""

    name: str
    last_slot: datetime
    last_fired_at: datetime | None
    last_job_id: int | None
    last_job_state: str | None  # None = no job yet, or it has been deleted
    fired: int
    skipped: int  # slots without a job, since that of an earlier one had not ended
    missed: int  # slots that nobody was there for, and that were let go
    paused_at: datetime | None
    now: datetime  # on the store's clock


Wish = Literal["pause", "resume"]


class Schedules(Protocol):
    """The schedules of one store. Errors as for `Engine`."""

    async def know(self, names: Sequence[str]) -> list[ScheduleRecord]:
        """Where these schedules stand, in their order. One that is new begins now: its slots of
        the past are nobody's.
        """
        ...

    async def fire(self, firing: Firing) -> Fired:
        """Sees to a slot, once: in one transaction that makes its job and remembers it."""
        ...

    async def let_go(self, name: str, up_to: datetime, count: int) -> bool:
        """Sees to slots by leaving them out. False = these, or later ones, had been seen to."""
        ...

    async def rewind(self, name: str, ahead: timedelta) -> bool:
        """Lets a schedule begin anew, now, whose last slot is further ahead of the clock than that:
        the clock was wrong when it was seen to. False = it is not.
        """
        ...

    async def steer(self, wish: Wish, name: str) -> bool:
        """False = it was so already, or there is no such schedule. Slots that come while it is
        paused are nobody's.
        """
        ...
