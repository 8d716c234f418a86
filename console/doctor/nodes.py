"""Whether nodes are there, agree, and fit into the server's connections: pure."""

from __future__ import annotations

from collections.abc import Sequence

from musterd.config.settings import Settings
from musterd.console.doctor.finding import Finding, fail, ok, warn
from musterd.store.disagreement import warnings
from musterd.store.engine import EXCHANGES_AT_ONCE
from musterd.store.nodes import NodeRecord
from musterd.store.vitals import Connections
from musterd.store.words import cut, duration_text, one_line, plural

WIDTH = 200
LEASE_CONNECTIONS_MAX = 2
LISTENING = 1


def judge_nodes(nodes: Sequence[NodeRecord]) -> list[Finding]:
    name = "nodes"
    live = [node for node in nodes if node.is_live]
    dead = [node for node in nodes if not node.is_live]
    found = [
        warn(name, said, "the same on all nodes", "finish the deployment, or reload the others")
        for said in warnings(nodes)
    ]
    if not live:
        advice = "start one: `musterd run`, or systemctl start musterd"
        found.append(warn(name, "no node is alive: nothing runs", "one at least", advice))
    for node in dead:
        said = f"{cut(one_line(node.name), WIDTH)} died {duration_text(node.silent_seconds)} ago"
        found.append(warn(name, said, "a node that leaves cleanly", "look at its log"))
    return found or [ok(name, f"{plural(len(live), 'node')}, all of one version and configuration")]


def judge_connections(
    found: Connections, live_nodes: int, tenants: int, settings: Settings
) -> list[Finding]:
    """`tenants`: how many of each node share this database's connections. A node that is not alive
    is counted too where none is: it will come.
    """
    name, nodes = "connections", max(1, live_nodes)
    each = node_connections(tenants, settings)
    faults = [
        *_limit("max_connections", found.most - found.reserved, found.used, found, nodes * each),
        *_limit("the role's limit", found.role_limit, found.role_used, found, nodes * each),
        *_limit(
            "the database's limit", found.database_limit, found.database_used, found, nodes * each
        ),
    ]
    room = found.most - found.reserved
    said = f"{found.used} of {room} in use; {plural(nodes, 'node')} may open {nodes * each}"
    return faults or [ok(name, said)]


def node_connections(tenants: int, settings: Settings) -> int:
    """The most that a node opens to one database: see `store.postgres.hub`."""
    pool = settings.store.pool_size
    exchanges = max(EXCHANGES_AT_ONCE, min(tenants + 1, pool))
    return pool + exchanges + min(tenants, LEASE_CONNECTIONS_MAX) + LISTENING


def _limit(what: str, most: int, used: int, found: Connections, wanted: int) -> list[Finding]:
    """A limit of -1 is none. What others have now they may have again."""
    if most < 0:
        return []
    advice = "raise it, lower store.pool_size, or put a pooler in between"
    if used >= most:
        return [fail("connections", f"{used} of {most} ({what}) are in use", "room", advice)]
    needed = max(0, used - found.ours) + wanted
    if needed <= most:
        return []
    said = f"the nodes may open {wanted}, others have {needed - wanted}, {what} leaves {most}"
    return [warn("connections", said, f"room for {needed}", advice)]
