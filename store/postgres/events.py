"""The log of events, and what is read to compare the store with it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from musterd.store.events import (
    ALL_EVENTS,
    FAULTS_MAX,
    ORDERED_AT_ONCE,
    PAGE_EVENTS_MAX,
    READ_AT_ONCE,
    ROWS_AT_ONCE,
    AuditRow,
    Draft,
    Event,
    EventBounds,
    EventFilter,
    EventPage,
    Fault,
    NewEvent,
    Tally,
    fits,
)
from musterd.store.lifecycle import JobState
from musterd.store.postgres.connection import Pool
from musterd.store.postgres.statements import Execute, Row, Run, Send, texts


class PostgresEvents:
    """See `store.events` for what each method promises."""

    def __init__(self, run: Run, execute: Execute) -> None:
        self._run, self._execute = run, execute

    async def record(self, events: Sequence[NewEvent]) -> None:
        params = {
            "types": texts(event.type for event in events),
            "datas": texts(json.dumps(dict(event.data)) for event in events),
        }
        await self._execute("record_events", params)

    async def order(self) -> int:
        newest: int = (await self._run("order_events", {"batch": ORDERED_AT_ONCE}))[0][0]
        return newest

    async def read(
        self, after: int, which: EventFilter = ALL_EVENTS, *, rows_max: int = READ_AT_ONCE
    ) -> EventPage:
        wanted = {**_wanted(after, which), "bound": rows_max}
        *found, end = await self._run("read_events", wanted)
        looked_to, newest = end[0], end[4][0]
        position = max(after, newest if looked_to is None else looked_to)
        events = [
            event
            for row in found
            for event in _unfolded(row, max(after - (row[0] - row[3]), 0))
            if fits(event, which)
        ]
        return EventPage(events, position, more=position < newest)

    async def bounds(self) -> EventBounds:
        return EventBounds(*(await self._run("event_bounds", {}))[0])

    async def trim(self, keep_seconds: float, rows_max: int) -> int:
        return await self._execute("trim_events", {"keep": keep_seconds, "bound": rows_max})


def _wanted(after: int, which: EventFilter) -> dict[str, Any]:
    return {
        "after": after,
        "events": PAGE_EVENTS_MAX,
        "types": texts(which.types) if which.types else None,
        "job_id": which.job_id,
        "kind": which.kind,
        "target": which.target,
    }


def _unfolded(row: Row, skipped: int) -> Iterator[Event]:
    """The events of a row of the log, but for those at its beginning that were read before."""
    last, at, type_, size, job_ids, kinds, targets, attempts, workers, common, details, ats = row
    for place in range(skipped, size):
        data: dict[str, Any] = {}
        if attempts is not None:
            data["attempt"] = _of(attempts, place)
        data |= common or {}
        if workers is not None:
            data["worker"] = _of(workers, place)
        data |= _of(details, place) or {}
        yield Event(
            last - size + 1 + place,
            at if ats is None else ats[place],
            type_,
            _of(job_ids, place),
            _of(kinds, place),
            _of(targets, place),
            data,
        )


def _of(values: Sequence[Any] | None, place: int) -> Any:
    """An array holds a value for each event, or one for all of them, or is not there."""
    if values is None:
        return None
    return values[0] if len(values) == 1 else values[place]


@attrs.frozen
class PostgresAudit:
    """See `store.events.Audit` for what each method promises."""

    run: Run
    send: Send
    pool: Pool

    async def rows(self, after_id: int) -> Sequence[AuditRow]:
        found = await self.run("audit_rows", {"after": after_id, "count": ROWS_AT_ONCE})
        return [AuditRow(id_, JobState(state), attempt) for id_, state, attempt in found]

    async def tally(self) -> Tally:
        ((newest, drafted, kept, counted, enqueued),) = await self.run("audit_tally", {})
        drafts = [
            Draft(type_, job_id, None if state is None else JobState(state))
            for type_, job_ids, state in drafted
            for job_id in job_ids
        ]
        return Tally(newest, drafts, _by_state(kept), _by_state(counted), enqueued)

    async def faults(self, seconds: float | None = None) -> Sequence[Fault]:
        limit_ms = 0 if seconds is None else round(seconds * 1000)
        async with self.pool.use("looking where jobs stand") as conn:
            await conn.execute("begin", prepare=False)
            await conn.execute(f"set local statement_timeout = {limit_ms}".encode(), prepare=False)
            found = await (await self.send(conn, "faults", {"most": FAULTS_MAX})).fetchall()
            await conn.execute("commit", prepare=False)
        return [Fault._make(row) for row in found]


def _by_state(numbers: Mapping[str, int]) -> Mapping[JobState, int]:
    return {JobState(state): number for state, number in numbers.items()}
