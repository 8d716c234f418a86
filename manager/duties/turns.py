"""When a node looks for duties that are free, and which of them it takes: pure.

Nodes share the duties out among themselves without a word: each first takes only its fair share,
and leaves the rest to the others for a moment. The more nodes there are, the more seldom each of
them looks, so that all together ask the store about as often as two would.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

import attrs

LOOKS_A_SECOND = 1.2  # of all nodes together
LOOK_SECONDS_MIN = 1.5
LOOK_SECONDS_MAX = 60.0
LOOK_SECONDS_ALL = 10.0  # of a node that has them all: whether others have come
RESTED = 10.0  # times as long where nothing happens
SPARE_SECONDS = 1.5  # for so long a free duty is left to nodes that have less
HESITATE_SECONDS = 0.3


def fair_share(duties: int, live_nodes: int) -> int:
    """How many duties a node has where they are spread evenly; a remainder is rounded up."""
    return math.ceil(duties / max(1, live_nodes))


@attrs.frozen
class Looking:
    """What a look has shown: how many nodes there are, whether any duty was left to others, and
    whether this node has all that it could have. `rests`: nothing happens in this store.
    """

    live_nodes: int
    left_free: bool
    has_all: bool
    rests: bool = False


def pause_seconds(looking: Looking, rng: random.Random) -> float:
    """How long until the next look. Where something was left free, soon again."""
    if looking.left_free:
        return SPARE_SECONDS * rng.uniform(0.4, 0.6)
    least = LOOK_SECONDS_ALL if looking.has_all else LOOK_SECONDS_MIN
    usual = max(least, looking.live_nodes / LOOKS_A_SECOND) * (RESTED if looking.rests else 1.0)
    return min(LOOK_SECONDS_MAX, usual) * rng.uniform(0.7, 1.3)


def to_take(
    free_since: Mapping[str, float], held: int, share: int, now: float, rng: random.Random
) -> list[str]:
    """Which free duties a node takes that has `held` already: as many as its share allows, and
    those that nobody has taken for a while.
    """
    overdue = [duty for duty, since in free_since.items() if now - since >= SPARE_SECONDS]
    fresh = [duty for duty in free_since if duty not in overdue]
    room = max(0, share - held - len(overdue))
    return sorted(overdue + rng.sample(fresh, min(room, len(fresh))))


def to_give_up(held: Sequence[str], share: int, rng: random.Random) -> list[str]:
    """What a node gives up that has more than its share."""
    return rng.sample(sorted(held), max(0, len(held) - share))
