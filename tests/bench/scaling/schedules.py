"""The least that a crew could have cost which knew all arrivals beforehand: what the policies,
which do not, are held against. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

import attrs

from tests.bench.scaling.figures import KEPT_SHARE, PROMISED_SECONDS, Ran

STEP_SECONDS = 10.0  # as long as a crew keeps its size after a burst (`stabilization_seconds`)

Sizes = tuple[int, ...]


@attrs.frozen
class Schedule:
    """A size for each step, and what it costs: workers stay until their job is done."""

    sizes: Sizes
    worker_seconds: float
    kept: float

    @property
    def keeps(self) -> bool:
        return self.kept >= KEPT_SHARE


@attrs.frozen
class Offline:
    """These jobs, in the order of their due times, and the time for which a crew has to be paid."""

    line: Sequence[Ran]
    window_seconds: float
    most: int  # workers

    @property
    def steps(self) -> int:
        return math.ceil(self.window_seconds / STEP_SECONDS)

    def constant(self) -> Schedule | None:
        """The smallest crew that keeps the promise without ever changing."""
        for size in range(1, self.most + 1):
            found = self.followed((size,) * self.steps)
            if found.keeps:
                return found
        return None

    def least(self) -> Schedule | None:
        """The cheapest of those that are found when steps are lowered one after another, in several
        orders. There may be cheaper ones.
        """
        begun = self.constant()
        if begun is None:
            return None
        forwards, backwards = range(self.steps), range(self.steps - 1, -1, -1)
        found = [self._lowered(begun, order) for order in (forwards, backwards)]
        found += [self._lowered_in_turns(begun, order) for order in (forwards, backwards)]
        return min(found, key=lambda one: one.worker_seconds)

    def _lowered(self, best: Schedule, order: Iterable[int]) -> Schedule:
        """Each step as far as it goes, then the next."""
        for step in order:
            while (lower := self._with_one_less(best, step)) is not None:
                best = lower
        return best

    def _lowered_in_turns(self, best: Schedule, order: Iterable[int]) -> Schedule:
        """One worker of each step, round after round."""
        left = list(order)
        while left:
            for step in tuple(left):
                lower = self._with_one_less(best, step)
                if lower is None:
                    left.remove(step)
                else:
                    best = lower
        return best

    def _with_one_less(self, best: Schedule, step: int) -> Schedule | None:
        if best.sizes[step] == 1:
            return None
        found = self.followed((*best.sizes[:step], best.sizes[step] - 1, *best.sizes[step + 1 :]))
        return found if found.keeps and found.worker_seconds < best.worker_seconds else None

    def followed(self, sizes: Sizes) -> Schedule:
        """What a crew of these sizes makes of the jobs."""
        crew = _Crew(sizes)
        kept, now = 0, -math.inf
        for job in self.line:
            now = crew.free_from(max(now, job.due_seconds))
            kept += now - job.due_seconds <= PROMISED_SECONDS
            heappush(crew.ends, now + job.run_seconds)
        crew.pass_to(math.inf)
        left_out = len(sizes) * STEP_SECONDS - self.window_seconds
        spent = sum(sizes) * STEP_SECONDS - left_out * sizes[-1] + crew.beyond_seconds
        return Schedule(sizes, spent, kept / len(self.line))


@attrs.define
class _Crew:
    """`ends`: when those who are busy will be free. `beyond_seconds`: what workers took who had to
    finish their jobs when the crew became smaller.
    """

    sizes: Sizes
    ends: list[float] = attrs.field(factory=list[float], init=False)
    beyond_seconds: float = attrs.field(default=0.0, init=False)
    _step: int = attrs.field(default=0, init=False)

    def free_from(self, now: float) -> float:
        """When somebody takes a job who is asked from then on."""
        while True:
            self.pass_to(now)
            while self.ends and self.ends[0] <= now:
                heappop(self.ends)
            if len(self.ends) < self.sizes[self._step]:
                return now
            now = min(self.ends[0], self._next_change)

    @property
    def _next_change(self) -> float:
        is_last = self._step + 1 == len(self.sizes)
        return math.inf if is_last else (self._step + 1) * STEP_SECONDS

    def pass_to(self, now: float) -> None:
        """Who is done first leaves."""
        while (at := self._next_change) <= now and at < math.inf:
            self._step += 1
            busy = sorted(end for end in self.ends if end > at)
            leaving = busy[: max(0, len(busy) - self.sizes[self._step])]
            self.beyond_seconds += sum(end - at for end in leaving)
