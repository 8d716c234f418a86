"""How long jobs take on this node, kind by kind: a mean and a deviation that follow the recent
runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter

from attrs import define, field, frozen

from musterd.store.leases import Settlement
from musterd.store.lifecycle import AttemptOutcome
from musterd.store.nodes import KindStanding

WEIGHT = 0.05  # of the latest run, once there are many
RUNS_MAX = 1000  # as told to others: beyond it more runs say nothing new


@frozen
class _Spell:
    runs: int = 0
    mean: float = 0.0
    variance: float = 0.0


_NEVER_RUN = _Spell()


@define(eq=False)
class ServiceTimes:
    """Fed with every attempt that ended; attempts that were given back say nothing."""

    _spells: dict[str, _Spell] = field(factory=dict[str, _Spell], init=False)

    def note(self, settlements: Iterable[Settlement]) -> None:
        for (kind, outcome), alike in groupby(settlements, key=attrgetter("kind", "outcome")):
            if outcome is not AttemptOutcome.RELEASED:
                self._add(kind, [settlement.run_seconds for settlement in alike])

    def standing(self, kind: str, broken: str | None, max_running: int | None) -> KindStanding:
        """The kind, and what was measured of it."""
        spell = self._spells.get(kind)
        if spell is None:
            return KindStanding(broken, max_running)
        runs, deviation = min(spell.runs, RUNS_MAX), math.sqrt(spell.variance)
        return KindStanding(broken, max_running, runs, spell.mean, deviation)

    def _add(self, kind: str, run_seconds: Iterable[float]) -> None:
        spell = self._spells.get(kind, _NEVER_RUN)
        runs, mean, variance = spell.runs, spell.mean, spell.variance
        for seconds in run_seconds:
            runs += 1
            weight = WEIGHT if runs * WEIGHT > 1 else 1 / runs
            away = seconds - mean
            mean += weight * away
            variance = (1 - weight) * (variance + weight * away * away)
        self._spells[kind] = _Spell(runs, mean, variance)
