"""The tree of verbs."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from musterd import __version__
from musterd.manager.cli.check import config
from musterd.manager.cli.completion import completion
from musterd.manager.cli.control import cancel, clear, pause, release, resume
from musterd.manager.cli.db import db
from musterd.manager.cli.demo import demo
from musterd.manager.cli.doctor import doctor
from musterd.manager.cli.drain import drain
from musterd.manager.cli.duties import duties
from musterd.manager.cli.enqueue import enqueue
from musterd.manager.cli.events import events
from musterd.manager.cli.given import Given, Verbs
from musterd.manager.cli.jobs import job, jobs
from musterd.manager.cli.kinds import kinds
from musterd.manager.cli.nodes import nodes
from musterd.manager.cli.queue import queue
from musterd.manager.cli.reload import reload
from musterd.manager.cli.run import run
from musterd.manager.cli.scaling import scaling
from musterd.manager.cli.schedules import schedules
from musterd.manager.cli.status import status
from musterd.manager.cli.top.verb import top
from musterd.manager.cli.verify import verify
from musterd.manager.cli.version import version
from musterd.manager.cli.webhooks import webhooks
from musterd.manager.cli.why import why

# In the order in which people meet them.
SECTIONS: dict[str, Sequence[click.Command]] = {
    "Jobs": (enqueue, jobs, job, why, events, cancel, pause, resume, release, clear, webhooks),
    "Operating": (
        run,
        status,
        top,
        doctor,
        verify,
        nodes,
        duties,
        scaling,
        queue,
        schedules,
        reload,
        drain,
    ),
    "Setting up": (demo, kinds, config, db, completion, version),
}


SHORT_HELP_MAX = 100


class Musterd(Verbs):
    """The tree of verbs, whose help lists them in sections."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for name, verbs in SECTIONS.items():
            rows = [(str(verb.name), verb.get_short_help_str(SHORT_HELP_MAX)) for verb in verbs]
            with formatter.section(name):
                formatter.write_dl(rows)


@click.group(
    cls=Musterd,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
@click.version_option(__version__, prog_name="musterd", message="%(prog)s %(version)s")
@click.pass_context
def musterd(context: click.Context) -> None:
    """Durable jobs under leases, run by a crew that grows and shrinks with the queue.

    Try `musterd demo`, or `musterd run` in one terminal and `musterd enqueue report --wait` in
    another.
    """
    context.ensure_object(Given)
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        context.color = False


for verbs in SECTIONS.values():
    for verb in verbs:
        musterd.add_command(verb)


def main() -> None:
    """Runs the command line and exits."""
    musterd(prog_name="musterd")
