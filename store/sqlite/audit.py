"""What is read of an embedded store to compare it with its own log."""

from __future__ import annotations

from collections.abc import Sequence

from musterd.store.audit import ROWS_AT_ONCE, AuditRow, Tally
from musterd.store.lifecycle import JobState
from musterd.store.sqlite.database import Database
from musterd.store.sqlite.runner import Call


class SqliteAudit:
    """See `store.audit.Audit` for what each method promises."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def rows(self, after_id: int) -> Sequence[AuditRow]:
        return await self._call(_rows, after_id)

    async def tally(self) -> Tally:
        return await self._call(_tally)


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
