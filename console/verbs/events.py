"""`musterd events`: what has happened, and what happens."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import attrs
import click

from musterd.console.command import CommandLine, Verb, read_delay, read_moment, read_target
from musterd.console.completers import complete_kinds, complete_targets
from musterd.console.opening import in_store
from musterd.console.output import coloured, complain, print_json, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from musterd.store.engine import Engine
    from musterd.store.events import Event, EventFilter

LIMIT_DEFAULT = 50
LIMIT_FOLLOWING = 10
LIMIT_MAX = 1_000_000
TYPE_WIDTH, JOB_WIDTH = 19, 9
_POSITION = re.compile(r"[0-9]{1,18}", re.ASCII)
_DELAY = re.compile(r"[0-9.]+[a-z]+", re.ASCII)

Since = int | float | datetime  # a position, seconds before now, a moment


def read_types(
    _context: click.Context, _option: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    from musterd.store.event_names import event_type

    try:
        return tuple(event_type(text) for text in given)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def read_since(context: click.Context, option: click.Parameter, text: str | None) -> Since | None:
    """Reads `10m`, a position, or an RFC 3339 time; raises click.BadParameter."""
    if text is None:
        return None
    if _POSITION.fullmatch(text):
        return int(text)
    if _DELAY.fullmatch(text):
        return read_delay(context, option, text)
    return read_moment(context, option, text)


@attrs.frozen
class Wanted:
    """What a person wants to see."""

    which: EventFilter
    since: Since | None
    limit: int | None
    follow: bool
    as_json: bool
    tenant: str

    @property
    def most(self) -> int | None:
        """How many of those that have happened; None = all of them."""
        if self.limit is not None or self.since is not None:
            return self.limit
        return LIMIT_FOLLOWING if self.follow else LIMIT_DEFAULT


@click.command(cls=Verb)
@click.option("--follow", is_flag=True, help="Keep following new events until interrupted.")
@click.option(
    "--job", "job_id", type=click.IntRange(min=1), metavar="ID", help="Only events of this job."
)
@click.option(
    "--type",
    "types",
    multiple=True,
    callback=read_types,
    metavar="TYPE",
    help="Only this type (job.failed) or group (job); may be repeated.",
)
@click.option("--kind", shell_complete=complete_kinds, help="Only events of jobs of this kind.")
@click.option(
    "--target",
    callback=read_target,
    shell_complete=complete_targets,
    help="Only events of jobs of this target.",
)
@click.option(
    "--since", callback=read_since, metavar="10m|POSITION|TIME", help="Only newer events."
)
@click.option(
    "--limit",
    type=click.IntRange(0, LIMIT_MAX),
    help=f"At most this many, the newest; {LIMIT_DEFAULT} unless --since is given.",
)
@click.pass_obj
def events(
    cli: CommandLine,
    /,
    follow: bool,
    job_id: int | None,
    types: tuple[str, ...],
    **options: object,
) -> None:
    """Show events, newest last."""
    from musterd.store.events import EventFilter

    kind, target = options["kind"], options["target"]
    which = EventFilter(
        job_id, frozenset(types), kind if isinstance(kind, str) else None,
        target if isinstance(target, str) else None,
    )  # fmt: skip
    settings = cli.settings()
    since, limit = options["since"], options["limit"]
    wanted = Wanted(
        which, since if isinstance(since, Since) else None,
        limit if isinstance(limit, int) else None, follow, cli.json, settings.tenant,
    )  # fmt: skip

    async def work(engine: Engine) -> None:
        await _show(engine, wanted)

    try:
        in_store(settings, work)
    except KeyboardInterrupt:
        if not follow:
            raise
        # Nobody follows for ever: this is how it ends.


async def _show(engine: Engine, wanted: Wanted) -> None:
    from musterd.console.log_reading import events_to_come, order_all

    newest = await order_all(engine.events)
    await _show_past(engine, wanted, newest)
    if not wanted.follow:
        return
    away = Away()
    async for page in events_to_come(engine.events, wanted.which, newest, away.say):
        away.is_back()
        show_events(page.events, wanted.tenant, as_json=wanted.as_json)


async def _show_past(engine: Engine, wanted: Wanted, newest: int) -> None:
    from musterd.console.log_reading import newest_events, pages_between

    start = await position_since(engine, wanted.since, newest)
    count = 0
    if wanted.most is not None:
        found = await newest_events(engine.events, wanted.which, wanted.most, newest)
        found = [one for one in found if one.id > start]
        show_events(found, wanted.tenant, as_json=wanted.as_json)
        count = len(found)
    else:
        async for page in pages_between(engine.events, wanted.which, start, newest):
            show_events(page, wanted.tenant, as_json=wanted.as_json)
            count += len(page)
    if not (count or wanted.follow or wanted.as_json):
        say("no such events")


async def position_since(engine: Engine, since: Since | None, newest: int) -> int:
    """Gives the position behind which everything lies that is newer."""
    from musterd.console.log_reading import position_at

    if since is None or isinstance(since, int):
        return since or 0
    moment = since
    if isinstance(moment, float):
        moment = datetime.now(UTC) - timedelta(seconds=moment)
    return await position_at(engine.events, moment, newest)


def show_events(found: Sequence[Event], tenant: str, *, as_json: bool) -> None:
    """One line each."""
    from musterd.store.event_report import event_object

    for one in found:
        if as_json:
            print_json(event_object(one, tenant))
        else:
            say(event_line(one))


def event_line(event: Event) -> str:
    """Gives an event for people, in the colour of the state that it speaks of."""
    from musterd.store.event_report import event_words
    from musterd.store.shown import time_text
    from musterd.store.words import one_line

    at = time_text(event.at) or ""
    job = "" if event.job_id is None else f"job {event.job_id}"
    head = f"{at[:10]} {at[11:23]}Z  {one_line(event.type):<{TYPE_WIDTH}}  {job:<{JOB_WIDTH}}"
    parts = (head.rstrip() if not job else head, one_line(event.kind or ""), event_words(event))
    line = "  ".join(part for part in parts if part).rstrip()
    group, _, what = event.type.partition(".")
    return coloured(what, line) if group == "job" else line


class Away:
    """Says once that the store is away, each time that it is."""

    def __init__(self) -> None:
        self._said = False

    def say(self, message: str) -> None:
        if not self._said:
            self._said = True
            complain(f"the store is not available, waiting for it: {message}")

    def is_back(self) -> None:
        self._said = False
