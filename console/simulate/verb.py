"""`musterd simulate` and `musterd tune`: what other settings would have made of past jobs."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

import click

from musterd.config.settings import Settings
from musterd.console.command import CommandLine, F, Verb
from musterd.console.completers import complete_settings
from musterd.console.opening import in_store
from musterd.console.output import Complaint, Exit, complain, live_line
from musterd.console.simulate.model import ModelSettings
from musterd.console.simulate.model import simulate as run_trace
from musterd.console.simulate.report import Comparison, comparison_lines, comparison_object
from musterd.console.simulate.trace import Trace, TraceReader
from musterd.console.simulate.tuning import SIMULATIONS_MAX, Aim, advice_lines, advice_object
from musterd.console.simulate.tuning import tune as search
from musterd.console.verbs.events import (
    Since,
    batches_of,
    order_all,
    pages_between,
    position_since,
    read_since,
    source_option,
)
from musterd.manager.scaling.supervisor import policy_of
from musterd.store.engine import Engine
from musterd.store.events import EventFilter


def trace_options(verb: F) -> F:
    since = click.option(
        "--since",
        callback=read_since,
        metavar="7d|POSITION|TIME",
        help="Only newer events; default: all that are kept.",
    )
    return source_option("--trace")(since(verb))


@click.command(cls=Verb)
@trace_options
@click.option(
    "--with",
    "proposed",
    multiple=True,
    metavar="SECTION.KEY=VALUE",
    shell_complete=complete_settings,
    help="Propose one setting, as with --set; may be repeated.",
)
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Propose FILE instead of the configuration file.",
)
@click.pass_obj
def simulate(
    cli: CommandLine, /, proposed: tuple[str, ...], against: Path | None, **where: Any
) -> None:
    """Show how past jobs would have fared with other settings.

    Runs the jobs of the log through the supervisor's own decisions on a virtual clock: one node,
    each attempt as long as it was. With --with or --against, the proposed settings are shown beside
    the present ones. Changes nothing, and asks no daemon.
    """
    settings = cli.settings()
    models = [model_settings(settings)]
    if proposed or against is not None:
        models.append(model_settings(cli.proposing(against, proposed).settings()))
    if len(models) > 1 and models[0] == models[1]:
        complain("musterd: the proposal changes nothing that the model knows")
    trace = read_trace(cli, settings, **where)
    found = Comparison(trace, models, [run_trace(trace, one) for one in models])
    cli.show([comparison_object(found, settings.tenant)], lambda: comparison_lines(found))


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
    help="The share of the jobs that must not wait longer.",
)
@click.pass_obj
def tune(cli: CommandLine, /, wait_seconds: float, quantile: float, **where: Any) -> None:
    """Recommend default_count and max_count for past jobs.

    Simulates the jobs of the log with different counts, as `musterd simulate` does, and recommends
    those that meet the aim (this share of the jobs waits no longer than --wait) at the fewest
    worker-seconds. Changes nothing.
    """
    settings = cli.settings()
    model = model_settings(settings)
    trace = read_trace(cli, settings, **where)
    with live_line(terminal=sys.stderr) as line:

        def progress(count: int) -> None:
            line.show(f"simulation {count} of at most {SIMULATIONS_MAX}")

        advice = search(trace, model, Aim(quantile, wait_seconds), progress)
    cli.show(
        [advice_object(advice, trace, model, settings.tenant)],
        lambda: advice_lines(advice, trace, model, settings.tenant),
    )


def model_settings(settings: Settings) -> ModelSettings:
    """Made by the daemon's own function."""
    return ModelSettings(policy_of(settings), settings.workers.scale_interval_ms / 1000)


def read_trace(
    cli: CommandLine, settings: Settings, source: TextIO | None, since: Since | None
) -> Trace:
    """Complains if there is no trace."""
    reader = TraceReader()
    if source is None:
        _from_store(settings, reader, since)
    else:
        _from_file(source, reader, cli.tenant, since)
    trace = reader.trace
    if trace is not None:
        return trace
    where, advice = "the log of the store", "run some jobs first"
    if source is not None:
        where, advice = source.name, "write one with `musterd events --since 0 --json`"
    if since is not None:
        advice = "go further back with --since"
    what = "no job has both its start and its end there"
    raise Complaint(Exit.UNKNOWN, f"{where} has nothing to simulate: {what}", advice)


def _from_store(settings: Settings, reader: TraceReader, since: Since | None) -> None:
    which = EventFilter(types=frozenset({"job", "worker"}))

    async def work(engine: Engine) -> None:
        newest = await order_all(engine.events)
        start = await position_since(engine, since, newest)
        async for page in pages_between(engine.events, which, start, newest):
            reader.take(page)
            if reader.is_full:
                return

    in_store(settings, work)


def _from_file(
    source: TextIO, reader: TraceReader, tenant: str | None, since: Since | None
) -> None:
    if isinstance(since, float):
        raise click.UsageError("with a file, --since takes a position or a time only")
    for batch in batches_of(source, tenant):
        if isinstance(since, datetime):
            reader.take(one for one in batch if one.at >= since)
        else:
            reader.take(one for one in batch if one.id > (since or 0))
        if reader.is_full:
            return
