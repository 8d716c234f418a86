"""One part of an engine (its events, phases, outbox) with every call put through something else: a
watch, or the faults of a test.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")
Through = Callable[[str, Callable[[], Awaitable[Any]]], Awaitable[Any]]


class Facet(Generic[T]):
    """Stands for `part`; calls of it are named `prefix_method`."""

    def __init__(self, part: T, prefix: str, through: Through) -> None:
        self._part, self._prefix, self._through = part, prefix, through

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._part, name)
        prefix, through = self._prefix, self._through

        async def call(*args: Any, **named: Any) -> Any:
            return await through(f"{prefix}_{name}", lambda: method(*args, **named))

        setattr(self, name, call)  # found at once the next time
        return call


def facet(part: T, prefix: str, through: Through) -> T:
    """Gives `part` with all of its calls going through `through`."""
    return cast(T, Facet(part, prefix, through))
