"""The nodes of an engine on PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import attrs

from musterd.store.nodes import (
    FORGET_SECONDS,
    Beat,
    NodeRecord,
    read_kinds,
)
from musterd.store.phases import KindRule, rules_text
from musterd.store.postgres.statements import Row, Statements

NODES_MAX = 1000
ALL_NODES = {"young_seconds": None, "bound": NODES_MAX}


@attrs.frozen
class PostgresNodes:
    """See `store.nodes.Nodes`."""

    statements: Statements

    async def beat(self, beat: Beat) -> None:
        await self.statements.execute("beat", beat_params(beat))

    async def leave(self, node_id: UUID) -> None:
        await self.statements.execute("leave", {"id": node_id})

    async def all(self) -> list[NodeRecord]:
        found = await self.statements.run("nodes", ALL_NODES)
        return [node_record(row) for row in found]

    async def declare_kinds(self, rules: Mapping[str, KindRule], tenant: str | None = None) -> None:
        if rules:
            await self.statements.execute("declare_kinds", {"rules": rules_text(rules)})
        if tenant is not None:
            await self.statements.execute("declare_tenant", {"tenant": tenant})


def beat_params(beat: Beat) -> dict[str, Any]:
    return {**attrs.asdict(beat), "forget_seconds": FORGET_SECONDS}


def node_record(row: Row) -> NodeRecord:
    *fields, kinds, silent_seconds, pause_seconds, generation, config_hash, load, wish = row
    fields += [read_kinds(kinds), max(0.0, silent_seconds), pause_seconds]
    fields += [generation, config_hash, load, wish]
    return NodeRecord(*fields)
