"""`musterd nodes` and `musterd duties`: the daemons of a store, and which has which duty."""

from __future__ import annotations

from datetime import datetime

import click

from musterd.console.command import CommandLine, Verb
from musterd.console.opening import in_store
from musterd.console.output import Columns, complain, or_dash, table_of
from musterd.store.duties import DutyRecord, duty_object
from musterd.store.nodes import NodeRecord, node_object, warnings
from musterd.store.words import count_text, cut, duration_text, one_line


@click.command(cls=Verb)
@click.pass_obj
def nodes(cli: CommandLine) -> None:
    """List the running daemons, and those that died within the last hour."""
    found = in_store(cli.settings(), lambda engine: engine.nodes.all())
    empty = "no node is alive: start one with `musterd run`"
    cli.show(map(node_object, found), lambda: table_of(found, NODE_COLUMNS, empty))
    for warning in warnings(found):
        complain(f"warning: {warning}")


def _broken_kinds(node: NodeRecord) -> str:
    broken = [name for name, kind in sorted(node.named.items()) if kind.broken is not None]
    return cut(one_line(", ".join(broken)), 60) or "-"


NODE_COLUMNS: Columns[NodeRecord] = {
    "node": lambda node: node.name,
    "phase": lambda node: node.phase if node.is_live else "dead",
    ">workers": lambda node: f"{node.crew}/{node.max_count}",
    ">busy": lambda node: str(node.busy),
    ">load": lambda node: or_dash(node.load, "{:.2f}".format),
    ">up": lambda node: duration_text((node.heartbeat_at - node.started_at).total_seconds()),
    ">last seen": lambda node: f"{duration_text(node.silent_seconds)} ago",
    "can't run": _broken_kinds,
    "config": lambda node: node.config_hash or "-",
    "version": lambda node: node.version,
}


@click.command(cls=Verb)
@click.pass_obj
def duties(cli: CommandLine) -> None:
    """Show which node has each duty, since when, and with what results."""
    settings = cli.settings()
    found = in_store(settings, lambda engine: engine.duties.duties())
    objects = (duty_object(one, settings.tenant) for one in found)
    empty = "no node has taken a duty: start one with `musterd run`, duties.mode = leader"
    cli.show(objects, lambda: table_of(found, DUTY_COLUMNS, empty))


def _ago(at: datetime | None, now: datetime) -> str:
    return or_dash(at, lambda moment: f"{duration_text((now - moment).total_seconds())} ago")


DUTY_COLUMNS: Columns[DutyRecord] = {
    "duty": lambda one: one.duty,
    "node": lambda one: one_line(one.node or "nobody"),
    ">held for": lambda one: or_dash(one.held_seconds, duration_text),
    ">last seen": lambda one: _ago(one.heartbeat_at, one.now),
    ">last run": lambda one: _ago(one.last_run_at, one.now),
    ">running": lambda one: or_dash(one.running_seconds, duration_text),
    ">runs": lambda one: count_text(one.runs),
    ">mean run": lambda one: duration_text(one.run_seconds / one.runs) if one.runs else "-",
    ">items": lambda one: count_text(one.items),
    ">errors": lambda one: count_text(one.errors),
    ">hand-overs": lambda one: count_text(one.hand_overs),
    "last error": lambda one: cut(one_line(one.last_error or ""), 60) or "-",
}
