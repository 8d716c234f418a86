"""The nodes of an engine on SQLite."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import attrs

from musterd.store.nodes import FORGET_SECONDS, Beat, NodeRecord, read_kinds
from musterd.store.phases import KindRule
from musterd.store.sqlite import rows
from musterd.store.sqlite.database import Database, Part, called

NODES_MAX = 1000


def note_beat(database: Database, beat: Beat) -> None:
    with database.writing("giving a sign of life") as now:
        database.execute("forget_nodes", {"before": now - rows.microseconds(FORGET_SECONDS)})
        params = {**attrs.asdict(beat), "id": beat.id.bytes, "now": now}
        params["started_at"] = now - rows.microseconds(beat.up_seconds)
        database.execute("beat", params)


def leave(database: Database, node_id: UUID) -> None:
    with database.writing("leaving"):
        database.execute("leave", {"id": node_id.bytes})


def forget_all(database: Database) -> None:
    """For a daemon that starts alone on its file: every node on the list is dead."""
    with database.writing("forgetting nodes"):
        database.execute("forget_nodes", {"before": rows.FOREVER})
        database.execute("free_duties")


def nodes(database: Database) -> list[NodeRecord]:
    with database.reading("listing nodes") as now:
        return read_nodes(database, now, None, NODES_MAX)


def read_nodes(
    database: Database, now: int, young_seconds: float | None, bound: int
) -> list[NodeRecord]:
    young = None if young_seconds is None else rows.microseconds(young_seconds)
    found = database.rows("nodes", {"now": now, "young": young, "bound": bound})
    return [_node(row) for row in found]


def _node(row: rows.Row) -> NodeRecord:
    node_id, name, version, started_at, heartbeat_at, *rest = row
    *counts, kinds, silent, pause_seconds, generation, config_hash, load, wish = rest
    times = rows.moment_at(started_at), rows.moment_at(heartbeat_at)
    known = read_kinds(kinds), max(0, silent) / rows.SECOND, pause_seconds
    fields: list[Any] = [UUID(bytes=node_id), name, version, *times, *counts, *known]
    fields += [generation, config_hash, load, wish]
    return NodeRecord(*fields)


def declare_kinds(
    database: Database, rules: Mapping[str, KindRule], tenant: str | None = None
) -> None:
    with database.writing("declaring kinds"):
        for kind, rule in rules.items():
            if rule == KindRule():
                database.execute("forget_kind", {"kind": kind})
            else:
                said = {**attrs.asdict(rule), "kind": kind, "phases": json.dumps(rule.phases)}
                database.execute("declare_kinds", said)
        if tenant is not None:
            database.execute("declare_tenant", {"tenant": tenant})


class SqliteNodes(Part):
    """See `store.nodes.Nodes`."""

    beat = called(note_beat)
    leave = called(leave)
    all = called(nodes)
    declare_kinds = called(declare_kinds)
