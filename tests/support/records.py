"""A job's record as a store gives it, for tests that need one and no store."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from musterd.store.jobs import JobRecord
from musterd.store.lifecycle import JobState

CREATED_AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def job_record(**fields: Any) -> JobRecord:
    """A job that was enqueued and nothing more, but for these."""
    created_at = fields.pop("created_at", CREATED_AT)
    waiting: dict[str, Any] = {
        "id": 42,
        "kind": "report",
        "state": JobState.QUEUED,
        "payload": '{"a": 1}',
        "created_at": created_at,
        "run_at": created_at,
        "attempts": (),
        **dict.fromkeys(("result", "error", "reason", "max_attempts"), None),
        **dict.fromkeys(("started_at", "finished_at", "node", "worker"), None),
        **dict.fromkeys(("lease_expires_at", "heartbeat_at"), None),
        **dict.fromkeys(("priority", "attempt", "forgiven"), 0),
    }
    return JobRecord(**{**waiting, **fields})
