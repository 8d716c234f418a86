"""`musterd tune`: which counts let past jobs wait no longer than they may, at the least cost."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

import click

from musterd.console.given import Given, Verb
from musterd.console.out import LiveLine, print_json, say
from musterd.console.tracing import read_trace, rules_of, trace_options
from musterd.console.verbs.events import Since

if TYPE_CHECKING:
    from collections.abc import Callable

WAIT_SECONDS = 1.0
QUANTILE = 0.95
WAIT_SECONDS_MAX = 86_400.0


@click.command(cls=Verb)
@trace_options
@click.option(
    "--wait",
    "wait_seconds",
    type=click.FloatRange(0, WAIT_SECONDS_MAX),
    default=WAIT_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How long a job may wait for a worker.",
)
@click.option(
    "--quantile",
    type=click.FloatRange(0, 1, min_open=True),
    default=QUANTILE,
    show_default=True,
    metavar="SHARE",
    help="Of how large a share of the jobs that must be true.",
)
@click.pass_obj
def tune(
    given: Given,
    /,
    source: TextIO | None,
    since: Since | None,
    wait_seconds: float,
    quantile: float,
) -> None:
    """Say which default_count and max_count fit past jobs.

    Simulates the jobs of the log, as `musterd simulate` does, with different counts, and says with
    which of them so large a share of the jobs waits no longer than --wait for the fewest
    worker-seconds. Changes nothing.
    """
    from musterd.console.simulate.advice import advice_lines, advice_object
    from musterd.console.simulate.tuning import Aim
    from musterd.console.simulate.tuning import tune as search

    settings = given.settings()
    rules = rules_of(settings)
    trace = read_trace(given, settings, source, since)
    with _progress() as progress:
        advice = search(trace, rules, Aim(quantile, wait_seconds), progress)
    if given.json:
        print_json(advice_object(advice, trace, rules, settings.tenant))
        return
    for line in advice_lines(advice, trace, rules, settings.tenant):
        say(line)


@contextmanager
def _progress() -> Generator[Callable[[int], None]]:
    """Says on a terminal how far the search is."""
    from musterd.console.simulate.tuning import SIMULATIONS_MAX

    if not sys.stderr.isatty():
        yield lambda _: None
        return
    line = LiveLine(sys.stderr)
    try:
        yield lambda count: line.show(f"simulation {count} of at most {SIMULATIONS_MAX} is done")
    finally:
        line.done()
