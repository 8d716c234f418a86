"""`musterd db`, `queue`, `nodes` and `duties`: a store's schema, its pause, and who works on it."""

from __future__ import annotations

import getpass
import os
import socket
from datetime import datetime

import click

from musterd.config.load import resolve_store_url
from musterd.console.command import CommandLine, Verb, Verbs
from musterd.console.output import Columns, Exit, complain, or_dash, say, table_of
from musterd.store.duties import DutyRecord, duty_object
from musterd.store.engine import Engine, SchemaState
from musterd.store.nodes import NodeRecord, node_object, warnings
from musterd.store.opening import in_store
from musterd.store.postgres.migrating import apply_roles, role_names, roles_sql
from musterd.store.queue import Counts
from musterd.store.words import count_text, cut, duration_text, one_line


@click.group(cls=Verbs)
def db() -> None:
    """Manage the store's schema."""


@db.command()
@click.pass_obj
def migrate(cli: CommandLine) -> None:
    """Bring the schema up to date; safe to call twice, or from two places at once."""

    async def work(engine: Engine) -> tuple[str, list[str], SchemaState]:
        return engine.where, await engine.migrate(), await engine.schema()

    where, applied, state = in_store(cli.settings(), work, bare=True)
    said = "is now" if applied else "was already"
    cli.answer(
        {"store": where, "applied": applied, "version": state.found},
        *(f"applied {name}" for name in applied),
        f"{where}: the schema {said} at version {state.found}",
    )


@db.command("status")
@click.pass_context
def db_status(context: click.Context) -> None:
    """Report whether this musterd can use the schema; exit 78 if it cannot."""
    cli: CommandLine = context.obj

    async def work(engine: Engine) -> tuple[str, SchemaState]:
        return engine.where, await engine.schema()

    where, state = in_store(cli.settings(), work, bare=True)
    current = state.found == state.wanted
    found = {"version": state.found, "wanted": state.wanted, "current": current}
    cli.answer({"store": where, **found}, f"{where}: {_words(state)}")
    context.exit(Exit.DONE if current else Exit.CONFIGURATION)


@db.command()
@click.option("--apply", is_flag=True, help="Create the roles instead of printing the SQL.")
@click.pass_obj
def roles(cli: CommandLine, apply: bool) -> None:
    """Print SQL that creates roles for enqueueing, reading and running a daemon (PostgreSQL)."""
    settings = cli.settings()
    url = resolve_store_url(settings, os.environ)
    if url.startswith("sqlite:"):
        raise click.UsageError(
            "an embedded store has no roles: access to its file is access to the store"
        )
    schema = settings.store.schema
    if not apply:
        say(roles_sql(schema).rstrip())
        return
    apply_roles(url, schema)
    names = sorted(role_names(schema).values())
    cli.answer({"roles": names}, f"roles {', '.join(names)} exist and have their rights")


def _words(state: SchemaState) -> str:
    if state.found == state.wanted:
        return f"the schema is current (version {state.found})"
    return state.fault


@click.group(cls=Verbs)
def queue() -> None:
    """Pause and resume the whole queue."""


@queue.command()
@click.pass_obj
def pause(cli: CommandLine) -> None:
    """Pause the queue: no further job is taken; running ones continue."""
    by = whoami()

    async def work(engine: Engine) -> tuple[bool, Counts]:
        return await engine.queue.pause(by), await engine.queue.counts()

    changed, counts = in_store(cli.settings(), work, creates=True)
    cli.answer(
        {"paused": True, "changed": changed, "paused_by": counts.paused_by},
        "queue paused: no further job is taken until `musterd queue resume`"
        if changed
        else f"the queue was paused already, by {counts.paused_by or 'somebody'}",
    )


@queue.command()
@click.pass_obj
def resume(cli: CommandLine) -> None:
    """Resume the queue."""
    changed = in_store(cli.settings(), lambda engine: engine.queue.resume(), creates=True)
    said = "queue resumed" if changed else "the queue was not paused"
    cli.answer({"paused": False, "changed": changed}, said)


def whoami() -> str:
    """The name under which this command pauses the queue."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # the user id has no entry; Pythons differ in what they raise
        user = "unknown"
    return f"{user}@{socket.gethostname()}"


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
