"""`musterd completion` and `musterd version`: about the program itself."""

from __future__ import annotations

import platform
import sqlite3

import click

from musterd import __version__
from musterd.console.command import CommandLine, Verb
from musterd.console.completers import script
from musterd.console.output import say

SHELLS = ("bash", "zsh", "fish")


@click.command(cls=Verb)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, /, shell: str) -> None:
    """Print the completion script for a shell.

    It completes verbs, options, kinds, states, tenants, schedules, settings and ids of jobs.
    bash: eval "$(musterd completion bash)" in ~/.bashrc.
    """
    say(script(shell, context.find_root().command, "musterd"))


@click.command(cls=Verb)
@click.pass_obj
def version(cli: CommandLine) -> None:
    """Print the version."""
    found = {
        "musterd": __version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.machine()}",
    }
    rest = ", ".join(f"{name} {text}" for name, text in list(found.items())[1:3])
    cli.answer(found, f"musterd {__version__} ({rest}, {found['system']})")
