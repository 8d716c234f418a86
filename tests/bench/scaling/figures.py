"""What a contestant did with a load. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import attrs

from musterd.manager.scaling.model.figures import quantile

PROMISED_SECONDS = 2.0
KEPT_SHARE = 0.999
WARM_UP = 4  # jobs of each kind that run before: they tell how long the kind takes


class Ran(NamedTuple):
    """A job: when it was due, counted from the begin; how long it waited and ran."""

    due_seconds: float
    waited_seconds: float
    run_seconds: float


class Crew(NamedTuple):
    """It has so many workers from then on."""

    at_seconds: float
    size: int


@attrs.frozen
class Found:
    """`ended_early`: workers that were dismissed, jobs that began again, and jobs that did not
    succeed; None = nobody counts them.
    """

    name: str
    jobs: Sequence[Ran]
    crews: Sequence[Crew]
    hired: int
    ended_early: tuple[int, ...] | None = None
    predicted_p95_seconds: float | None = None
    real_p95_seconds: float | None = None  # of the jobs that the prediction is about

    @property
    def waits(self) -> Sequence[float]:
        return sorted(one.waited_seconds for one in self.jobs)

    def wait(self, share: float) -> float:
        return quantile(self.waits, share)

    @property
    def kept(self) -> float:
        """The share of the starts that came as soon as promised."""
        return sum(one <= PROMISED_SECONDS for one in self.waits) / len(self.jobs)

    @property
    def turns(self) -> int:
        """How often a crew that had grown shrank, or the other way round."""
        changes = [after.size - before.size for before, after in pairwise(self.crews)]
        signs = [change > 0 for change in changes if change]
        return sum(before != after for before, after in pairwise(signs))

    def worker_seconds(self, window_seconds: float) -> float:
        """From the begin to the end of the window."""
        changes = [*self.crews, Crew(window_seconds, 0)]
        return sum(
            one.size * max(0.0, min(after.at_seconds, window_seconds) - max(0.0, one.at_seconds))
            for one, after in pairwise(changes)
        )

    @property
    def is_predicted(self) -> bool | None:
        """Within a tenth or 50 ms; None = nobody predicted it."""
        if self.predicted_p95_seconds is None or self.real_p95_seconds is None:
            return None
        away = abs(self.predicted_p95_seconds - self.real_p95_seconds)
        return away <= max(0.05, self.real_p95_seconds / 10)
