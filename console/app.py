"""The tree of verbs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, cast

import click
from click.shell_completion import CompletionItem

from musterd import __version__
from musterd.console.command import CommandLine, Verbs

# In the order in which people meet them: each verb, the module that has it, and what its own help
# begins with, so that a list of verbs loads none of them.
SECTIONS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Jobs": {
        "enqueue": ("verbs.enqueue", "Enqueue a job of KIND."),
        "jobs": ("verbs.jobs", "List jobs, newest first."),
        "job": ("verbs.jobs", "Show one job: timings, attempts, result."),
        "why": ("verbs.jobs", "Explain why a job does not run, and what to do about it."),
        "events": ("verbs.events", "Show events, newest last."),
        "cancel": ("verbs.control",
            "Cancel jobs: waiting ones at once, running ones as soon as their worker is told."),
        "pause": ("verbs.control", "Pause jobs until they are resumed."),
        "resume": ("verbs.control",
            "Queue paused or failed jobs again, with a fresh budget of attempts."),
        "release": ("verbs.control", "Queue jobs that were enqueued with --hold."),
        "clear": ("verbs.control", "Mark failed jobs as dealt with; paused ones are canceled."),
        "webhooks": ("verbs.webhooks", "List webhook messages, newest first; or send some again."),
    },
    "Operating": {
        "run": ("verbs.run", "Run the daemon, in the foreground."),
        "status": ("verbs.status", "Report whether all is well."),
        "top": ("top.verb", "Watch and control queue, crew and jobs on one screen."),
        "doctor": ("doctor.verb",
            "Check configuration, machine and store; say what is wrong and what to do."),
        "verify": ("verify.verb",
            "Check that the log of events, the jobs and the counts are consistent."),
        "nodes": ("verbs.nodes",
            "List the running daemons, and those that died within the last hour."),
        "duties": ("verbs.nodes",
            "Show which node has each duty, since when, and with what results."),
        "scaling": ("verbs.daemon", "Show why the crew has its size."),
        "simulate": ("simulate.verb", "Show how past jobs would have fared with other settings."),
        "tune": ("simulate.verb", "Recommend default_count and max_count for past jobs."),
        "queue": ("verbs.store", "Pause and resume the whole queue."),
        "schedules": ("verbs.schedules",
            "Show all schedules with their last and next slots; or control one."),
        "reload": ("verbs.daemon", "Reload the daemon's configuration and catalog."),
        "drain": ("verbs.daemon", "Drain the daemon: it finishes its jobs and ends."),
    },
    "Setting up": {
        "demo": ("verbs.demo", "Watch a crew at work for a few seconds."),
        "bench": ("bench.verb", "Measure how fast this machine is with this store."),
        "kinds": ("verbs.kinds", "List the kinds of work."),
        "config": ("verbs.config", "Show and check the configuration."),
        "db": ("verbs.store", "Manage the store's schema."),
        "completion": ("verbs.program", "Print the completion script for a shell."),
        "version": ("verbs.program", "Print the version."),
    },
}  # fmt: skip
VERBS = {verb: its for verbs in SECTIONS.values() for verb, its in verbs.items()}


class _Commands(Mapping[str, click.Command]):
    """The verbs by name. The module of one is loaded when it is first asked for: a daemon starts
    without those of all the others.
    """

    def __getitem__(self, name: str) -> click.Command:
        verb: click.Command = getattr(import_module(f"musterd.console.{VERBS[name][0]}"), name)
        return verb

    def __iter__(self) -> Iterator[str]:
        return iter(VERBS)

    def __len__(self) -> int:
        return len(VERBS)


class Musterd(Verbs):
    """The tree of verbs, whose help lists them in sections."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for name, verbs in SECTIONS.items():
            with formatter.section(name):
                formatter.write_dl([(verb, words) for verb, (_, words) in verbs.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        offers = [CompletionItem(verb, help=words) for verb, (_, words) in VERBS.items()]
        options = super(click.Group, self).shell_complete(ctx, incomplete)
        return [one for one in offers if one.value.startswith(incomplete)] + options


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
