"""How long workers are without a job while one is due: from the end of one until they have the
next. It is part of what a job costs, and of how long those behind it wait.
"""

from __future__ import annotations

import attrs

WEIGHT = 0.02  # of one job


@attrs.define(eq=False)
class Handover:
    """A mean over the last jobs. One that lay ready followed at once."""

    _mean_seconds: float = 0.0
    _jobs: int = 0  # up to as many as count
    _at_once: int = 0  # since the last that did not

    def at_once(self, jobs: int) -> None:
        self._at_once += jobs

    def note(self, due_local: float, free_local: float, now_local: float) -> None:
        """`free_local`: when the worker was done with the job before. No look has come back short
        since: if one has, the job stood aside, and its worker had nothing to do.
        """
        if due_local > free_local:
            return
        mean_seconds = self.seconds
        self._jobs = min(self._jobs + self._at_once + 1, round(1 / WEIGHT))
        self._at_once = 0
        self._mean_seconds = mean_seconds + (now_local - free_local - mean_seconds) / self._jobs

    @property
    def seconds(self) -> float:
        known = min(self._jobs + self._at_once, round(1 / WEIGHT))
        return self._mean_seconds * (1 - 1 / known) ** self._at_once if known else 0.0
