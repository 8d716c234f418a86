"""`musterd events`: what has happened and what happens; reads the log from a store or a file."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any, TextIO, TypeVar, cast

import click
import trio

from musterd.console.command import (
    CommandLine,
    Verb,
    kind_and_target_options,
    option_reader,
)
from musterd.console.output import Complaint, Exit, StoreAwayNotice, coloured, print_json, say
from musterd.store.engine import Engine
from musterd.store.errors import StoreUnavailable
from musterd.store.event_pages import order_all, pages_between, position_at
from musterd.store.event_types import event_object, event_type, event_words
from musterd.store.events import Event, EventFilter, EventLog, EventPage
from musterd.store.opening import in_store
from musterd.store.times import AGO, delay_of, past_of
from musterd.store.words import one_line, time_text

LIMIT_DEFAULT = 50
LIMIT_FOLLOWING = 10
LIMIT_MAX = 1_000_000
TYPE_WIDTH, JOB_WIDTH = 19, 9
_POSITION = re.compile(r"[0-9]{1,18}", re.ASCII)

Since = int | float | datetime  # a position, seconds before now, a moment


def _since_of(text: str) -> Since:
    """Reads a position, or a time as `past_of` does; raises ValueError."""
    if _POSITION.fullmatch(text):
        return int(text)
    if AGO.fullmatch(text):
        return delay_of(text.removeprefix("-"))
    return past_of(text, datetime.now(UTC))


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
        newest = await order_all(log)
        start = await position_since(engine, since, newest)
        async for found in _past(log, wanted, most, start, newest):
            show(found)
            count += len(found)
        if follow:
            away = StoreAwayNotice()
            async for page in events_to_come(log, wanted, newest, away):
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
        yield [one for one in await newest_events(log, which, most, newest) if one.id > start]
        return
    async for page in pages_between(log, which, start, newest):
        yield page


async def position_since(engine: Engine, since: Since | None, newest: int) -> int:
    if since is None or isinstance(since, int):
        return since or 0
    moment = since
    if isinstance(moment, float):
        moment = datetime.now(UTC) - timedelta(seconds=moment)
    return await position_at(engine.events, moment, newest)


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


F = TypeVar("F", bound=Callable[..., Any])
EVENTS_AT_ONCE = 5_000  # in a batch from a file
WINDOW = 2_000  # positions searched first, backwards
WINDOW_GROWTH = 4
LOOK_SECONDS = 0.2
AWAY_SECONDS = 1.0


async def newest_events(
    log: EventLog, which: EventFilter, limit: int, newest: int
) -> Sequence[Event]:
    """The last matching events up to `newest`, oldest first."""
    oldest = (await log.bounds()).oldest
    found: deque[Event] = deque(maxlen=limit)
    end, window = newest, WINDOW
    while limit and end >= oldest and len(found) < limit:
        start = max(oldest - 1, end - window, 0)
        earlier: deque[Event] = deque(maxlen=limit - len(found))
        async for events in pages_between(log, which, start, end):
            earlier.extend(events)
        found.extendleft(reversed(earlier))
        end, window = start, window * WINDOW_GROWTH
        if start == 0:
            break
    return list(found)


async def events_to_come(
    log: EventLog, which: EventFilter, position: int, away: StoreAwayNotice
) -> AsyncGenerator[EventPage]:
    """Pages after a position, then of new events, forever. Waits while the store is away."""
    while True:
        pause = LOOK_SECONDS
        try:
            await log.order()
            page = await log.read(position, which)
        except StoreUnavailable as error:
            away.say(str(error))
            pause = AWAY_SECONDS
        else:
            away.is_back()
            position = max(position, page.position)
            yield page
            if page.more:
                continue
        await trio.sleep(pause)


ID_MAX = 2**63 - 1


class InvalidLog(ValueError):
    """The input is not an event log; says which line is wrong, and how."""


def batches_of(
    source: TextIO, tenant: str | None, lines: Iterable[str] | None = None
) -> Iterator[list[Event]]:
    """The events of a file, in batches. Complains if it is not an event log. `lines`: all of it, if
    some have been read.
    """
    events = events_of(source if lines is None else lines, tenant)
    try:
        while batch := list(islice(events, EVENTS_AT_ONCE)):
            yield batch
    except InvalidLog as error:
        advice = "it must be as `musterd events --since 0 --json` writes it"
        raise Complaint(Exit.USAGE, f"{source.name}: {error}", advice) from None


def source_option(flag: str) -> Callable[[F], F]:
    return click.option(
        flag,
        "source",
        type=click.File(encoding="utf-8", errors="replace"),
        metavar="FILE|-",
        help="Read a log from `musterd events --since 0 --json` instead of the store.",
    )


def events_of(lines: Iterable[str], tenant: str | None) -> Iterator[Event]:
    """The events of one tenant; None = all must be of the same. Skips lines whose `record` is not
    "event", as in histories of the tests' checker. Raises InvalidLog.
    """
    seen = tenant
    for number, line in enumerate(lines, start=1):
        if line.isspace():
            continue
        fields = _parse_line(number, line)
        if fields.get("record", "event") != "event":
            continue
        whose = fields.get("tenant", seen)
        if seen is not None and whose != seen:
            if tenant is not None:
                continue
            raise InvalidLog(f"line {number} is of tenant {whose!r}, others are of {seen!r}")
        seen = whose
        yield _parse_event(number, fields)


def _parse_line(number: int, line: str) -> Mapping[str, Any]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidLog(f"line {number} is no JSON: {error}") from None
    if not isinstance(fields, dict):
        raise InvalidLog(f"line {number} is no object")
    return cast("Mapping[str, Any]", fields)


def _parse_event(number: int, fields: Mapping[str, Any]) -> Event:
    for name, is_it, wanted in FIELDS:
        if not is_it(fields.get(name)):
            raise InvalidLog(f"line {number}: `{name}` is no {wanted}")
    found: Sequence[Any] = [fields.get(name) for name, _, _ in FIELDS]
    id_, type_, job_id, kind, target, data = found
    return Event(
        id_, _parse_time(number, fields.get("at")), type_, job_id, kind, target, data or {}
    )


def _is_id(value: object) -> bool:
    return type(value) is int and 0 < value <= ID_MAX


FIELDS: Sequence[tuple[str, Callable[[object], bool], str]] = (
    ("id", _is_id, "position"),
    ("type", lambda value: isinstance(value, str), "text"),
    ("job_id", lambda value: value is None or _is_id(value), "id"),
    ("kind", lambda value: value is None or isinstance(value, str), "text"),
    ("target", lambda value: value is None or isinstance(value, str), "text"),
    ("data", lambda value: value is None or isinstance(value, dict), "object"),
)


def _parse_time(number: int, text: object) -> datetime:
    try:
        moment = datetime.fromisoformat(text if isinstance(text, str) else "")
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InvalidLog(f"line {number}: `at` is no time with a zone")
    return moment
