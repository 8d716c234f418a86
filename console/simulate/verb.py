"""`musterd simulate` and `musterd tune`: what other settings would have made of past jobs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

import attrs
import click

from musterd.catalog.load import catalog_of
from musterd.config.settings import Settings
from musterd.console.command import CommandLine, F, Verb, seconds_option
from musterd.console.completers import complete_settings
from musterd.console.output import Complaint, Exit, bars, complain, live_line
from musterd.console.simulate.confidence import confidence_of
from musterd.console.simulate.csv_trace import (
    FIELDS,
    InvalidTrace,
    is_csv,
    rows_of,
    trace_of_rows,
)
from musterd.console.simulate.showing import (
    changed_settings,
    settings_object,
    trace_lines,
    trace_object,
)
from musterd.console.simulate.tuning import SIMULATIONS_MAX, Aim, advice_lines, advice_object
from musterd.console.simulate.tuning import tune as search
from musterd.console.verbs.events import (
    Since,
    batches_of,
    position_since,
    read_since,
    source_option,
)
from musterd.manager.scaling.candidate import candidate_of
from musterd.manager.scaling.model.figures import Figures, figures_object, figures_of, waits_of
from musterd.manager.scaling.model.reading import TRACED, TraceReader
from musterd.manager.scaling.model.settings import ModelSettings, model_settings
from musterd.manager.scaling.model.simulation import Run
from musterd.manager.scaling.model.simulation import simulate as run_trace
from musterd.manager.scaling.model.trace import Trace
from musterd.store.engine import Engine
from musterd.store.event_pages import order_all, pages_between
from musterd.store.events import Event
from musterd.store.opening import in_store
from musterd.store.words import count_text, duration_text, table

NODES_MAX = 100
JOURNAL_ROWS_MAX = 10_000  # the latest
HOURS_MAX = 336  # the latest: two weeks of them


def trace_options(verb: F) -> F:
    since = click.option(
        "--since",
        callback=read_since,
        metavar="7d|POSITION|TIME",
        help="Only newer events; default: all that are kept.",
    )
    nodes = click.option(
        "--nodes",
        type=click.IntRange(1, NODES_MAX),
        metavar="N",
        help="How many nodes there are; default: as many as there were at a time.",
    )
    return source_option("--trace")(since(nodes(verb)))


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
@click.option("--candidate", is_flag=True, help="Propose what [scaling.candidate] names.")
@click.pass_obj
def simulate(
    cli: CommandLine, /, proposed: tuple[str, ...], against: Path | None, **more: Any
) -> None:
    """Show how past jobs would have fared with other settings.

    Runs the jobs of the log through the supervisor's own decisions on a virtual clock, each attempt
    as long as it was. With --with, --against or --candidate, the proposed settings are
    shown beside the present ones. Changes nothing, and asks no daemon.
    """
    settings, is_candidate = cli.of_tenant(cli.load().settings), more.pop("candidate")
    asked = more.pop("nodes")
    models = [known_of(settings)]
    if proposed or against is not None or is_candidate:
        proposal = cli.proposing(against, proposed)
        offered = proposal.of_tenant(proposal.load().settings)
        models.append(known_of(_candidate(offered) if is_candidate else offered))
    if len(models) > 1 and models[0] == models[1]:
        complain("musterd: the proposal changes nothing that the model knows")
    trace = read_trace(cli, settings, **more)
    models = [attrs.evolve(one, nodes=asked or trace.nodes) for one in models]
    found = Comparison(trace, models, [run_trace(trace, one) for one in models])
    cli.show([comparison_object(found, settings.tenant)], lambda: comparison_lines(found))


def _candidate(settings: Settings) -> Settings:
    found = candidate_of(settings)
    if found is None:
        advice = "name its keys in [scaling.candidate], or propose them with --with"
        raise Complaint(Exit.USAGE, "there is no candidate", advice)
    return found


WAIT_SECONDS = 1.0
QUANTILE = 0.95
WAIT_SECONDS_MAX = 86_400.0


@click.command(cls=Verb)
@trace_options
@seconds_option(
    "--wait", "wait_seconds", within=(0, WAIT_SECONDS_MAX), default=WAIT_SECONDS,
    about="How long a job may wait for a worker.",
)  # fmt: skip
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
    worker-seconds. Says how far the model was off in past hours. Changes nothing.
    """
    settings = cli.of_tenant(cli.load().settings)
    asked, model = where.pop("nodes"), known_of(settings)
    trace = read_trace(cli, settings, **where)
    model = attrs.evolve(model, nodes=asked or trace.nodes)
    with live_line(terminal=sys.stderr) as line:

        def progress(count: int) -> None:
            line.show(f"simulation {count} of at most {SIMULATIONS_MAX}")

        advice = search(trace, model, Aim(quantile, wait_seconds), progress)
    if where["source"] is None:
        hours = in_store(settings, lambda engine: engine.journal.hours(None, None, HOURS_MAX))
        advice = attrs.evolve(advice, confidence=confidence_of(hours))
    cli.show(
        [advice_object(advice, trace, model, settings.tenant)],
        lambda: advice_lines(advice, trace, model, settings.tenant),
    )


