"""`musterd jobs`, `job ID` and `why ID`: which jobs there are, how one fared, why it waits."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from musterd.catalog.kinds import Catalog
from musterd.config.settings import Settings
from musterd.console.command import (
    CommandLine,
    Verb,
    kind_and_target_options,
    moment_option,
    read_text,
)
from musterd.console.completers import complete_jobs
from musterd.console.daemon_client import other_store
from musterd.console.output import (
    Columns,
    Complaint,
    Exit,
    LiveLine,
    StoreAwayNotice,
    coloured,
    complain,
    print_json,
    say,
    table_of,
)
from musterd.console.verbs.events import events_to_come, show_events
from musterd.console.verbs.job_log import LogReader, LogShower, in_order, show_log
from musterd.store.engine import Engine
from musterd.store.errors import StoreUnavailable
from musterd.store.event_pages import order_all, position_at
from musterd.store.events import EventFilter
from musterd.store.job_log import LogLine
from musterd.store.jobs import JobFilter, JobRecord
from musterd.store.lifecycle import ENDED, LEASED, JobState
from musterd.store.opening import engine_for, in_store
from musterd.store.phases import PhaseState
from musterd.store.report import error_line, job_object, max_attempts, overall, report_text
from musterd.store.searching import Reach, Search
from musterd.store.why import why as conclude
from musterd.store.why import why_object, why_text
from musterd.store.words import cut, duration_text, one_line, plural, time_text

LIMIT_MAX = 100_000


@click.command(cls=Verb)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([state.value for state in JobState]),
    help="Only jobs in this state; may be repeated.",
)
@kind_and_target_options("jobs")
@click.option("--key", callback=read_text, help="Only jobs with this deduplication key.")
@click.option(
    "--error",
    callback=read_text,
    metavar="TEXT",
    help="Only jobs whose error (type: message) has this text in it, in whatever case.",
)
@moment_option("--since", "Only jobs made since then: 03:12 (UTC), -2h or RFC 3339.")
@moment_option("--until", "Only jobs made before then.")
@click.option(
    "--time",
    type=click.Choice(("made", "ended")),
    default="made",
    help="With `ended`, --since and --until are about when jobs ended.",
)
@click.option(
    "--before", type=click.IntRange(min=1), metavar="ID", help="Only jobs with smaller ids."
)
@click.option("--limit", type=click.IntRange(1, LIMIT_MAX), default=50, show_default=True)
@click.pass_obj
def jobs(
    cli: CommandLine, /, limit: int, states: tuple[str, ...], key: str | None, time: str,
    before: int | None, **wanted: Any,
) -> None:  # fmt: skip
    """List jobs, newest first.

    A search for what is rare ends after 100,000 jobs, and says how far it came and how to go on.
    """
    settings = cli.settings()
    catalog = cli.catalog_if_sound(settings)
    which = JobFilter(
        tuple(map(JobState, states)), before_id=before, dedup_key=key, by_end=time == "ended",
        **wanted,
    )  # fmt: skip

    async def find(engine: Engine) -> tuple[list[JobRecord], Reach | None]:
        search = Search(engine.jobs, which)
        return await search.next(limit), search.reach

    found, reach = in_store(settings, find)
    objects = (job_object(one, settings.tenant, catalog.budget_of(one.kind)) for one in found)
    columns = _columns(catalog)
    cli.show(objects, lambda: table_of(found, columns, "no such jobs", lambda one: one.state.value))
    if reach is not None:
        said = f"{plural(reach.looked, 'job')} looked at, back to {time_text(reach.made_at)}"
        complain(f"musterd: {said}; older ones may match: add --before {reach.before_id}")


@click.command(cls=Verb)
@click.argument("job_id", metavar="ID", type=click.IntRange(min=1), shell_complete=complete_jobs)
@click.option("--follow", is_flag=True, help="Follow its events and its log until it ends.")
@click.option("--log", is_flag=True, help="Show its log alone; with --follow, as it grows.")
@click.pass_context
def job(context: click.Context, /, job_id: int, follow: bool, log: bool) -> None:
    """Show one job: timings, attempts, result, log."""
    cli: CommandLine = context.obj
    settings = cli.settings()

    async def show(engine: Engine) -> JobRecord | None:
        if log:
            is_there = await show_log(engine, job_id, follow=follow, as_json=cli.json)
            return await engine.jobs.get(job_id) if is_there else None
        if follow:
            return await follow_job(engine, job_id, settings.tenant, as_json=cli.json)
        return await engine.jobs.get(job_id)

    record = in_store(settings, show)
    if record is None:
        raise _no_such_job(job_id, settings)
    if follow:
        context.exit(Exit.DONE if record.state is JobState.SUCCEEDED else Exit.UNSUCCESSFUL)
    if not log:
        _show_report(cli, settings, record)


def _show_report(cli: CommandLine, settings: Settings, record: JobRecord) -> None:
    budget = cli.catalog_if_sound(settings).budget_of(record.kind)
    if cli.json:
        print_json(job_object(record, settings.tenant, budget))
    else:
        _say_report(record.state, report_text(record, datetime.now(UTC), budget))


def _say_report(state: JobState, text: str) -> None:
    head, _, rest = text.partition("\n")
    say(coloured(state.value, head))
    say(rest)


def _no_such_job(job_id: int, settings: Settings) -> Complaint:
    advice = other_store(settings, engine_for(settings).where) or "`musterd jobs` lists them"
    return Complaint(Exit.UNKNOWN, f"there is no job {job_id}", advice)


def _columns(catalog: Catalog) -> Columns[JobRecord]:
    now = datetime.now(UTC)

    def tries(one: JobRecord) -> str:
        most = max_attempts(one, catalog.budget_of(one.kind))
        return str(one.attempt) if most is None else f"{one.attempt}/{most}"

    return {
        ">id": lambda one: str(one.id),
        "kind": lambda one: one_line(one.kind),
        "state": lambda one: one.state.value,
        ">attempt": tries,
        ">age": lambda one: duration_text(max(0.0, (now - one.created_at).total_seconds())),
        "": lambda one: _remark(one, now),
    }


def _remark(record: JobRecord, now: datetime) -> str:
    if record.state is JobState.QUEUED and record.run_at > now:
        due = f"due in {duration_text((record.run_at - now).total_seconds())}"
        said = error_line(record.error)
        return cut(f"{due}, after {said}" if said else due, 100)
    if record.state in LEASED:
        return one_line(f"on {record.node}")
    return cut(error_line(record.error) or one_line(record.reason or ""), 100)


@click.command(cls=Verb)
@click.argument("job_id", metavar="ID", type=click.IntRange(min=1), shell_complete=complete_jobs)
@click.pass_obj
def why(cli: CommandLine, job_id: int) -> None:
    """Explain why a job does not run, and what to do about it."""
    settings = cli.settings()
    seen = in_store(settings, lambda engine: engine.jobs.why_facts(job_id))
    if seen is None:
        raise _no_such_job(job_id, settings)
    answer = conclude(seen)
    if cli.json:
        print_json(why_object(answer, settings.tenant))
    else:
        _say_report(seen.job.state, why_text(answer))


MARGIN = timedelta(seconds=1)  # a job may be a little older than its first event


async def follow_job(
    engine: Engine, job_id: int, tenant: str, *, as_json: bool
) -> JobRecord | None:
    """Shows a job's events, log and progress until it ends or is paused; None = no such job."""
    record = await engine.jobs.get(job_id)
    if record is None:
        return None
    newest = await order_all(engine.events)
    position = await position_at(engine.events, record.created_at - MARGIN, newest)
    which, away = EventFilter(job_id=job_id), StoreAwayNotice()
    live = LiveLine(quiet=as_json or not sys.stdout.isatty())
    reader, shower = LogReader(engine, job_id, away), LogShower(job_id, as_json=as_json)
    # The record is read before the log, which then has every event that led to it.
    async for page in events_to_come(engine.events, which, position, away):
        lines = await reader.lines(at_once=bool(page.events))
        if page.events or lines:
            live.done()  # drawn again below, soon
        for one in in_order(page.events, lines):
            if isinstance(one, LogLine):
                shower.show([one])
            else:
                show_events([one], tenant, as_json=as_json)
        if page.more:
            continue
        if record is None or record.state in ENDED or record.state is JobState.PAUSED:
            live.done()
            return record
        record = await _read_again(engine, record, away)
        if record is not None and record.state is JobState.RUNNING:
            live.show(running_line(record))
    raise AssertionError("the log of events does not end")


async def _read_again(engine: Engine, before: JobRecord, away: StoreAwayNotice) -> JobRecord | None:
    try:
        return await engine.jobs.get(before.id)
    except StoreUnavailable as error:
        away.say(str(error))
        return before


CELLS = 20


def progress_bar(percent: int) -> str:
    """`████████░░░░░░░░░░░░ 42 %`; full at 100 only."""
    full = max(0, min(CELLS, percent * CELLS // 100))
    return f"{'█' * full}{'░' * (CELLS - full)} {percent} %"


def progress_words(record: JobRecord) -> str:
    """The job's current phase and its note, if any."""
    running = (one.name for one in record.phases if one.state is PhaseState.RUNNING)
    parts = (next(running, ""), record.progress_note or "")
    return ": ".join(one_line(part) for part in parts if part)


def running_line(record: JobRecord) -> str:
    """`job 7 running  ████░░ 20 %  download: 3 of 15 files`."""
    again = f", attempt {record.attempt}" if record.attempt > 1 else ""
    head = f"job {record.id} {record.state.value}{again}"
    if not record.phases and record.progress is None:
        return f"{head} …"
    return "  ".join(filter(None, (head, progress_bar(overall(record)), progress_words(record))))
