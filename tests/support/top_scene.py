"""A screen of `musterd top` without a terminal: states made of values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import attrs

from musterd.console.top.state import NodeAnswer, State, StoreSnapshot, with_store
from musterd.console.top.terminal import Size
from musterd.manager.node.status import Decision, status_object
from musterd.store.lifecycle import JobState
from musterd.store.nodes import NodeRecord
from musterd.store.overview import OverviewJob
from musterd.store.queue import Counts
from tests.support.page_scene import crew_named
from tests.support.web_scene import STATUS

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202e\r\nevil\u200b"


def overview_job(job_id: int, **values: Any) -> OverviewJob:
    usual = OverviewJob(
        job_id, "report", JobState.QUEUED, None, 0, 0, None, 0, NOW - timedelta(seconds=9),
        NOW - timedelta(seconds=5), None, None, None, None, None, None, None, None, None,
        parked=False, behind=False,
    )  # fmt: skip
    return usual._replace(**values)


def running(job_id: int, **values: Any) -> OverviewJob:
    held = {"state": JobState.RUNNING, "started_at": NOW - timedelta(seconds=2), "attempt": 1}
    return overview_job(job_id, **{**held, "node": "north", "worker": 3, **values})


def counts(**values: Any) -> Counts:
    by_state = dict.fromkeys(JobState, 0) | {JobState.QUEUED: 4, JobState.RUNNING: 1}
    return attrs.evolve(Counts(by_state, 10, 4, 3.2, None, None), **values)


WHERE = "sqlite:////x.db"
NODE = NodeRecord(
    UUID(int=1), "north", "0.1.0", NOW, NOW, "running", 1, 1, 0, 2, 8, None, 0.5, load=0.4
)
DECISION = Decision(0.0, "demand", 9, 3, 3, 12, 8, "max", 5, 0, 0)
JOBS = (
    running(7, progress=42.0, note="page 3"),
    overview_job(8, kind="thumbnail", target="shop"),
    overview_job(9, kind="thumbnail", target="shop", behind=True),
    overview_job(10, state=JobState.PAUSED),
    overview_job(11, state=JobState.FAILED, finished_at=NOW, error='{"type":"Boom","message":"x"}'),
)


def seen(at: float = 100.0, *jobs: OverviewJob, **values: Any) -> StoreSnapshot:
    return StoreSnapshot(at, NOW, counts(**values), jobs or JOBS, (NODE,))


def scene(columns: int = 100, rows: int = 30, **values: Any) -> State:
    """A healthy node with five jobs."""
    tenant = attrs.evolve(crew_named("default"), store=WHERE)
    status = attrs.evolve(STATUS, store=WHERE, tenants=(tenant,))
    node = NodeAnswer(status_object(status, None), decision=DECISION)
    first = State("default", ("default", "acme"), WHERE, Size(columns, rows), node=node)
    return attrs.evolve(with_store(first, seen()), **values)
