"""`musterd top`: queue, crew and jobs on one screen, live."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import attrs
import click
import trio

from musterd.catalog.kinds import Catalog
from musterd.config.faults import ConfigError
from musterd.config.settings import Settings
from musterd.config.tenants import settings_of
from musterd.console.command import CommandLine, Verb, option_reader
from musterd.console.opening import engine_for, reached
from musterd.console.top import driver
from musterd.console.top.cells import Painter
from musterd.console.top.drawing import snapshot_lines, snapshot_object
from musterd.console.top.driver import Driver, DriverDeps, read_daemon
from musterd.console.top.state import Filter, Size, State, read_filter, resized, with_store
from musterd.console.top.terminal import Terminal
from musterd.console.verbs.store import whoami

INTERVAL_MIN, INTERVAL_MAX = 0.1, 3600.0


@click.command(cls=Verb)
@click.option(
    "--interval",
    type=click.FloatRange(INTERVAL_MIN, INTERVAL_MAX),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to update.",
)
@click.option(
    "--filter",
    "which",
    default="",
    callback=option_reader(read_filter),
    metavar="FILTER",
    help="Start with this filter, as typed after `/`: state=failed kind=NAME target=NAME text.",
)
@click.option("--once", is_flag=True, help="Print one snapshot as plain text and exit.")
@click.pass_context
def top(context: click.Context, /, interval: float, which: Filter, once: bool) -> None:
    """Watch and control queue, crew and jobs on one screen.

    Press ? for the keys. Without a terminal, or with --once or --json, prints one snapshot.
    """
    cli: CommandLine = context.obj
    settings = cli.load().settings
    own = cli.of_tenant(settings)
    catalog = None
    with suppress(ConfigError):  # a catalog with faults is the daemon's matter
        catalog = cli.catalog(settings)
    where, listens = engine_for(own).where, bool(settings.http.listen)
    state = State(own.tenant, tuple(settings.tenants), where, Size(80, 24), listens, filter=which)
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    if once or cli.json or not is_terminal:
        state = _one_look(own, state)
        cli.show([snapshot_object(state)], lambda: snapshot_lines(state))
    else:
        _watch(settings, state, interval, catalog, colour=context.color is not False)


def _one_look(settings: Settings, state: State) -> State:
    """Raises if the store is away or misconfigured."""

    async def look() -> State:
        async with reached(engine_for(settings)) as engine:
            seen = await driver.read_store(engine, state.filter)
        return attrs.evolve(with_store(state, seen), node=await driver.read_daemon(settings))

    return trio.run(look)


def _watch(
    settings: Settings, state: State, interval: float, catalog: Catalog | None, *, colour: bool
) -> None:
    terminal = Terminal()
    deps = DriverDeps(
        interval_seconds=interval,
        settings_of=lambda tenant: settings_of(settings, tenant),
        engine_of=engine_for,
        ask=read_daemon,
        catalog=catalog,
        by=whoami(),
    )
    painter = Painter(colour=colour, encoding=terminal.encoding)
    with terminal.taken():
        driver = Driver(resized(state, terminal.size()), deps, terminal, painter)
        trio.run(driver.run)
