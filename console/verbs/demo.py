"""`musterd demo`: a store for the occasion, waves of jobs, and a crew that grows and shrinks
before one's eyes.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import click

from musterd.console.command import CommandLine, Verb
from musterd.console.output import live_line
from musterd.manager.log import set_up_log

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


@click.command(cls=Verb)
@click.pass_obj
def demo(cli: CommandLine) -> None:
    """Watch a crew at work for a few seconds.

    Uses a temporary store.
    """
    import trio

    from musterd.config.load import load
    from musterd.console.verbs.demo_play import Demo, summary_lines, summary_object

    with (
        tempfile.TemporaryDirectory(prefix="musterd-demo-") as folder,
        live_line(quiet=cli.json) as live,
    ):
        url = f"store.url=sqlite:///{folder}/demo.db"
        nowhere = Path(folder) / "none.toml"
        # The machine's own settings stay out of it; what was typed counts.
        settings = load(None, {}, [*DEMO_SETS, *cli.sets, url], system_file=nowhere).settings
        catalog = cli.catalog(settings)
        show = Demo(settings, live, is_quiet=cli.json)
        log = set_up_log(settings.log.level, settings.log.format, time.monotonic)
        trio.run(show.run, catalog, log)
    cli.show([summary_object(show)], lambda: summary_lines(show))
