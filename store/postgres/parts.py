"""What the parts of an engine (its events, phases, outbox) are given of it."""

from __future__ import annotations

from typing import Protocol

from musterd.store.postgres.rows import Params, Row


class Run(Protocol):
    async def __call__(self, name: str, params: Params) -> list[Row]:
        """One statement by name, as a transaction of its own; gives its rows."""
        ...


class Execute(Protocol):
    async def __call__(self, name: str, params: Params) -> int:
        """As `Run`, for a statement that returns no rows; gives how many it changed."""
        ...
