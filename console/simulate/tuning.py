"""Looking for the counts with which jobs wait no longer than they may, at the least cost. Pure.

The wait falls as the crew may grow, so few simulations find the place: each search halves what is
left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import attrs

from musterd.console.simulate.figures import Figures, figures_of, quantile
from musterd.console.simulate.model import Rules, simulate
from musterd.console.simulate.trace import Trace

SIMULATIONS_MAX = 40
COUNT_MAX = 10_000  # what the configuration allows
GAIN_SECONDS = 0.01  # less is no gain
GAIN_SHARE = 0.01

Mark = Literal["present", "recommended", "same floor", "no gain beyond"]


@attrs.frozen
class Aim:
    """So large a share of the attempts waits no longer than that."""

    share: float
    wait_seconds: float


@attrs.frozen(order=True)
class Counts:
    """`workers.default_count` and `workers.max_count`."""

    least: int
    most: int


@attrs.frozen
class Candidate:
    """`wait_seconds` is that of the aim's share. `marks` say what it is."""

    counts: Counts
    wait_seconds: float
    figures: Figures
    marks: tuple[Mark, ...]


@attrs.frozen
class Advice:
    """`useful_most`: a larger crew than that would not make them wait less; None = that was not
    found out within the bound on simulations.
    """

    aim: Aim
    reached: bool
    present: Candidate
    recommended: Candidate
    candidates: Sequence[Candidate]  # both among them, the smallest first
    useful_most: int | None
    simulations: int


def tune(
    trace: Trace, rules: Rules, aim: Aim, progress: Callable[[int], None] = lambda _: None
) -> Advice:
    """Searches; `progress` is told of each simulation."""
    search = _Search(trace, rules, aim, progress)
    present = Counts(rules.policy.default_count, rules.policy.max_count)
    most = min(COUNT_MAX, max(present.most, trace.most_wanted))
    search.wait(present)
    reached = search.reaches(Counts(most, most))  # everybody is there from the start
    if reached:
        kept = search.smallest_most(present.least, most)
        recommended = search.cheaper(search.cheapest(present.least, most), kept)
    else:
        kept = Counts(present.least, most)
        recommended = kept
    useful = search.useful_most(recommended.least, most)
    if not reached and useful is not None:
        recommended = kept = Counts(recommended.least, useful)
    beyond = None if useful is None else Counts(recommended.least, useful)
    found = search.candidates(_marked(present, recommended, kept, beyond))
    of = {one.counts: one for one in found}
    return Advice(aim, reached, of[present], of[recommended], found, useful, search.count)


def _marked(
    present: Counts, recommended: Counts, kept: Counts, beyond: Counts | None
) -> dict[Counts, tuple[Mark, ...]]:
    marks: dict[Counts, tuple[Mark, ...]] = {present: ("present",)}
    marks[recommended] = (*marks.get(recommended, ()), "recommended")
    marks.setdefault(kept, ("same floor",))
    if beyond is not None:
        marks.setdefault(beyond, ("no gain beyond",))
    return marks


class _Search:
    """Remembers what was simulated, and bounds how often that is done."""

    def __init__(
        self, trace: Trace, rules: Rules, aim: Aim, progress: Callable[[int], None]
    ) -> None:
        self._trace, self._rules, self._aim, self._progress = trace, rules, aim, progress
        self._figures: dict[Counts, Figures] = {}
        self._waits: dict[Counts, float] = {}

    @property
    def count(self) -> int:
        return len(self._waits)

    def wait(self, counts: Counts) -> float:
        if counts not in self._waits:
            rules = self._with(counts)
            run = simulate(self._trace, rules)
            self._waits[counts] = quantile(sorted(run.waits), self._aim.share)
            self._figures[counts] = figures_of(self._trace, rules, run)
            self._progress(self.count)
        return self._waits[counts]

    def reaches(self, counts: Counts) -> bool:
        return self.wait(counts) <= self._aim.wait_seconds

    def cheapest(self, present: int, most: int) -> Counts:
        """The smallest floor with which the aim can be reached at all, then the smallest crew. An
        empty crew at rest is nothing that anybody is talked into.
        """
        floor = min(1, present)
        least = self._first(floor, most, lambda one: self.reaches(Counts(one, most)))
        return self.smallest_most(least, most)

    def smallest_most(self, least: int, most: int) -> Counts:
        """The smallest crew that reaches the aim with this floor; the largest if none does."""
        lowest = max(1, least)
        return Counts(
            least, self._first(lowest, most, lambda one: self.reaches(Counts(least, one)))
        )

    def cheaper(self, one: Counts, other: Counts) -> Counts:
        """Who reaches the aim before who does not, then who costs less."""
        reaches = {each: self.reaches(each) for each in (one, other)}
        span = self._span()
        return min(reaches, key=lambda each: (not reaches[each], self._cost(each, span), each))

    def useful_most(self, least: int, most: int) -> int | None:
        """The smallest crew beyond which there is no gain; None = no simulations are left."""
        best = self.wait(Counts(least, most))
        enough = best + max(GAIN_SECONDS, best * GAIN_SHARE)
        found = self._first(
            max(1, least), most, lambda one: self.wait(Counts(least, one)) <= enough
        )
        return found if self._waits.get(Counts(least, found), enough + 1) <= enough else None

    def candidates(self, marks: Mapping[Counts, tuple[Mark, ...]]) -> list[Candidate]:
        """The smallest crew first, all over the same span."""
        for counts in marks:
            self.wait(counts)
        span = self._span()
        return [
            Candidate(counts, self.wait(counts), self._figures[counts].over(span), marks[counts])
            for counts in sorted(marks, key=lambda one: (one.most, one.least))
        ]

    def _first(self, low: int, high: int, fits: Callable[[int], bool]) -> int:
        """The smallest that fits, if none above it fails; `high` is taken to fit."""
        while low < high and self.count < SIMULATIONS_MAX - 3:  # the last few are for the table
            middle = (low + high) // 2
            if fits(middle):
                high = middle
            else:
                low = middle + 1
        return high

    def _with(self, counts: Counts) -> Rules:
        policy = attrs.evolve(self._rules.policy, default_count=counts.least, max_count=counts.most)
        return attrs.evolve(self._rules, policy=policy)

    def _span(self) -> float:
        return max(one.span_seconds for one in self._figures.values())

    def _cost(self, counts: Counts, span_seconds: float) -> float:
        return self._figures[counts].over(span_seconds).worker_seconds
