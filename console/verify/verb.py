"""`musterd verify`: whether the log of events, the jobs and the counts are consistent."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

import click

from musterd.console.command import CommandLine, Verb
from musterd.console.log_reading import batches_of, source_option
from musterd.console.opening import in_store
from musterd.console.output import Exit
from musterd.console.verbs.events import Since, read_since

if TYPE_CHECKING:
    from musterd.console.verify.judge import Judge
    from musterd.store.engine import Engine


NEEDS_STORE = "needs the store"


@click.command(cls=Verb)
@source_option("--file")
@click.option(
    "--since", callback=read_since, metavar="10m|POSITION|TIME", help="Only newer events."
)
@click.pass_context
def verify(context: click.Context, /, source: TextIO | None, since: Since | None) -> None:
    """Check that the log of events, the jobs and the counts are consistent.

    Works while daemons run, without disturbing them. Exits 0 if all rules hold, 1 if one is
    violated, 69 if the store cannot be reached.
    """
    from musterd.console.verify.judge import Judge, verdict_lines, verdict_object

    cli: CommandLine = context.obj
    judge = Judge()
    tenant = cli.tenant
    if source is None:
        tenant = _verify_store(cli, judge, since)
    else:
        _verify_file(source, judge, tenant, since)
    cli.show([verdict_object(judge, tenant)], lambda: verdict_lines(judge))
    context.exit(Exit.DONE if judge.findings.holds else Exit.UNSUCCESSFUL)


def _verify_store(cli: CommandLine, judge: Judge, since: Since | None) -> str:
    from musterd.console.log_reading import order_all
    from musterd.console.verbs.events import position_since
    from musterd.console.verify.comparison import Comparison

    async def work(engine: Engine) -> None:
        start = await position_since(engine, since, await order_all(engine.events))
        judge.start_behind(start)
        comparison = Comparison(engine, judge)
        await comparison.follow()
        await comparison.compare()

    settings = cli.settings()
    in_store(settings, work)
    return settings.tenant


def _verify_file(source: TextIO, judge: Judge, tenant: str | None, since: Since | None) -> None:
    from musterd.console.verify.rules import Rule

    if not (since is None or isinstance(since, int)):
        raise click.UsageError("with a file, --since takes a position only")
    judge.start_behind(since or 0)
    for batch in batches_of(source, tenant):
        judge.take(one for one in batch if one.id > (since or 0))
    for rule in (Rule.TABLE, Rule.COUNTS, Rule.PLACES):
        judge.findings.unchecked[rule] = NEEDS_STORE
