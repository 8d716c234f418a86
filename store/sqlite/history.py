"""The past of the queue on SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from musterd.store.history import (
    ADDED_AFTER_SECONDS,
    MARKS_READ,
    ROWS_READ,
    EndedJobs,
    Mark,
    Past,
    QueueLook,
    add_ended,
    kept_seconds,
    past_from,
    steps_at,
)
from musterd.store.sqlite import rows
from musterd.store.sqlite.database import Database, Part, called


def add(database: Database, ended: Sequence[EndedJobs], marks: Sequence[Mark]) -> float:
    with database.writing("adding to the history") as now:
        at = now / rows.SECOND
        steps = steps_at(at - ADDED_AFTER_SECONDS)
        for one in ended:
            for step, begins in steps:
                _add(database, {"step": step, "at": begins, "kind": one.kind}, one)
        for mark in marks:
            database.execute("add_mark", {**mark._asdict(), "at": at})
    return at


def look(database: Database, seen: QueueLook) -> None:
    with database.writing("noting how the queue is") as now:
        for step, begins in steps_at(now / rows.SECOND):
            params = {**seen._asdict(), "step": step, "at": begins}
            database.execute("look_history", params)


def read(
    database: Database, step_seconds: int, since: float, until: float, *, by_kind: bool = True
) -> Past:
    span: rows.Params = {
        "step": step_seconds, "since": since, "until": until, "most": ROWS_READ,
        "by_kind": by_kind,
    }  # fmt: skip
    with database.reading("reading the history"):
        queue = database.rows("queue_history", span)
        kinds = database.rows("kind_history", span)
        marks = database.rows("mark_history", {**span, "most": MARKS_READ})
    return past_from(queue, kinds, marks, _ended)


def trim(database: Database, keep_seconds: float, batch: int) -> int:
    done = 0
    with database.writing("trimming the history") as now:
        at = now / rows.SECOND
        for step, kept in kept_seconds(keep_seconds):
            params = {"step": step, "until": at - kept, "batch": batch}
            for name in ("trim_queue_history", "trim_kind_history"):
                done += database.execute(name, params).rowcount
        old = {"until": at - keep_seconds, "batch": batch}
        done += database.execute("trim_marks", old).rowcount
    return done


def _add(database: Database, place: rows.Params, ended: EndedJobs) -> None:
    for row in database.rows("kind_row", place):
        ended = add_ended(_ended(row), ended)
    spreads = {"waits": json.dumps(list(ended.waits)), "runs": json.dumps(list(ended.runs))}
    database.execute("put_kind_row", {**ended._asdict(), **spreads, **place})


def _ended(row: Sequence[Any]) -> EndedJobs:
    kind, succeeded, failed, canceled, retried, waits, runs = row
    spreads = json.loads(waits), json.loads(runs)
    return EndedJobs(kind, succeeded, failed, canceled, retried, *spreads)


class SqliteHistory(Part):
    """See `store.history.History`."""

    add = called(add)
    look = called(look)
    read = called(read)
    trim = called(trim)
