"""`musterd nodes`: who is there, and how large are the crews."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from musterd.console.given import Given, Verb
from musterd.console.opening import in_store
from musterd.console.out import complain, print_json, say

if TYPE_CHECKING:
    from musterd.store.engine import Engine
    from musterd.store.nodes import NodeRecord


@click.command(cls=Verb)
@click.pass_obj
def nodes(given: Given) -> None:
    """List the running daemons, and those that died within the last hour."""
    from musterd.store.disagreement import warnings
    from musterd.store.nodes import node_object

    async def work(engine: Engine) -> list[NodeRecord]:
        return await engine.nodes()

    found = in_store(given.settings(), work)
    if given.json:
        for node in found:
            print_json(node_object(node))
    else:
        for line in _lines(found):
            say(line)
    for warning in warnings(found):
        complain(f"warning: {warning}")


def _lines(found: list[NodeRecord]) -> list[str]:
    from musterd.store.words import duration_text, table

    if not found:
        return ["no node is alive: start one with `musterd run`"]
    heads = (
        *("node", "phase", "workers", "busy", "load", "up", "last seen"),
        *("can't run", "config", "version"),
    )
    rows = [
        (
            node.name,
            node.phase if node.is_live else "dead",
            f"{node.crew}/{node.max_count}",
            str(node.busy),
            "-" if node.load is None else f"{node.load:.2f}",
            duration_text((node.heartbeat_at - node.started_at).total_seconds()),
            f"{duration_text(node.silent_seconds)} ago",
            _broken(node),
            node.config_hash or "-",
            node.version,
        )
        for node in found
    ]
    return table(heads, rows, right=frozenset({2, 3, 4, 5, 6}))


def _broken(node: NodeRecord) -> str:
    from musterd.store.words import cut, one_line

    broken = [name for name, kind in sorted(node.named.items()) if kind.broken is not None]
    return cut(one_line(", ".join(broken)), 60) or "-"
