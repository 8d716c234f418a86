"""`musterd bench`: how fast this machine is with this store."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from musterd.console.command import CommandLine, Verb, read_delay
from musterd.console.output import Complaint, Exit, LiveLine, complain, print_json, say_lines

if TYPE_CHECKING:
    from musterd.config.settings import Settings
    from musterd.console.bench.measurement import Measurement
    from musterd.console.bench.report import Findings, Plan

JOBS_MAX, WORKERS_MAX, PICK_UPS_MAX = 1_000_000, 1_000, 10_000
WITHIN_SECONDS_MIN, WITHIN_SECONDS_MAX = 1.0, 3_600.0
REDRAW_SECONDS = 0.1


def read_within(context: click.Context, option: click.Parameter, text: str) -> float:
    seconds = read_delay(context, option, text)
    if seconds is None or not WITHIN_SECONDS_MIN <= seconds <= WITHIN_SECONDS_MAX:
        raise click.BadParameter(f"{text!r} is not between 1s and 1h")
    return seconds


@click.command(cls=Verb)
@click.option(
    "--jobs",
    type=click.IntRange(1, JOBS_MAX),
    default=10_000,
    show_default=True,
    help="How many jobs to enqueue, then run.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, WORKERS_MAX),
    help="How many workers run them; default: workers.max_count.",
)
@click.option(
    "--pick-ups",
    type=click.IntRange(1, PICK_UPS_MAX),
    default=200,
    show_default=True,
    help="How many single jobs follow, each for an idle crew.",
)
@click.option(
    "--within",
    "within_seconds",
    callback=read_within,
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
    from musterd.console.bench.report import Findings, Plan

    own = cli.settings()
    crew = workers or min(own.workers.max_count, WORKERS_MAX)
    order, found = Plan(jobs, crew, pick_ups, within_seconds), Findings()
    try:
        _run(own, order, found, live=sys.stdout.isatty() and not cli.json)
    finally:
        if found.not_removed:
            complain(f"musterd: the temporary store could not be removed: {found.not_removed}")
            complain("  the next `musterd bench` removes it")
    _report(order, found, as_json=cli.json)
    if found.not_removed:
        raise click.exceptions.Exit(Exit.UNAVAILABLE)


def _run(own: Settings, order: Plan, found: Findings, *, live: bool) -> None:
    import secrets
    import time

    import trio

    from musterd.console.bench.measurement import Measurement
    from musterd.manager.log import set_up_log
    from musterd.store.scratch import scratch_name

    log = set_up_log("error", own.log.format, time.monotonic)
    name = scratch_name(secrets.token_hex(4))
    course = Measurement(order, own, name, found, log, time.perf_counter)
    trio.run(_perform, course, LiveLine() if live else None)


async def _perform(course: Measurement, live: LiveLine | None) -> None:
    import trio

    async with trio.open_nursery() as nursery:
        if live is not None:
            nursery.start_soon(_redraw, course, live)
        await course.run()
        nursery.cancel_scope.cancel()


async def _redraw(course: Measurement, live: LiveLine) -> None:
    import trio

    from musterd.console.bench.report import progress_text

    try:
        while True:
            live.show(progress_text(course.order, course.found))
            await trio.sleep(REDRAW_SECONDS)
    finally:
        live.done()


def _report(order: Plan, found: Findings, *, as_json: bool) -> None:
    """Prints what there is, and complains if that is not all."""
    import platform

    from musterd import __version__
    from musterd.console.bench.measurement import core_count
    from musterd.console.bench.report import Machine, cut_text, report_lines, report_object

    machine = Machine(__version__, platform.python_version(), core_count())
    if as_json:
        print_json(report_object(order, found, machine))
    else:
        say_lines(report_lines(order, found, machine))
    if found.is_whole:
        return
    if found.trouble:
        raise Complaint(Exit.UNAVAILABLE, cut_text(order, found), found.trouble)
    raise Complaint(Exit.UNSUCCESSFUL, cut_text(order, found))
