"""`musterd nodes` and `musterd duties`: the daemons of a store, and which has which duty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from musterd.console.command import CommandLine, Verb
from musterd.console.opening import in_store
from musterd.console.output import complain
from musterd.store.words import count_text, cut, duration_text, one_line, table

if TYPE_CHECKING:
    from datetime import datetime

    from musterd.store.duties import DutyRecord
    from musterd.store.nodes import NodeRecord


@click.command(cls=Verb)
@click.pass_obj
def nodes(cli: CommandLine) -> None:
    """List the running daemons, and those that died within the last hour."""
    from musterd.store.nodes import node_object, warnings

    found = in_store(cli.settings(), lambda engine: engine.nodes.all())
    cli.show(map(node_object, found), lambda: _node_lines(found))
    for warning in warnings(found):
        complain(f"warning: {warning}")


def _node_lines(found: list[NodeRecord]) -> list[str]:
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
            _broken_kinds(node),
            node.config_hash or "-",
            node.version,
        )
        for node in found
    ]
    return table(heads, rows, right=frozenset({2, 3, 4, 5, 6}))


def _broken_kinds(node: NodeRecord) -> str:
    broken = [name for name, kind in sorted(node.named.items()) if kind.broken is not None]
    return cut(one_line(", ".join(broken)), 60) or "-"


@click.command(cls=Verb)
@click.pass_obj
def duties(cli: CommandLine) -> None:
    """Show which node has each duty, since when, and with what results."""
    from musterd.store.duties import duty_object

    settings = cli.settings()
    found = in_store(settings, lambda engine: engine.duties.duties())
    objects = (duty_object(one, settings.tenant) for one in found)
    cli.show(objects, lambda: _duty_lines(found))


def _duty_lines(found: list[DutyRecord]) -> list[str]:
    if not found:
        return ["no node has taken a duty: start one with `musterd run`, duties.mode = leader"]
    heads = (
        *("duty", "node", "held for", "last seen", "last run", "runs", "items", "errors"),
        *("hand-overs", "last error"),
    )
    rows = [
        (
            one.duty,
            one_line(one.node or "nobody"),
            "-" if one.held_seconds is None else duration_text(one.held_seconds),
            _ago(one.heartbeat_at, one.now),
            _ago(one.last_run_at, one.now),
            count_text(one.runs),
            count_text(one.items),
            count_text(one.errors),
            count_text(one.hand_overs),
            cut(one_line(one.last_error or ""), 60) or "-",
        )
        for one in found
    ]
    return table(heads, rows, right=frozenset({2, 3, 4, 5, 6, 7, 8}))


def _ago(at: datetime | None, now: datetime) -> str:
    return "-" if at is None else f"{duration_text((now - at).total_seconds())} ago"
