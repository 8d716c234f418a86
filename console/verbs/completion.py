"""`musterd completion`: verbs, options and names at the press of Tab."""

from __future__ import annotations

import click

from musterd.console.completers import script
from musterd.console.given import Verb
from musterd.console.out import say

SHELLS = ("bash", "zsh", "fish")


@click.command(cls=Verb)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, /, shell: str) -> None:
    """Print what a shell needs to complete command lines.

    It completes verbs, options, kinds, states, tenants, schedules, settings and ids of jobs.
    bash: eval "$(musterd completion bash)" in ~/.bashrc.
    """
    root = context.find_root()
    say(script(shell, root.command, "musterd"))