def known_of(settings: Settings) -> ModelSettings:
    """Complains where nothing would ever run."""
    found = model_settings(settings, catalog_of(settings, os.environ))
    policy = found.policy
    if policy.mode != "active" and not policy.default_count:
        what = f'with scaling.mode = "{policy.mode}" nobody is hired'
        advice = "give --set scaling.mode=active before the verb"
        raise Complaint(Exit.USAGE, f"{what}, and with default_count = 0 no job starts", advice)
    return found


def read_trace(
    cli: CommandLine, settings: Settings, source: TextIO | None, since: Since | None
) -> Trace:
    """Complains if there is no trace."""
    reader, found = TraceReader(), None
    if source is None:
        _from_store(settings, reader, since)
    else:
        first = source.readline()
        lines = chain([first], source)
        if is_csv(first):
            found = _from_csv(source.name, lines, since)
        else:
            _from_file(batches_of(source, cli.tenant, lines), reader, since)
    trace = found or reader.trace
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
    async def work(engine: Engine) -> None:
        newest = await order_all(engine.events)
        start = await position_since(engine, since, newest)
        async for page in pages_between(engine.events, TRACED, start, newest):
            reader.take(page)
            if reader.is_full:
                return

        if (found := reader.trace) is not None:
            ends_at = found.begun_at + timedelta(seconds=found.span_seconds)
            journal = await engine.journal.read(found.begun_at, ends_at, JOURNAL_ROWS_MAX)
            reader.take_journal(journal)

    in_store(settings, work)


def _from_csv(name: str, lines: Iterable[str], since: Since | None) -> Trace | None:
    if since is not None and not isinstance(since, datetime):
        raise click.UsageError("with CSV, --since takes a time only")
    try:
        return trace_of_rows(rows_of(lines), since)
    except InvalidTrace as error:
        advice = f"it must have the columns {', '.join(FIELDS)}"
        raise Complaint(Exit.USAGE, f"{name}: {error}", advice) from None


def _from_file(batches: Iterable[list[Event]], reader: TraceReader, since: Since | None) -> None:
    if isinstance(since, float):
        raise click.UsageError("with a file, --since takes a position or a time only")
    for batch in batches:
        if isinstance(since, datetime):
            reader.take(one for one in batch if one.at >= since)
        else:
            reader.take(one for one in batch if one.id > (since or 0))
        if reader.is_full:
            return


FIRST, SECOND = "present", "proposed"
NOT_KNOWN = "-"


@attrs.frozen
class Comparison:
    """Runs of one trace under the present settings and, if given, the proposed ones."""

    trace: Trace
    settings: Sequence[ModelSettings]
    runs: Sequence[Run]

    @property
    def span_seconds(self) -> float:
        return max(run.ended_seconds for run in self.runs)

    @property
    def figures(self) -> list[Figures]:
        pairs = zip(self.settings, self.runs, strict=True)
        found = [figures_of(self.trace, settings, run) for settings, run in pairs]
        return [one.over(self.span_seconds) for one in found]


