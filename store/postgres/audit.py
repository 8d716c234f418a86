"""What is read of a PostgreSQL store to compare it with its own log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from musterd.store.audit import ROWS_AT_ONCE, AuditRow, Draft, Tally
from musterd.store.lifecycle import JobState
from musterd.store.postgres.parts import Run


class PostgresAudit:
    """See `store.audit.Audit` for what each method promises."""

    def __init__(self, run: Run) -> None:
        self._run = run

    async def rows(self, after_id: int) -> Sequence[AuditRow]:
        found = await self._run("audit_rows", {"after": after_id, "count": ROWS_AT_ONCE})
        return [AuditRow(id_, JobState(state), attempt) for id_, state, attempt in found]

    async def tally(self) -> Tally:
        ((newest, told, kept, counted, enqueued),) = await self._run("audit_tally", {})
        drafts = [
            Draft(type_, job_id, None if state is None else JobState(state))
            for type_, job_ids, state in told
            for job_id in job_ids
        ]
        return Tally(newest, drafts, _by_state(kept), _by_state(counted), enqueued)


def _by_state(numbers: Mapping[str, int]) -> Mapping[JobState, int]:
    return {JobState(state): number for state, number in numbers.items()}
