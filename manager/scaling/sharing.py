"""How the tenants of a node share its workers: pure.

A tenant's floor is its own, wished for or not. What the node may have beyond the floors goes where
it is wished for, the smallest crews first, so that no tenant could get more without another that
has less getting less still. Nobody gets more than it wishes, or than its own maximum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

TURN_SECONDS = 10.0  # how long a worker that not all can have stays where it is


@attrs.frozen
class Ask:
    """One tenant. `size` is its crew without those that are leaving, which are `leaving`."""

    floor: int
    most: int
    wish: int
    size: int
    leaving: int = 0

    @property
    def goal(self) -> int:
        return max(self.floor, min(self.wish, self.most))


def entitled(asks: Mapping[str, Ask], overall: int, turn: Sequence[str]) -> dict[str, int]:
    """How large each crew should be. `turn`: who comes first where workers are left over that are
    fewer than those who could use one. The floors must fit; together it is never above `overall`.
    """
    level = _level(asks, overall)
    found = {name: _at_level(ask, level) for name, ask in asks.items()}
    left = overall - sum(found.values())
    for name in turn:
        if left > 0 and name in asks and found[name] == level < asks[name].goal:
            found[name] += 1
            left -= 1
    return found


def allowances(asks: Mapping[str, Ask], overall: int, turn: Sequence[str]) -> dict[str, int]:
    """How large each crew may be: what it is entitled to, and idle workers beyond that as long as
    nobody else is entitled to them.
    """
    found = entitled(asks, overall, turn)
    spare = overall - sum(found.values())
    for name, ask in asks.items():
        kept = max(0, min(ask.size - found[name], spare))
        found[name] += kept
        spare -= kept
    return found


def ceiling(name: str, asks: Mapping[str, Ask], allowed: int, overall: int) -> int:
    """How far this crew may grow right now: workers of others that are still there, if only to end
    their jobs, count until they have left.
    """
    own = asks[name]
    room = overall - sum(ask.size + ask.leaving for ask in asks.values())
    return min(allowed, own.size + own.leaving + max(0, room))


@attrs.frozen
class Turns:
    """Whose turn it is, remembered from one look to the next."""

    order: tuple[str, ...] = ()
    since: float = 0.0


def next_turns(turns: Turns, names: Sequence[str], now: float) -> Turns:
    """The first one goes to the end every `TURN_SECONDS`; who is new comes last."""
    order = tuple(name for name in turns.order if name in names)
    order += tuple(name for name in names if name not in order)
    if now - turns.since >= TURN_SECONDS:
        return Turns((*order[1:], *order[:1]), now)
    return Turns(order, turns.since)


def _level(asks: Mapping[str, Ask], overall: int) -> int:
    """The highest level to which all can be raised together."""
    low, high = 0, max((ask.goal for ask in asks.values()), default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(_at_level(ask, middle) for ask in asks.values()) <= overall:
            low = middle
        else:
            high = middle - 1
    return low


def _at_level(ask: Ask, level: int) -> int:
    return max(ask.floor, min(level, ask.goal))
