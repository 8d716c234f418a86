"""How long jobs of each kind take, and how often they become due: measured as they run, told to
other nodes with the heartbeat, and put together with what those tell.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from uuid import UUID

import attrs
import trio

from musterd.store.engine import Engine
from musterd.store.estimate import Service, together
from musterd.store.leases import Settlement, Successes
from musterd.store.lifecycle import AttemptOutcome
from musterd.store.nodes import KnownKind, NodeRecord

KINDS_SECONDS = 10.0  # a node tells of its kinds no more often than this
SMOOTHING_SECONDS = 30.0  # arrivals are averaged over about so long
WEIGHT = 0.05  # of the latest run, once there are many
CUT_SHORT = frozenset({AttemptOutcome.RELEASED, AttemptOutcome.PAUSED})
ARRIVING_MAX = 1000  # kinds whose arrivals are kept
RUNS_MAX = 1000  # as told to others: beyond it more runs say nothing new


@attrs.frozen
class _Spell:
    runs: int = 0
    mean: float = 0.0
    variance: float = 0.0


_NEVER_RUN = _Spell()


@attrs.define(eq=False)
class ServiceTimes:
    """Fed with every ended attempt. One that was given back or paused, or never began, says nothing
    about how long its kind takes.
    """

    _spells: dict[str, _Spell] = attrs.field(factory=dict[str, _Spell], init=False)

    def note(self, settlements: Iterable[Settlement]) -> None:
        for (kind, outcome), alike in groupby(settlements, key=attrgetter("kind", "outcome")):
            if outcome not in CUT_SHORT:
                began = [each.run_seconds for each in alike if each.started_epoch is not None]
                if began:
                    self.add(kind, began)

    def note_successes(self, successes: Successes) -> None:
        for kind, run_seconds in successes.run_seconds_by_kind().items():
            self.add(kind, run_seconds)

    @property
    def kinds(self) -> Collection[str]:
        """All that were measured."""
        return self._spells.keys()

    def known(
        self, kind: str, broken: str | None = None, max_running: int | None = None
    ) -> KnownKind:
        """The kind with its measurements."""
        spell = self._spells.get(kind)
        if spell is None:
            return KnownKind(broken, max_running)
        runs, deviation = min(spell.runs, RUNS_MAX), math.sqrt(spell.variance)
        return KnownKind(broken, max_running, runs, spell.mean, deviation)

    def add(self, kind: str, run_seconds: Iterable[float]) -> None:
        spell = self._spells.get(kind, _NEVER_RUN)
        runs, mean, variance = spell.runs, spell.mean, spell.variance
        for seconds in run_seconds:
            runs += 1
            weight = WEIGHT if runs * WEIGHT > 1 else 1 / runs
            away = seconds - mean
            mean += weight * away
            variance = (1 - weight) * (variance + weight * away * away)
        self._spells[kind] = _Spell(runs, mean, variance)


@attrs.define(eq=False)
class Measured:
    """How long jobs take: what this node has measured up to now, and what others last said."""

    engine: Engine
    own: ServiceTimes
    me: UUID
    _others: Sequence[NodeRecord] = attrs.field(default=(), init=False)
    _asked_local: float = attrs.field(default=float("-inf"), init=False)

    async def hear_others(self) -> None:
        """Asks the store as seldom as nodes tell it."""
        if trio.current_time() - self._asked_local >= KINDS_SECONDS:
            nodes = await self.engine.nodes.all()
            self._others = [node for node in nodes if node.is_live and node.id != self.me]
            self._asked_local = trio.current_time()

    def times(self) -> Mapping[str, Service]:
        """By kind."""
        kinds = {*self.own.kinds, *(kind for node in self._others for kind in node.named)}
        found = {kind: together([self.own.known(kind), *self._said_of(kind)]) for kind in kinds}
        return {kind: service for kind, service in found.items() if service is not None}

    def _said_of(self, kind: str) -> Iterable[KnownKind]:
        return (node.named[kind] for node in self._others if kind in node.named)


@attrs.define(eq=False)
class Arrivals:
    """How many jobs of each kind became due a second, by when those were due that were claimed."""

    _levels: dict[str, tuple[float, float]] = attrs.field(
        factory=dict[str, tuple[float, float]], init=False
    )  # jobs, each counting the less the longer ago it became due, and when that was worked out

    def note(self, kind: str, waited_seconds: Sequence[float], now: float) -> None:
        number = len(waited_seconds)
        waited = max(0.0, sum(waited_seconds) / number)
        if kind not in self._levels and len(self._levels) >= ARRIVING_MAX:
            self._forget_half(now)
        level, at = self._levels.get(kind, (0.0, now))
        self._levels[kind] = (level * _faded(now - at) + number * _faded(waited), now)

    def _forget_half(self, now: float) -> None:
        """The kinds that arrive least: anybody may enqueue jobs of names that nobody knows."""
        rates = self.a_second(now)
        for kind in sorted(rates, key=rates.__getitem__)[: ARRIVING_MAX // 2]:
            del self._levels[kind]

    def a_second(self, now: float) -> Mapping[str, float]:
        return {
            kind: level * _faded(now - at) / SMOOTHING_SECONDS
            for kind, (level, at) in self._levels.items()
        }


def _faded(seconds: float) -> float:
    return math.exp(-seconds / SMOOTHING_SECONDS)
