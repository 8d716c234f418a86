"""`musterd jobs` and `musterd job ID`: what is there, and what became of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from musterd.catalog.lookup import budget_of
from musterd.console.completers import complete_jobs, complete_kinds, complete_targets
from musterd.console.exits import Complaint, Exit
from musterd.console.given import Given, Verb
from musterd.console.opening import in_store
from musterd.console.out import coloured, print_json, say

if TYPE_CHECKING:
    from musterd.catalog.kinds import Catalog
    from musterd.config.settings import Settings
    from musterd.store.engine import Engine
    from musterd.store.job import JobRecord

STATES = (
    *("pending", "queued", "assigned", "running", "paused"),
    *("succeeded", "failed", "canceled"),
)
LIMIT_MAX = 100_000
TARGET_LENGTH_MAX = 200


def read_target(_context: click.Context, _option: click.Parameter, given: str | None) -> str | None:
    if given is None or 1 <= len(given) <= TARGET_LENGTH_MAX:
        return given
    found = f"found {len(given)} characters"
    raise click.BadParameter(f"{found}, wanted a name of 1 to {TARGET_LENGTH_MAX}")


@click.command(cls=Verb)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES),
    help="Only these; may be repeated.",
)
@click.option("--kind", shell_complete=complete_kinds, help="Only jobs of this kind.")
@click.option(
    "--target",
    callback=read_target,
    shell_complete=complete_targets,
    help="Only jobs of this target.",
)
@click.option("--limit", type=click.IntRange(1, LIMIT_MAX), default=50, show_default=True)
@click.pass_obj
def jobs(
    given: Given, states: tuple[str, ...], kind: str | None, target: str | None, limit: int
) -> None:
    """List jobs, newest first."""
    from musterd.store.job import JobFilter, JobState
    from musterd.store.report import job_object

    settings = given.settings()
    catalog = given.catalog(settings)
    which = JobFilter(tuple(JobState(state) for state in states), kind, limit, target=target)

    async def work(engine: Engine) -> list[JobRecord]:
        return await engine.jobs(which)

    found = in_store(settings, work)
    if given.json:
        for record in found:
            print_json(job_object(record, settings.tenant, budget_of(catalog, record.kind)))
        return
    for line in _lines(found, catalog):
        say(line)


@click.command(cls=Verb)
@click.argument("job_id", metavar="ID", type=click.IntRange(min=1), shell_complete=complete_jobs)
@click.option("--follow", is_flag=True, help="Show what happens to it, until it has ended.")
@click.pass_context
def job(context: click.Context, /, job_id: int, follow: bool) -> None:
    """Show one job: timings, attempts, result."""
    from musterd.store.report import job_object, report_text

    given: Given = context.obj
    settings = given.settings()
    if follow:
        context.exit(_follow(settings, job_id, as_json=given.json))
    catalog = given.catalog(settings)

    async def work(engine: Engine) -> JobRecord | None:
        return await engine.job(job_id)

    record = in_store(settings, work)
    if record is None:
        raise _no_such_job(job_id)
    budget = budget_of(catalog, record.kind)
    if given.json:
        print_json(job_object(record, settings.tenant, budget))
        return
    head, _, rest = report_text(record, datetime.now(UTC), budget).partition("\n")
    say(coloured(record.state.value, head))
    say(rest)


def _follow(settings: Settings, job_id: int, *, as_json: bool) -> Exit:
    from musterd.console.following import follow_job

    async def work(engine: Engine) -> JobRecord | None:
        return await follow_job(engine, job_id, settings.tenant, as_json=as_json)

    record = in_store(settings, work)
    if record is None:
        raise _no_such_job(job_id)
    return Exit.DONE if record.state.value == "succeeded" else Exit.UNSUCCESSFUL


def _no_such_job(job_id: int) -> Complaint:
    return Complaint(Exit.UNKNOWN, f"there is no job {job_id}", "`musterd jobs` lists them")


def _lines(found: list[JobRecord], catalog: Catalog) -> list[str]:
    from musterd.store.words import table

    if not found:
        return ["no such jobs"]
    now = datetime.now(UTC)
    heads = ("id", "kind", "state", "attempt", "age", "")
    rows = [_row(record, now, budget_of(catalog, record.kind)) for record in found]
    first, *rest = table(heads, rows, right=frozenset({0, 3, 4}))
    return [first, *(coloured(r.state.value, line) for r, line in zip(found, rest, strict=True))]


def _row(record: JobRecord, now: datetime, budget: int | None) -> tuple[str, ...]:
    from musterd.store.report import max_attempts
    from musterd.store.words import duration_text, one_line

    most = max_attempts(record, budget)
    tries = str(record.attempt) if most is None else f"{record.attempt}/{most}"
    age = duration_text(max(0.0, (now - record.created_at).total_seconds()))
    kind = one_line(record.kind)
    return (str(record.id), kind, record.state.value, tries, age, _remark(record, now))


def _remark(record: JobRecord, now: datetime) -> str:
    from musterd.store.job import JobState
    from musterd.store.lifecycle import LEASED
    from musterd.store.report import error_line
    from musterd.store.words import cut, duration_text, one_line

    if record.state is JobState.QUEUED and record.run_at > now:
        due = f"due in {duration_text((record.run_at - now).total_seconds())}"
        said = error_line(record.error)
        return cut(f"{due}, after {said}" if said else due, 100)
    if record.state in LEASED:
        return one_line(f"on {record.node}")
    return cut(error_line(record.error) or one_line(record.reason or ""), 100)
