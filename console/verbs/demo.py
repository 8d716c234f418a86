"""`musterd demo`: a store for the occasion, waves of jobs, and a crew that grows and shrinks
before one's eyes.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from musterd.console.command import CommandLine, Verb
from musterd.console.output import LiveLine, say_lines
from musterd.store.errors import StoreUnavailable

if TYPE_CHECKING:
    from musterd.catalog.kinds import Catalog
    from musterd.config.settings import Settings
    from musterd.console.verbs.demo_play import Demo
    from musterd.console.wiring import Node

DEMO_SETS = (
    "http.listen=",
    "workers.default_count=2",
    "workers.max_count=8",
    "workers.poll_interval_ms=100",
    "workers.scale_interval_ms=200",
    "scaling.down_cooldown_seconds=0.2",
    "scaling.stabilization_seconds=1",
    "shutdown.grace_period_seconds=3",
    "log.level=error",
)
DEMO_SECONDS_MAX = 20.0
END_SECONDS = 2.0  # kept of those for the drain


@click.command(cls=Verb)
@click.pass_obj
def demo(cli: CommandLine) -> None:
    """Watch a crew at work for a few seconds.

    Uses a temporary store.
    """
    import tempfile
    import time

    import trio

    from musterd.config.load import load
    from musterd.console.verbs.demo_play import Demo, summary_lines, summary_object
    from musterd.manager.log import set_up_log

    with tempfile.TemporaryDirectory(prefix="musterd-demo-") as folder:
        url = f"store.url=sqlite:///{folder}/demo.db"
        nowhere = Path(folder) / "none.toml"
        # The machine's own settings stay out of it; what was typed counts.
        sets = [*DEMO_SETS, *cli.sets, url]
        settings = load(None, {}, sets, system_file=nowhere).settings
        catalog = cli.catalog(settings)
        show = Demo(settings, LiveLine() if sys.stdout.isatty() and not cli.json else None)
        show.is_quiet = cli.json
        log = set_up_log(settings.log.level, settings.log.format, time.monotonic)
        trio.run(_perform, settings, catalog, show, log)
    if cli.json:
        from musterd.console.output import print_json

        print_json(summary_object(show))
        return
    say_lines(summary_lines(show))


async def _perform(settings: Settings, catalog: Catalog, show: Demo, log: logging.Logger) -> None:
    import trio

    from musterd.console.wiring import early_and_late_signals, make_node

    node = make_node(settings, catalog, log, show.metrics)
    with early_and_late_signals(node.daemon.stop):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(show.watch, node)
            nursery.start_soon(_play, show, node)
            await node.daemon.run()
            nursery.cancel_scope.cancel()


async def _play(show: Demo, node: Node) -> None:
    """Plays the demo to its end; stopping the daemon earlier stops the demo."""
    import trio

    try:
        with trio.move_on_after(DEMO_SECONDS_MAX - END_SECONDS):
            await show.play(node)
    except StoreUnavailable:
        if node.daemon.status().phase == "running":
            raise
        return
    if node.daemon.status().phase == "running":
        node.daemon.stop()
