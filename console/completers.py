"""Shell completion. It runs while a person types: reports no errors, makes nothing, ends soon."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

if TYPE_CHECKING:
    from musterd.config.settings import Settings
    from musterd.console.command import CommandLine
    from musterd.store.engine import Engine
    from musterd.store.overview import OverviewJob

SECONDS_MAX = 0.4  # for reading the store; after that the shell gets nothing
JOBS_MAX = 50

Offer = CompletionItem
Find = Callable[["CommandLine", click.Context], Iterable[Offer]]
Completer = Callable[[click.Context, click.Parameter, str], list[Offer]]


def _completer(find: Find) -> Completer:
    """Offers what begins with the word; nothing if anything fails."""

    def complete(context: click.Context, _param: click.Parameter, word: str) -> list[Offer]:
        from musterd.console.command import CommandLine

        try:
            offers = find(context.find_root().ensure_object(CommandLine), context)
            return [one for one in offers if str(one.value).startswith(word)]
        except (Exception, SystemExit):  # noqa: BLE001 - no traceback while a person types
            return []

    return complete


@_completer
def complete_kinds(cli: CommandLine, _context: click.Context) -> Iterable[Offer]:
    return [Offer(name) for name in sorted(cli.catalog(cli.of_tenant(cli.load().settings)))]


@_completer
def complete_tenants(cli: CommandLine, _context: click.Context) -> Iterable[Offer]:
    return [Offer(name) for name in cli.load().settings.tenants]


@_completer
def complete_schedules(cli: CommandLine, _context: click.Context) -> Iterable[Offer]:
    from musterd.config.schedules import of_tenant

    settings = cli.of_tenant(cli.load().settings)
    return [Offer(name) for name in of_tenant(settings.schedules, settings.tenant)]


@_completer
def complete_settings(_cli: CommandLine, _context: click.Context) -> Iterable[Offer]:
    from musterd.config.settings import keys

    return [Offer(f"{key}=") for key in keys()]


@_completer
def complete_jobs(cli: CommandLine, context: click.Context) -> Iterable[Offer]:
    """Jobs that the verb can act on."""
    from musterd.store.control import states_for
    from musterd.store.lifecycle import Action

    verb = context.command.name
    states = states_for(Action(verb)) if verb in list(Action) else ()
    found = [job for job in _listed(cli) if not states or job.state in states]
    return [Offer(str(job.id), help=f"{job.kind} {job.state.value}") for job in found[:JOBS_MAX]]


@_completer
def complete_targets(cli: CommandLine, _context: click.Context) -> Iterable[Offer]:
    return [Offer(name) for name in sorted({job.target for job in _listed(cli) if job.target})]


def _listed(cli: CommandLine) -> tuple[OverviewJob, ...]:
    from musterd.store.opening import in_store

    settings = cli.of_tenant(cli.load().settings)
    if not _is_there(settings):
        return ()
    # Whatever hangs, the person who types must not wait.
    handler = signal.signal(signal.SIGALRM, lambda _number, _frame: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, SECONDS_MAX)
    try:
        return in_store(settings, _look, bare=True)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)


def _is_there(settings: Settings) -> bool:
    """Opening a missing file would create it."""
    from musterd.config.load import resolve_store_url
    from musterd.store.embedded import sqlite_path

    url = resolve_store_url(settings, os.environ)
    return not url.startswith("sqlite:") or os.path.exists(sqlite_path(url))  # noqa: PTH110 - a path or :memory:


async def _look(engine: Engine) -> tuple[OverviewJob, ...]:
    from musterd.store.overview import OverviewFilter

    schema = await engine.schema()
    if schema.found != schema.wanted:
        return ()
    return (await engine.overview.jobs(OverviewFilter())).jobs


def script(shell: str, command: click.Command, program: str) -> str:
    """The script for this shell; it asks `program` for completions."""
    found = get_completion_class(shell)
    assert found is not None
    made = found(command, {}, program, f"_{program.upper()}_COMPLETE")
    # The base's own: that for bash asks which bash there is, and this one may be elsewhere.
    return ShellComplete.source(made)
