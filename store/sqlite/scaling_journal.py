"""The journal of decisions of an engine on SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from uuid import UUID

from musterd.store.compared_hours import ComparedHour, columns_of, first_hour, hour_of
from musterd.store.scaling_journal import READ_MAX, JournalRun, fields_of, first_at
from musterd.store.sqlite import rows
from musterd.store.sqlite.database import Database, Part, called


def write(database: Database, runs: Sequence[JournalRun]) -> None:
    with database.writing("writing the scaling journal"):
        for (node_id, node), some in groupby(runs, attrgetter("node_id", "node")):
            text = json.dumps([_row(run) for run in some])
            params = {"node_id": node_id.bytes, "node": node, "runs": text}
            database.execute("write_journal", params)


def read(
    database: Database, since: datetime | None, until: datetime | None, limit: int
) -> list[JournalRun]:
    params = {
        "first": _stamp(first_at(since)),
        "since": _stamp(since),
        "until": _stamp(until),
        "count": min(limit, READ_MAX),
    }
    with database.reading("reading the scaling journal"):
        found = database.rows("read_journal", params)
    return [_run(row) for row in reversed(found)]


def write_hour(database: Database, hour: ComparedHour) -> None:
    with database.writing("writing a compared hour"):
        database.execute("write_hour", {"at": rows.stamp(hour.at), **columns_of(hour)})


def hours(
    database: Database, since: datetime | None, until: datetime | None, limit: int
) -> list[ComparedHour]:
    span = {
        "first": _stamp(first_hour(since)),
        "until": _stamp(until),
        "count": min(limit, READ_MAX),
    }
    with database.reading("reading compared hours"):
        found = database.rows("read_hours", span)
    return [hour_of(rows.moment_at(at), values) for at, *values in reversed(found)]


def forget(database: Database, age_seconds: float, batch: int) -> int:
    with database.writing("forgetting decisions") as now:
        params = {"before": now - rows.microseconds(age_seconds), "batch": batch}
        forgotten = (
            database.execute(name, params).rowcount for name in ("forget_hours", "forget_journal")
        )
        return sum(forgotten)


def _stamp(moment: datetime | None) -> int | None:
    return None if moment is None else rows.stamp(moment)


def _row(run: JournalRun) -> dict[str, object]:
    times = {"at": rows.stamp(run.at), "until": rows.stamp(run.until), "ticks": run.ticks}
    return {**run.fields, **times}


def _run(row: rows.Row) -> JournalRun:
    node_id, node, at, until, ticks, *fields = row
    times = rows.moment_at(at), rows.moment_at(until)
    return JournalRun(UUID(bytes=node_id), node, *times, ticks, fields_of(fields))


class SqliteScalingJournal(Part):
    """See `store.scaling_journal.ScalingJournal`."""

    write = called(write)
    read = called(read)
    write_hour = called(write_hour)
    hours = called(hours)
    forget = called(forget)
