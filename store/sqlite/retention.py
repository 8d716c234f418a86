"""Retention in SQLite."""

from __future__ import annotations

from musterd.store.retention import Errand, Place, Strides
from musterd.store.sqlite import retaining
from musterd.store.sqlite.runner import Call


class SqliteRetention:
    """See `store.retention` for what each method promises."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def mark(self, errand: Errand, after: Place | None) -> Strides:
        return await self._call(retaining.mark, errand, after)

    async def delete(self, errand: Errand, after: Place | None) -> Strides:
        return await self._call(retaining.delete, errand, after)

    async def forget_leftovers(self, batch: int) -> int:
        return await self._call(retaining.forget_leftovers, batch)
