"""The tree of verbs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, cast

import click

from musterd import __version__
from musterd.console.command import CommandLine, Verbs

# In the order in which people meet them: each verb, and the module that has it.
SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Jobs": {
        "enqueue": "verbs.enqueue",
        "jobs": "verbs.jobs",
        "job": "verbs.jobs",
        "why": "verbs.jobs",
        "events": "verbs.events",
        "cancel": "verbs.control",
        "pause": "verbs.control",
        "resume": "verbs.control",
        "release": "verbs.control",
        "clear": "verbs.control",
        "webhooks": "verbs.webhooks",
    },
    "Operating": {
        "run": "verbs.run",
        "status": "verbs.status",
        "top": "top.verb",
        "doctor": "doctor.verb",
        "verify": "verify.verb",
        "nodes": "verbs.nodes",
        "duties": "verbs.nodes",
        "scaling": "verbs.daemon",
        "simulate": "simulate.verb",
        "tune": "simulate.verb",
        "queue": "verbs.store",
        "schedules": "verbs.schedules",
        "reload": "verbs.daemon",
        "drain": "verbs.daemon",
    },
    "Setting up": {
        "demo": "verbs.demo",
        "bench": "bench.verb",
        "kinds": "verbs.kinds",
        "config": "verbs.config",
        "db": "verbs.store",
        "completion": "verbs.program",
        "version": "verbs.program",
    },
}
HOMES = {verb: home for verbs in SECTIONS.values() for verb, home in verbs.items()}

SHORT_HELP_MAX = 100


class _Commands(Mapping[str, click.Command]):
    """The verbs by name. The module of one is loaded when it is first asked for: a daemon starts
    without those of all the others.
    """

    def __getitem__(self, name: str) -> click.Command:
        verb: click.Command = getattr(import_module(f"musterd.console.{HOMES[name]}"), name)
        return verb

    def __iter__(self) -> Iterator[str]:
        return iter(HOMES)

    def __len__(self) -> int:
        return len(HOMES)


class Musterd(Verbs):
    """The tree of verbs, whose help lists them in sections."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for name, verbs in SECTIONS.items():
            short = (
                (verb, self.commands[verb].get_short_help_str(SHORT_HELP_MAX)) for verb in verbs
            )
            with formatter.section(name):
                formatter.write_dl(list(short))


@click.group(
    cls=Musterd,
    commands=cast(Any, _Commands()),  # to which nobody adds
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
    context.ensure_object(CommandLine)
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        context.color = False


def main() -> None:
    """Runs the command line and exits."""
    musterd(prog_name="musterd")
