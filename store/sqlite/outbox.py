"""The messages for others in SQLite. Each function is one transaction, on the store's clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import attrs

from musterd.store.outbox import Delivery, Message, MessageFilter, MessageRecord, WebhookRecord
from musterd.store.sqlite import rows
from musterd.store.sqlite.database import Database, Part, called
from musterd.store.sqlite.job_events import GONE, About, JobEvents

TIMES = slice(7, 10)  # of a message: created_at, due_at, ended_at


def take(database: Database, token: UUID, count: int, seconds: float) -> list[Message]:
    with database.writing("taking messages") as now:
        due = database.rows("take_webhooks", {"now": now, "count": count})
        until = now + rows.microseconds(seconds)
        for row in due:
            database.execute("hold_webhook", {"id": row[0], "token": token.bytes, "until": until})
    return [_message(row, now, token) for row in due]


def settle(database: Database, deliveries: Sequence[Delivery]) -> frozenset[int]:
    taken: set[int] = set()
    with database.writing("settling messages") as now:
        events = JobEvents(database, now)
        for one in deliveries:
            state = _state_after(one)
            found = database.rows("settle_webhooks", _settlement(one, state, now))
            if not found:
                continue
            taken.add(one.id)
            if state != "waiting":
                _record_end(events, found[0], state, {"status": one.status}, one.error)
            if one.gone:
                _close(events, found[0][1])
        events.write()
    return frozenset(taken)


def next_due_seconds(database: Database) -> float | None:
    with database.reading("looking for the next message") as now:
        due_at = database.rows("next_webhook")[0][0]
    return None if due_at is None else (due_at - now) / rows.SECOND


def messages(database: Database, which: MessageFilter) -> list[MessageRecord]:
    before = rows.ID_MAX if which.before_id is None else min(which.before_id, rows.ID_MAX)
    params = {**attrs.asdict(which), "before": before, "count": which.limit}
    with database.reading("listing messages"):
        found = database.rows("webhooks", params)
    return [_record(row) for row in found]


def resend(database: Database, ids: Sequence[int]) -> frozenset[int]:
    waiting: set[int] = set()
    with database.writing("sending messages again") as now:
        for id_ in sorted(ids):
            if database.rows("webhook_url", {"id": id_}):
                waiting.add(id_)
                database.execute("open_receiver", {"id": id_})
                database.execute("resend_webhooks", {"id": id_, "now": now})
    return frozenset(waiting)


def webhook_of(database: Database, job_id: int) -> WebhookRecord | None:
    """Where the message of a job's end goes, within a transaction."""
    found = database.rows("webhooks_of", {"job_id": job_id})
    if not found:
        return None
    url, sent_at, tries = found[0]
    return WebhookRecord(url, rows.moment(sent_at), tries)


def _state_after(one: Delivery) -> str:
    if one.delivered:
        return "delivered"
    return "failed" if one.retry_seconds is None else "waiting"


def _settlement(one: Delivery, state: str, now: int) -> rows.Params:
    waits = state == "waiting" and one.retry_seconds is not None
    due_at = now + rows.microseconds(one.retry_seconds or 0) if waits else None
    own = {"token": one.token.bytes, "state": state, "due_at": due_at}
    return {**one._asdict(), **own, "ended_at": None if waits else now}


def _close(events: JobEvents, url: str) -> None:
    database, gone = events.database, {"url": url, "now": events.now}
    database.execute("close_receiver", gone)
    for row in database.rows("spare_webhooks", {**gone, "error": GONE}):
        _record_end(events, row, "failed", {}, GONE)


def _record_end(
    events: JobEvents, row: rows.Row, state: str, delivered: dict[str, Any], error: str | None
) -> None:
    job_id, url, tries = row
    found = events.database.rows("job_named", {"id": job_id})
    named: rows.Row = found[0] if found else (None, None)  # deleted since
    how = delivered if state == "delivered" else {"error": error}
    data = {"url": url, "attempts": tries, **how}
    events.record(f"job.webhook_{state}", About(job_id, *named), data)


def _message(row: rows.Row, now: int, token: UUID) -> Message:
    *fields, made, body = row
    age_seconds = (now - made) / rows.SECOND
    about = {
        "created_at": rows.moment_at(made),
        "age_seconds": age_seconds,
        "body": body,
        "token": token,
    }
    return Message(*fields, **about)


def _record(row: rows.Row) -> MessageRecord:
    times = map(rows.moment, row[TIMES])
    return MessageRecord(*row[: TIMES.start], *times, *row[TIMES.stop :])


class SqliteOutbox(Part):
    """See `store.outbox` for what each method promises."""

    take = called(take)
    settle = called(settle)
    next_due_seconds = called(next_due_seconds)
    messages = called(messages)
    resend = called(resend)
