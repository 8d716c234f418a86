"""The nodes of an engine on PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import attrs

from musterd.store.nodes import Beat, NodeRecord
from musterd.store.phases import KindRule, rules_text
from musterd.store.postgres import standing
from musterd.store.postgres.parts import Statements


@attrs.frozen
class PostgresNodes:
    """See `store.nodes.Nodes`."""

    statements: Statements

    async def beat(self, beat: Beat) -> None:
        await self.statements.execute("beat", standing.beat_params(beat))

    async def leave(self, node_id: UUID) -> None:
        await self.statements.execute("leave", {"id": node_id})

    async def all(self) -> list[NodeRecord]:
        found = await self.statements.run("nodes", standing.ALL_NODES)
        return [standing.node_record(row) for row in found]

    async def declare_kinds(self, rules: Mapping[str, KindRule]) -> None:
        if rules:
            await self.statements.execute("tell_kinds", {"rules": rules_text(rules)})
