"""The nodes of an engine on SQLite."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from musterd.store.nodes import Beat, NodeRecord
from musterd.store.phases import KindRule
from musterd.store.sqlite import standing, writing
from musterd.store.sqlite.runner import Call


class SqliteNodes:
    """See `store.nodes.Nodes`."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def beat(self, beat: Beat) -> None:
        await self._call(standing.beat, beat)

    async def leave(self, node_id: UUID) -> None:
        await self._call(standing.leave, node_id)

    async def all(self) -> list[NodeRecord]:
        return await self._call(standing.nodes)

    async def declare_kinds(self, rules: Mapping[str, KindRule]) -> None:
        await self._call(writing.tell_kinds, rules)
