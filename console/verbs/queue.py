"""`musterd queue`: halting all claims, and letting them go on."""

from __future__ import annotations

import getpass
import socket

import click

from musterd.console.command import CommandLine, Verbs
from musterd.console.opening import in_store
from musterd.store.engine import Engine
from musterd.store.queue import Counts


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