def comparison_object(found: Comparison, tenant: str) -> dict[str, Any]:
    whole: dict[str, Any] = {"tenant": tenant, "trace": trace_object(found.trace), SECOND: None}
    runs = zip((FIRST, SECOND), found.settings, found.figures, strict=False)
    for name, settings, figures in runs:
        whole[name] = {"settings": settings_object(settings), **figures_object(figures)}
    changed = changed_settings(found.settings[0], found.settings[-1])
    whole["changed"] = {name: {"from": a, "to": b} for name, (a, b) in changed.items()}
    return whole


def comparison_lines(found: Comparison) -> list[str]:
    changed = changed_settings(found.settings[0], found.settings[-1])
    changes = [f"proposed: {name} {before} -> {after}" for name, (before, after) in changed.items()]
    blank = [""] if changes else []
    return [*trace_lines(found.trace), *blank, *changes, "", *_table(found), "", *_chart(found)]


_ROWS: tuple[tuple[str, Callable[[Figures], str]], ...] = (
    ("crew mean", lambda one: f"{one.crew_mean:.1f}"),
    ("crew most", lambda one: str(one.crew_most)),
    ("worker-seconds", lambda one: count_text(round(one.worker_seconds))),
    ("idle", lambda one: f"{one.idle_share * 100:.0f} %"),
    ("hired", lambda one: count_text(one.hired)),
    ("retired", lambda one: count_text(one.retired)),
    ("turns per hour", lambda one: f"{one.turns_per_hour:.1f}"),
    ("longest queue", lambda one: count_text(one.longest_queue)),
)


def _table(found: Comparison) -> list[str]:
    shown, trace = found.figures, found.trace
    rows = [("attempts", *[count_text(len(trace))] * (len(shown) + 1))]
    for name, real in waits_of(trace.waits)._asdict().items():
        was = duration_text(real) if trace.waits else NOT_KNOWN
        waits = (duration_text(getattr(one.waits, name)) for one in shown)
        rows.append((f"wait {name}", was, *waits))
    busy = (count_text(one.busy_most) for one in shown)
    rows.append(("busy most", count_text(trace.most_at_once), *busy))
    rows += [(name, NOT_KNOWN, *(cell(one) for one in shown)) for name, cell in _ROWS]
    heads = ("", "as it was", *(FIRST, SECOND)[: len(shown)])
    return table(heads, rows, right=frozenset(range(1, len(heads))))


def _chart(found: Comparison) -> list[str]:
    shown, span = found.figures, found.span_seconds
    highest = max(one.crew_most for one in shown), max(one.longest_queue for one in shown)
    lines: list[str] = []
    for name, run in zip((FIRST, SECOND), found.runs, strict=False):
        lines += chart_lines(name, run, span, highest)
    return [*lines, scale_line(span)]


COLUMNS = 60


def chart_lines(name: str, run: Run, span_seconds: float, highest: tuple[int, int]) -> list[str]:
    """Crew and queue, each the maximum in a column's time. `highest`: values of a full block."""
    crew, queue = crew_columns(run, span_seconds), queue_columns(run, span_seconds)
    return [
        f"{name:<8} crew   {bars(crew, highest[0])}  most {max(crew)}",
        f"{'':<8} queue  {bars(queue, highest[1])}  most {max(queue)}",
    ]


def scale_line(span_seconds: float) -> str:
    end = duration_text(span_seconds)
    return f"{'':<8}        0{end:>{COLUMNS - 1}}"


def crew_columns(run: Run, span_seconds: float) -> list[int]:
    columns = [0] * COLUMNS
    ends = [at for at, _ in run.sizes[1:]] + [span_seconds]
    for (since, size), until in zip(run.sizes, ends, strict=True):
        first, last = _column(since, span_seconds), _column(until, span_seconds)
        columns[first : last + 1] = [max(size, one) for one in columns[first : last + 1]]
    return columns


def queue_columns(run: Run, span_seconds: float) -> list[int]:
    columns = [0] * COLUMNS
    for stretch, peak in enumerate(run.queue_peaks):
        column = _column(stretch * run.stretch_seconds, span_seconds)
        columns[column] = max(columns[column], peak)
    return columns


def _column(moment: float, span_seconds: float) -> int:
    if span_seconds <= 0:
        return 0
    return min(COLUMNS - 1, int(moment * COLUMNS / span_seconds))
