"""Reads the event log from the store, or from the output of `musterd events --json`."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, TextIO, TypeVar, cast

import click
import trio

from musterd.console.output import Complaint, Exit, StoreAwayNotice
from musterd.store.errors import StoreUnavailable
from musterd.store.events import ORDERED_AT_ONCE, Event, EventFilter, EventLog, EventPage

F = TypeVar("F", bound=Callable[..., Any])
EVENTS_AT_ONCE = 5_000  # in a batch from a file
WINDOW = 2_000  # positions searched first, backwards
WINDOW_GROWTH = 4
LOOK_SECONDS = 0.2
AWAY_SECONDS = 1.0


async def order_all(log: EventLog) -> int:
    """Orders all existing drafts; returns the newest position."""
    newest = await log.order()
    grown = ORDERED_AT_ONCE
    while grown >= ORDERED_AT_ONCE:
        before, newest = newest, await log.order()
        grown = newest - before
    return newest


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


async def pages_between(
    log: EventLog, which: EventFilter, start: int, end: int
) -> AsyncGenerator[Sequence[Event]]:
    """Pages of events after `start`, up to `end`."""
    while start < end:
        page = await log.read(start, which)
        yield [one for one in page.events if one.id <= end]
        if not page.more:
            return
        start = page.position


async def position_at(log: EventLog, moment: datetime, newest: int) -> int:
    """A position before everything that happened since `moment`."""
    low, high = max((await log.bounds()).oldest - 1, 0), newest
    while low < high:
        middle = (low + high) // 2
        page = await log.read(middle)
        if page.events and page.events[0].at < moment:
            low = page.events[0].id
        else:
            high = middle
    return low


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


def batches_of(source: TextIO, tenant: str | None) -> Iterator[list[Event]]:
    """The events of a file, in batches. Complains if it is not an event log."""
    events = events_of(source, tenant)
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
