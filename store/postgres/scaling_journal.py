"""The journal of decisions of an engine on PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from musterd.store.compared_hours import ComparedHour, columns_of, first_hour, hour_of
from musterd.store.postgres.statements import Execute, Row, Run
from musterd.store.scaling_journal import READ_MAX, JournalRun, fields_of, first_at


class PostgresScalingJournal:
    """See `store.scaling_journal.ScalingJournal`."""

    def __init__(self, run: Run, execute: Execute) -> None:
        self._run, self._execute = run, execute

    async def write(self, runs: Sequence[JournalRun]) -> None:
        await self._execute("write_journal", {"runs": json.dumps([_row(run) for run in runs])})

    async def read(
        self, since: datetime | None, until: datetime | None, limit: int
    ) -> list[JournalRun]:
        params = {
            "first": first_at(since),
            "since": since,
            "until": until,
            "count": min(limit, READ_MAX),
        }
        found = await self._run("read_journal", params)
        return [_run(row) for row in reversed(found)]

    async def write_hour(self, hour: ComparedHour) -> None:
        await self._execute("write_hour", {"at": hour.at, **columns_of(hour)})

    async def hours(
        self, since: datetime | None, until: datetime | None, limit: int
    ) -> list[ComparedHour]:
        span = {"first": first_hour(since), "until": until, "count": min(limit, READ_MAX)}
        found = await self._run("read_hours", span)
        return [hour_of(at, values) for at, *values in reversed(found)]

    async def forget(self, age_seconds: float, batch: int) -> int:
        params = {"age_seconds": age_seconds, "batch": batch}
        hours = await self._execute("forget_hours", params)
        return hours + await self._execute("forget_journal", params)


def _run(row: Row) -> JournalRun:
    node_id, node, at, until, ticks, *fields = row
    return JournalRun(node_id, node, at, until, ticks, fields_of(fields))


def _row(run: JournalRun) -> dict[str, object]:
    about = {
        "node_id": str(run.node_id),
        "node": run.node,
        "at": run.at.isoformat(),
        "until": run.until.isoformat(),
        "ticks": run.ticks,
    }
    return {**run.fields, **about}
