"""How soon an idle worker has a job, and a busy one the next, as a log tells. Pure."""

from __future__ import annotations

from array import array
from statistics import fmean, median

import attrs

PICK_UPS_MAX = 10  # who leaves a due job waiting for as many times longer has another reason
KEPT = 100_000  # the first ones


@attrs.define
class TimesBetween:
    """Fed with each attempt whose worker has had another before."""

    _pick_ups: array[float] = attrs.field(factory=lambda: array("d"), init=False)
    _handovers: array[float] = attrs.field(factory=lambda: array("d"), init=False)

    def note(self, due: float, free_since: float, started: float) -> None:
        """`free_since`: when the worker was done with what it had before."""
        found, since = self._handovers, free_since
        if due > free_since:
            found, since = self._pick_ups, due
        if len(found) < KEPT:
            found.append(started - since)

    @property
    def pick_up_seconds(self) -> float:
        """From when a job is due until an idle worker has it: half of them take no longer."""
        return median(self._pick_ups) if self._pick_ups else 0.0

    @property
    def handover_seconds(self) -> float:
        """From the end of a job until its worker has the next, which is due by then: the mean,
        because one comes after the other. Jobs may be due and not be for anybody yet: they are
        parked, or the queue is paused. Both times are that of an exchange with the store.
        """
        most = PICK_UPS_MAX * self.pick_up_seconds
        found = [one for one in self._handovers if one <= most]
        return fmean(found) if found else 0.0
