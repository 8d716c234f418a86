"""Inputs that were whole once: bytes turned, cut out, doubled and put in."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

LENGTHS = (0, 1, 1, 2, 5, 40)


def changed(rng: Random, whole: bytes, pieces: Sequence[bytes], changes_max: int) -> bytes:
    """At least one change, and at most so many."""
    for _ in range(rng.randint(1, changes_max)):
        start = rng.randrange(len(whole) + 1)
        end = min(len(whole), start + rng.choice(LENGTHS))
        piece = rng.choice((b"", rng.randbytes(1), rng.choice(pieces), whole[start:end] * 2))
        whole = whole[:start] + piece + whole[end:]
    return whole


def crossed(rng: Random, one: bytes, other: bytes) -> bytes:
    """The beginning of one and the end of the other."""
    return one[: rng.randrange(len(one) + 1)] + other[rng.randrange(len(other) + 1) :]
