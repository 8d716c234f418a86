"""How long jobs take on this node, kind by kind: a mean and a deviation that follow the recent
runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from attrs import define, field

from musterd.store.job import AttemptOutcome
from musterd.store.nodes import KindStanding
from musterd.workers.listener import Report

WEIGHT = 0.05  # of the latest run, once there are many
RUNS_MAX = 1000  # as told to others: beyond it more runs say nothing new


@define
class _Spell:
    runs: int = 0
    mean: float = 0.0
    variance: float = 0.0


@define(eq=False)
class ServiceTimes:
    """Fed with every attempt that ended; attempts that were given back say nothing."""

    _spells: dict[str, _Spell] = field(factory=dict[str, _Spell], init=False)

    def note(self, reports: Iterable[Report]) -> None:
        for report in reports:
            if report.outcome is not AttemptOutcome.RELEASED:
                self._add(report.kind, report.run_seconds)

    def standing(self, kind: str, broken: str | None, max_running: int | None) -> KindStanding:
        """The kind, and what was measured of it."""
        spell = self._spells.get(kind)
        if spell is None:
            return KindStanding(broken, max_running)
        runs, deviation = min(spell.runs, RUNS_MAX), math.sqrt(spell.variance)
        return KindStanding(broken, max_running, runs, spell.mean, deviation)

    def _add(self, kind: str, seconds: float) -> None:
        spell = self._spells.get(kind)
        if spell is None:
            spell = self._spells[kind] = _Spell()
        spell.runs += 1
        weight = max(WEIGHT, 1 / spell.runs)
        away = seconds - spell.mean
        spell.mean += weight * away
        spell.variance = (1 - weight) * (spell.variance + weight * away * away)
