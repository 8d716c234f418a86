"""`musterd bench`: how fast this machine is with this store."""

from __future__ import annotations

import platform
import secrets
import time
from collections.abc import Callable

import click
import trio

from musterd import __version__
from musterd.console.bench.measurement import (
    Findings,
    Machine,
    Measurement,
    Plan,
    core_count,
    cut_text,
    progress_text,
    report_lines,
    report_object,
)
from musterd.console.command import CommandLine, F, Verb, option_reader
from musterd.console.output import Complaint, Exit, LiveLine, complain, live_line
from musterd.manager.log import set_up_log
from musterd.store.scratch import scratch_name
from musterd.store.times import delay_of

JOBS_MAX, WORKERS_MAX, PICK_UPS_MAX = 1_000_000, 1_000, 10_000
WITHIN_SECONDS_MIN, WITHIN_SECONDS_MAX = 1.0, 3_600.0
REDRAW_SECONDS = 0.1


def _within_of(text: str) -> float:
    seconds = delay_of(text)
    if not WITHIN_SECONDS_MIN <= seconds <= WITHIN_SECONDS_MAX:
        raise ValueError(f"{text!r} is not between 1s and 1h")
    return seconds


def _count_option(flag: str, most: int, default: int | None, help_text: str) -> Callable[[F], F]:
    type_ = click.IntRange(1, most)
    shown = default is not None
    return click.option(flag, type=type_, default=default, show_default=shown, help=help_text)


@click.command(cls=Verb)
@_count_option("--jobs", JOBS_MAX, 10_000, "How many jobs to enqueue, then run.")
@_count_option(
    "--workers", WORKERS_MAX, None, "How many workers run them; default: workers.max_count."
)
@_count_option(
    "--pick-ups", PICK_UPS_MAX, 200, "How many single jobs follow, each for an idle crew."
)
@click.option(
    "--within",
    "within_seconds",
    callback=option_reader(_within_of),
    default="2m",
    show_default=True,
    metavar="2m",
    help="Stop after this long, and report how far it got.",
)
@click.pass_obj
def bench(
    cli: CommandLine, /, jobs: int, workers: int | None, pick_ups: int, within_seconds: float
) -> None:
    """Measure how fast this machine is with this store.

    Works in a temporary schema of the configured database, or in a temporary folder beside the
    configured file: no queue is touched. The jobs do nothing. Exits 1 if it was cut short.
    """
    own = cli.of_tenant(cli.load().settings)
    crew = workers or min(own.workers.max_count, WORKERS_MAX)
    order, found = Plan(jobs, crew, pick_ups, within_seconds), Findings()
    log = set_up_log("error", own.log.format, time.monotonic)
    name = scratch_name(secrets.token_hex(4))
    course = Measurement(order, own, name, found, log, time.perf_counter)
    try:
        with live_line(quiet=cli.json) as live:
            trio.run(_perform, course, live)
    finally:
        if found.not_removed:
            complain(f"musterd: the temporary store could not be removed: {found.not_removed}")
            complain("  the next `musterd bench` removes it")
    machine = Machine(__version__, platform.python_version(), core_count())
    whole = report_object(order, found, machine)
    cli.show([whole], lambda: report_lines(order, found, machine))
    if found.trouble and not found.is_whole:
        raise Complaint(Exit.UNAVAILABLE, cut_text(order, found), found.trouble)
    if not found.is_whole:
        raise Complaint(Exit.UNSUCCESSFUL, cut_text(order, found))
    if found.not_removed:
        raise click.exceptions.Exit(Exit.UNAVAILABLE)


async def _perform(course: Measurement, live: LiveLine) -> None:
    def text() -> str:
        return progress_text(course.order, course.found)

    async with trio.open_nursery() as nursery:
        if not live.is_quiet:  # else it would only disturb
            nursery.start_soon(live.keep_showing, text, REDRAW_SECONDS)
        await course.run()
        nursery.cancel_scope.cancel()
