"""What befalls a request on its way: drawn for each from what goes on at that moment."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Literal

import attrs

from musterd.store.errors import OutcomeUnknown, StoreError, StoreUnavailable

What = Literal[
    "request_lost", "reply_lost", "late_apply", "slow_store", "slow_reply", "conflict",
    "lock_timeout", "interrupted", "too_many_connections",
]  # fmt: skip
# Those that befall whatever is asked while they last.
AWAY = {"store_away": "starting", "line_cut": "unreachable"}


@attrs.frozen
class Fate:
    """What becomes of one request. Times are seconds.

    `there` and `back` are how long it is under way. `refusal`: it is told so, and nothing was done.
    `gives_up`: after so long its sender is told that nobody knows, whatever becomes of it.
    `lost`: it is never carried out. `interrupted`: after so many steps of the database.
    """

    there: float = 0.0
    back: float = 0.0
    refusal: str | None = None
    gives_up: float | None = None
    lost: bool = False
    interrupted: int | None = None


@attrs.define(eq=False)
class Spell:
    """One sort of weather while it lasts: it befalls one in so many requests (`chance`) of one node
    (`node`; None = of everybody).
    """

    what: str
    until: float
    chance: float
    seconds: float
    node: str | None
    rng: random.Random

    def befalls(self, node: str | None) -> bool:
        if self.node is not None and self.node != node:
            return False
        return self.chance >= 1 or self.rng.random() < self.chance


@attrs.define(eq=False)
class Weather:
    """`lag_seconds`: how long a request is under way when all is well, at most. `counts`: how often
    each fault has truly befallen something.
    """

    now: Callable[[], float]
    rng: random.Random
    lag_seconds: float
    counts: Counter[str] = attrs.field(factory=Counter[str])
    spells: list[Spell] = attrs.field(factory=list[Spell])

    def begin(self, spell: Spell) -> None:
        self.spells.append(spell)

    def clear_up(self) -> None:
        self.spells.clear()

    def fate(self, node: str | None, *, changes: bool) -> Fate:
        """`changes`: whether the request would change anything."""
        if self.spells:
            befallen = self._befallen(node, changes)
            if befallen is not None:
                return befallen
        if not changes or not self.lag_seconds:
            return CALM
        lag = self.lag_seconds
        return Fate(lag * self.rng.random(), lag * self.rng.random())

    def _befallen(self, node: str | None, changes: bool) -> Fate | None:
        now = self.now()
        self.spells = [one for one in self.spells if one.until > now]
        for spell in self.spells:
            if spell.what not in _MAKERS or not spell.befalls(node):
                continue
            fate = _MAKERS[spell.what](spell)
            if changes or not fate.lost:
                self.counts[spell.what] += 1
                return fate
        return None

    def is_deaf(self, what: str, node: str | None) -> bool:
        """Whether this sort of weather befalls a wake-up now."""
        now = self.now()
        for spell in self.spells:
            if spell.what == what and spell.until > now and spell.befalls(node):
                self.counts[what] += 1
                return True
        return False


CALM = Fate()


def _lost(spell: Spell) -> Fate:
    return Fate(lost=True, gives_up=spell.seconds * spell.rng.random())


def _reply_lost(spell: Spell) -> Fate:
    there = 0.05 * spell.rng.random()
    return Fate(there, gives_up=there + spell.seconds * spell.rng.random())


def _late(spell: Spell) -> Fate:
    return Fate(spell.seconds * (1 + spell.rng.random()), gives_up=0.5 * spell.rng.random())


def _slow(spell: Spell) -> Fate:
    return Fate(there=spell.seconds * spell.rng.random(), back=0.01)


def _slow_reply(spell: Spell) -> Fate:
    return Fate(there=0.01, back=spell.seconds * spell.rng.random())


def _refused(trouble: str) -> Callable[[Spell], Fate]:
    return lambda spell: Fate(there=0.2 * spell.rng.random(), refusal=trouble)


def _interrupted(spell: Spell) -> Fate:
    return Fate(there=0.01, interrupted=spell.rng.randrange(1, 400))


_MAKERS: dict[str, Callable[[Spell], Fate]] = {
    "request_lost": _lost,
    "reply_lost": _reply_lost,
    "late_apply": _late,
    "slow_store": _slow,
    "slow_reply": _slow_reply,
    "interrupted": _interrupted,
    "conflict": _refused("conflict"),
    "lock_timeout": _refused("timeout"),
    "too_many_connections": _refused("too_many_connections"),
    **{what: _refused(trouble) for what, trouble in AWAY.items()},
}
SPELLS = frozenset(_MAKERS)


def refused(operation: str, trouble: str) -> StoreError:
    return StoreUnavailable(f"{operation}: as the simulation wants it: {trouble}", trouble)


def unknown(operation: str) -> StoreError:
    return OutcomeUnknown(f"{operation}: no reply came", "unreachable")
