"""`musterd events`: what has happened, and what happens."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import click

from musterd.console import log_reading
from musterd.console.command import (
    CommandLine,
    Verb,
    delay_of,
    kind_and_target_options,
    option_reader,
)
from musterd.console.opening import in_store
from musterd.console.output import StoreAwayNotice, coloured, print_json, say
from musterd.store.engine import Engine
from musterd.store.event_types import event_object, event_type, event_words
from musterd.store.events import Event, EventFilter, EventLog
from musterd.store.words import moment_of, one_line, time_text

LIMIT_DEFAULT = 50
LIMIT_FOLLOWING = 10
LIMIT_MAX = 1_000_000
TYPE_WIDTH, JOB_WIDTH = 19, 9
_POSITION = re.compile(r"[0-9]{1,18}", re.ASCII)
_DELAY = re.compile(r"[0-9.]+[a-z]+", re.ASCII)

Since = int | float | datetime  # a position, seconds before now, a moment


def _since_of(text: str) -> Since:
    """Reads `10m`, a position, or an RFC 3339 time; raises ValueError."""
    if _POSITION.fullmatch(text):
        return int(text)
    return delay_of(text) if _DELAY.fullmatch(text) else moment_of(text)


read_since = option_reader(_since_of)


@click.command(cls=Verb)
@click.option("--follow", is_flag=True, help="Keep following new events until interrupted.")
@click.option(
    "--job", "job_id", type=click.IntRange(min=1), metavar="ID", help="Only events of this job."
)
@click.option(
    "--type",
    "types",
    multiple=True,
    callback=option_reader(lambda texts: tuple(map(event_type, texts))),
    metavar="TYPE",
    help="Only this type (job.failed) or group (job); may be repeated.",
)
@kind_and_target_options("events of jobs")
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
    cli: CommandLine, /, follow: bool, since: Since | None, limit: int | None, **which: Any
) -> None:
    """Show events, newest last."""
    which["types"] = frozenset(which["types"])
    wanted = EventFilter(**which)
    settings = cli.settings()
    show = partial(show_events, tenant=settings.tenant, as_json=cli.json)
    most = limit
    if limit is None and since is None:
        most = LIMIT_FOLLOWING if follow else LIMIT_DEFAULT

    async def work(engine: Engine) -> None:
        log, count = engine.events, 0
        newest = await log_reading.order_all(log)
        start = await position_since(engine, since, newest)
        async for found in _past(log, wanted, most, start, newest):
            show(found)
            count += len(found)
        if follow:
            away = StoreAwayNotice()
            async for page in log_reading.events_to_come(log, wanted, newest, away):
                show(page.events)
        elif not (count or cli.json):
            say("no such events")

    try:
        in_store(settings, work)
    except KeyboardInterrupt:
        if not follow:  # which is how following ends
            raise


async def _past(
    log: EventLog, which: EventFilter, most: int | None, start: int, newest: int
) -> AsyncGenerator[Sequence[Event]]:
    """At most this many, the newest; None = all."""
    if most is not None:
        found = await log_reading.newest_events(log, which, most, newest)
        yield [one for one in found if one.id > start]
        return
    async for page in log_reading.pages_between(log, which, start, newest):
        yield page


async def position_since(engine: Engine, since: Since | None, newest: int) -> int:
    if since is None or isinstance(since, int):
        return since or 0
    moment = since
    if isinstance(moment, float):
        moment = datetime.now(UTC) - timedelta(seconds=moment)
    return await log_reading.position_at(engine.events, moment, newest)


def show_events(found: Sequence[Event], tenant: str, *, as_json: bool) -> None:
    for one in found:
        if as_json:
            print_json(event_object(one, tenant))
        else:
            say(event_line(one))


def event_line(event: Event) -> str:
    """In the colour of the job state that it names."""
    at = time_text(event.at) or ""
    job = "" if event.job_id is None else f"job {event.job_id}"
    head = f"{at[:10]} {at[11:23]}Z  {one_line(event.type):<{TYPE_WIDTH}}  {job:<{JOB_WIDTH}}"
    parts = (head.rstrip() if not job else head, one_line(event.kind or ""), event_words(event))
    line = "  ".join(part for part in parts if part).rstrip()
    group, _, what = event.type.partition(".")
    return coloured(what, line) if group == "job" else line
