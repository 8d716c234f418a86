""""""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

import click

from musterd.console.command import CommandLine, Verb
from musterd.console.opening import in_store
from musterd.console.output import Complaint, Exit, print_json, say
from musterd.console.verbs.events import Since, read_since

if TYPE_CHECKING:
    from musterd.console.verify.judge import Judge
    from musterd.store.engine import Engine


EVENTS_AT_ONCE = 5_000  # events judged at once
NEEDS_STORE = "needs the store"


@click.command(cls=Verb)
@click.option(
    "--file",
    "source",
    type=click.File(encoding="utf-8", errors="replace"),
    metavar="FILE|-",
    help="Read a log from `musterd events --since 0 --json` instead of the store.",
)
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
    if cli.json:
        print_json(verdict_object(judge, tenant))
    else:
        for line in verdict_lines(judge):
            say(line)
    context.exit(Exit.DONE if judge.docket.holds else Exit.UNSUCCESSFUL)


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
    from itertools import islice

    from musterd.console.log_reading import InvalidLog, events_of
    from musterd.console.verify.rules import Rule

    if not (since is None or isinstance(since, int)):
        raise click.UsageError("with a file, --since takes a position only")
    judge.start_behind(since or 0)
    events = (one for one in events_of(source, tenant) if one.id > (since or 0))
    try:
        while stretch := list(islice(events, EVENTS_AT_ONCE)):
            judge.take(stretch)
    except InvalidLog as error:
        advice = "it must be as `musterd events --since 0 --json` writes it"
        raise Complaint(Exit.USAGE, f"{source.name}: {error}", advice) from None
    for rule in (Rule.TABLE, Rule.COUNTS):
        judge.docket.unchecked[rule] = NEEDS_STORE
