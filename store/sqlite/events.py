"""The log of events: with one writer at a time it is in order as written. What an audit reads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import trio

from musterd.store.events import (
    ALL_EVENTS,
    PAGE_EVENTS_MAX,
    READ_AT_ONCE,
    ROWS_AT_ONCE,
    AuditRow,
    Event,
    EventBounds,
    EventFilter,
    EventPage,
    NewEvent,
    Tally,
    fits,
    wants_type,
)
from musterd.store.lifecycle import JobState
from musterd.store.sqlite import rows
from musterd.store.sqlite.database import Database, Part, called
from musterd.store.sqlite.job_events import log_row


def record(database: Database, events: Sequence[NewEvent]) -> None:
    with database.writing("recording events") as now:
        for event in events:
            log_row(database, now, event.type, 1, {"common": json.dumps(dict(event.data))})


def newest(database: Database) -> int:
    with database.reading("looking at the log of events"):
        return _newest(database)


def read(
    database: Database,
    after: int,
    which: EventFilter = ALL_EVENTS,
    *,
    rows_max: int = READ_AT_ONCE,
) -> EventPage:
    events: list[Event] = []
    looked_at = 0
    with database.reading("reading events"):
        newest = _newest(database)
        position = max(after, newest)
        for row in database.execute("read_events", {"after": after, "count": rows_max}):
            position, size = row[0], row[3]
            skipped = max(after - (position - size), 0)
            if wants_type(which, row[2]):
                events += [one for one in _unfolded(row, skipped) if fits(one, which)]
            looked_at += size - skipped
            if looked_at >= PAGE_EVENTS_MAX:
                break
    return EventPage(events, position, more=position < newest)


def bounds(database: Database) -> EventBounds:
    with database.reading("looking at the log of events"):
        return EventBounds(*database.rows("event_bounds")[0])


def trim(database: Database, keep_seconds: float, rows_max: int) -> int:
    with database.writing("trimming the log of events") as now:
        oldest = now - rows.microseconds(keep_seconds)
        return database.execute("trim_events", {"count": rows_max, "oldest": oldest}).rowcount


def _newest(database: Database) -> int:
    newest: int = database.rows("newest_event")[0][0]
    return newest


def _unfolded(row: rows.Row, skipped: int) -> Iterator[Event]:
    """The events of a row of the log, but for those at its beginning that were read before."""
    last, at, type_, size, jobs, common = row
    moment = rows.moment_at(at)
    about = json.loads(jobs) if jobs is not None else [(None, None, None, None, None)]
    shared: dict[str, Any] = json.loads(common) if common is not None else {}
    for place in range(skipped, size):
        job_id, kind, target, attempt, own = about[place]
        data = {} if attempt is None else {"attempt": attempt}
        data |= {**shared, **(own or {})}
        yield Event(last - size + 1 + place, moment, type_, job_id, kind, target, data)


def _rows(database: Database, after_id: int) -> Sequence[AuditRow]:
    with database.reading("reading jobs"):
        found = database.rows("audit_rows", {"after": after_id, "count": ROWS_AT_ONCE})
    return [AuditRow(id_, JobState(state), attempt) for id_, state, attempt in found]


def _tally(database: Database) -> Tally:
    with database.reading("counting the rows of jobs"):
        kept: dict[str, int] = dict(database.rows("counts"))
        ((newest,),) = database.rows("newest_event")
        counted = {JobState(state): number for state, number in database.rows("audit_tally")}
    by_state = {state: kept[state] for state in JobState}
    return Tally(newest, (), by_state, counted, kept["enqueued"])


class SqliteEvents(Part):
    """See `store.events` for what each method promises."""

    record = called(record)
    order = called(newest)
    read = called(read)
    bounds = called(bounds)
    trim = called(trim)


class SqliteAudit(Part):
    """See `store.events.Audit` for what each method promises."""

    rows = called(_rows)
    tally = called(_tally)

    async def faults(self, seconds: float | None = None) -> None:
        del seconds
        await trio.lowlevel.checkpoint()
