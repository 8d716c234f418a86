"""Values for the live page: a job, a node, an overview, in which every text is the caller's."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from uuid import UUID

import attrs

from musterd.manager.node.status import Decision, TenantStatus, WorkerView
from musterd.store.duties import DutyRecord
from musterd.store.history import EndedJobs, Mark, PastMark, QueueLook, counted
from musterd.store.jobs import AttemptRecord, JobRecord
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.nodes import NodeRecord
from musterd.store.outbox import WebhookRecord
from musterd.store.phases import PhaseRecord, PhaseState
from musterd.store.queue import Counts
from musterd.web.pages.job import JobDetails as JobSeen
from musterd.web.pages.nodes import NodesData as NodesSeen
from musterd.web.pages.overview import OverviewData
from musterd.web.pages.pictures import RANGES, KindRow
from musterd.web.picture import Picture, Point, Span
from musterd.web.samples import Sample, trend_of
from tests.support.web_scene import STATUS, TENANT

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
COUNTS = Counts({JobState.QUEUED: 3, JobState.SUCCEEDED: 5}, 8, 2, 1.5, None, None)


def crew_named(name: str) -> TenantStatus:
    return attrs.evolve(TENANT, name=name)


def decision(at: float = 1.0, *, hired: int = 0, limited_by: str | None = None) -> Decision:
    return Decision(at, "demand", 9, 3, 3, 12, 3 + hired, limited_by, hired, 0, 0)


def overview_of(text: str) -> OverviewData:
    """`text` stands for all that others have named."""
    workers = (WorkerView(1, "busy", 7, text, 0.5), WorkerView(2, "idle", None, None, 0.0))
    samples = [Sample(5.0 * n, 2, 1, 2, n % 7, 1.0, 10 * n, n % 7) for n in range(120)]
    counts = Counts(COUNTS.by_state, 8, 2, 1.5, NOON, text)
    return OverviewData(
        STATUS, crew_named("default"), counts, workers,
        (decision(1.0, hired=2, limited_by="max"), decision(2.0, limited_by=text)),
        trend_of(samples), (crew_named("default"), crew_named(text)), (), "6h", picture_of(text),
        [KindRow(text, 40, 9.0, 900, 90, 5, 0.2, 0.1, 5.0)] * 30,
    )  # fmt: skip


def picture_of(text: str) -> Picture:
    """With as many steps as a chart has, and numbers that are long."""
    reach_seconds, step = RANGES["48h"]
    span = Span(NOON.timestamp() - reach_seconds, NOON.timestamp(), step)
    spread = counted([0.0123, 45.6])
    points = [
        Point(at, QueueLook(987_654 - nth, 1.0, 123, 456, 789, 22.5),
            EndedJobs("", 987_654, 4_321, 0, 321, spread, spread))
        for nth, at in enumerate(span.begins)
    ]  # fmt: skip
    marks = [PastMark(NOON.timestamp() - 60, Mark("config.reloaded", text, text))]
    return Picture(span, points, {}, marks)


def record_of(text: str, state: JobState = JobState.FAILED) -> JobRecord:
    error = json.dumps({"type": text, "message": text})
    later = NOON + timedelta(seconds=5)
    attempt = AttemptRecord(1, text, 3, NOON, later, AttemptOutcome.FAILED, error, text)
    return JobRecord(
        id=7, kind=text, state=state, payload=json.dumps({text: [text]}), result=None, error=error,
        reason=text, priority=1, attempt=1, max_attempts=None, forgiven=0, created_at=NOON,
        run_at=NOON, started_at=NOON, finished_at=later, node=text, worker=3,
        lease_expires_at=None, heartbeat_at=None, attempts=(attempt,), dedup_key=text,
        progress=12.0, progress_note=text, target=text,
        phases=(PhaseRecord(text, PhaseState.SUCCEEDED, 100.0, json.dumps(text), 1, NOON, later),),
        webhook=WebhookRecord(text, None, 2),
    )  # fmt: skip


def job_of(text: str) -> JobSeen:
    return JobSeen(record_of(text), None, NOON, 4, text)


def nodes_of(text: str) -> NodesSeen:
    node = NodeRecord(
        UUID(int=1), text, text, NOON, NOON, "running", 1, 1, 0, 2, 8, None, 1.0,
        config_generation=1, config_hash=text,
    )  # fmt: skip
    other = NodeRecord(
        UUID(int=2), f"{text}2", f"{text}2", NOON, NOON, "running", 1, 1, 0, 2, 8, None, 1.0
    )
    duty = DutyRecord(
        "reaping", text, UUID(int=1), NOON, NOON, 3.0, 10.0, NOON, 5, 4, 1, text, 0, 0.5, None, NOON
    )
    return NodesSeen((node, other), (duty,), (WorkerView(1, "busy", 7, text, 0.5),))
