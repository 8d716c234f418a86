"""Jobs that schedules are about to make: their slots, as far as a decision looks ahead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import takewhile
from math import inf

import attrs

from musterd.config.schedules import Schedule
from musterd.store.queue import Waiting

SLOTS_MAX = 1_000  # of one schedule in one look
NO_JOB = 0  # the id of a job that is not made yet


@attrs.define(eq=False)
class SlotClock:
    """Works out a schedule's next slot once, and again when it has passed."""

    _slots: dict[str, tuple[Schedule, float, float]] = attrs.field(
        factory=dict[str, tuple[Schedule, float, float]], init=False
    )  # asked at, and the next slot; in seconds since the epoch

    def within(
        self, schedules: Mapping[str, Schedule], now: float, horizon_seconds: float
    ) -> Sequence[Waiting]:
        """The jobs of slots after now and up to the horizon, in the order of their slots."""
        self._slots = {name: one for name, one in self._slots.items() if name in schedules}
        found = [
            Waiting(schedule.kind, 1, NO_JOB, now - slot)
            for name, schedule in schedules.items()
            if schedule.enabled
            for slot in self._slots_of(name, schedule, now, now + horizon_seconds)
        ]
        return sorted(found, key=lambda one: -one.waited_seconds)

    def _slots_of(self, name: str, schedule: Schedule, now: float, until: float) -> Iterable[float]:
        known = self._slots.get(name)
        if known is None or known[0] is not schedule or not known[1] <= now < known[2]:
            known = self._slots[name] = schedule, now, _next_slot(schedule, now)
        return takewhile(lambda slot: slot <= until, _slots_from(schedule, known[2]))


def _slots_from(schedule: Schedule, slot: float) -> Iterator[float]:
    for _ in range(SLOTS_MAX):
        if slot == inf:
            return
        yield slot
        slot = _next_slot(schedule, slot)


def _next_slot(schedule: Schedule, after: float) -> float:
    """`inf` = there is none."""
    found = schedule.rhythm.next_after(datetime.fromtimestamp(after, UTC))
    return inf if found is None else found.timestamp()
