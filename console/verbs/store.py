"""`musterd db` and `musterd queue`: a store's schema, and pausing all claims."""

from __future__ import annotations

import getpass
import os
import socket

import click

from musterd.config.load import resolve_store_url
from musterd.console.command import CommandLine, Verbs
from musterd.console.opening import in_store
from musterd.console.output import Exit, say
from musterd.store.engine import Engine, SchemaState
from musterd.store.postgres.migrating import apply_roles, role_names, roles_sql
from musterd.store.queue import Counts


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
    if state.found == 0:
        return "there is no schema yet: start the daemon or run `musterd db migrate`"
    if state.found > state.wanted:
        return f"the schema (version {state.found}) is newer than this musterd ({state.wanted})"
    return f"version {state.found} of {state.wanted}: run `musterd db migrate`"


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
