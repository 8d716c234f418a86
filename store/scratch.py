"""A store for the occasion: made in the place of the configured one, used by one program, and taken
away by it. What a program that was killed has left behind, the next one takes away.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

import attrs

PREFIX = "musterd_bench_"
_NAME = re.compile(PREFIX + "[0-9a-f]{8}")


@attrs.frozen
class Scratch:
    """Where it is. `schema` is of PostgreSQL; `pooled`: something stands between us and the server.

    `removed`: what others left behind and is gone now. `left`: what is still there, and what to do.
    """

    url: str
    schema: str
    where: str  # for people, without secrets
    product: str  # the database and its version
    pooled: bool
    removed: Sequence[str]
    left: Sequence[str]


class ScratchStore(Protocol):
    """One such store, not yet made."""

    async def make(self) -> Scratch:
        """Makes it, still empty, and sees to what was left behind. Raises the store's errors."""
        ...

    async def remove(self) -> None:
        """Takes it away, if it was made, whatever became of `make`. Raises the store's errors."""
        ...


def scratch_name(digits: str) -> str:
    """The name of a scratch store, out of eight hexadecimal digits that nobody else has."""
    name = PREFIX + digits
    check_name(name)
    return name


def is_scratch_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def check_name(name: str) -> None:
    """Raises ValueError unless this is the name of a scratch store: nothing else is ever taken
    away.
    """
    if not is_scratch_name(name):
        raise ValueError(f"found {name!r}, wanted {PREFIX} and eight hexadecimal digits")
