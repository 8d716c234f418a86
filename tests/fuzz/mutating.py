"""Inputs that were whole once: bytes turned, cut out, doubled and put in."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

LENGTHS = (0, 1, 1, 2, 5, 40)


def changed(dice: Random, whole: bytes, pieces: Sequence[bytes], changes_max: int) -> bytes:
    """At least one change, and at most so many."""
    for _ in range(dice.randint(1, changes_max)):
        start = dice.randrange(len(whole) + 1)
        end = min(len(whole), start + dice.choice(LENGTHS))
        piece = dice.choice((b"", dice.randbytes(1), dice.choice(pieces), whole[start:end] * 2))
        whole = whole[:start] + piece + whole[end:]
    return whole


def crossed(dice: Random, one: bytes, other: bytes) -> bytes:
    """The beginning of one and the end of the other."""
    return one[: dice.randrange(len(one) + 1)] + other[dice.randrange(len(other) + 1) :]
