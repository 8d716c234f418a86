"""Reports what becomes of a tenant's jobs and duties to metrics, log and event log."""

from __future__ import annotations

import logging
from collections.abc import (
    Callable,
    Collection,
    Sequence,
)

import attrs

from musterd.manager.events.node_events import EventWriter
from musterd.manager.log import event
from musterd.manager.metrics.instruments import DutyMetrics
from musterd.manager.node.heartbeat import ServiceTimes
from musterd.manager.tenancy.deps import TenancyDeps
from musterd.store.leases import (
    Reaped,
    Settlement,
    Successes,
)
from musterd.store.lifecycle import (
    ENDED,
    JobState,
)
from musterd.store.report import error_line
from musterd.workers.observer import Ignored


class JobReporter:
    """The `JobObserver` of a tenant's desk. Calls `news` after each write, and `on_ended` with the
    kinds of jobs that have ended.
    """

    def __init__(
        self,
        deps: TenancyDeps,
        news: Callable[[], None],
        on_ended: Callable[[Collection[str]], None],
    ) -> None:
        self.settled_total = 0
        self.service_times = ServiceTimes()
        self._tenant, self._log, self._metrics = deps.tenant, deps.log, deps.metrics
        self.claimed = deps.metrics.claimed  # as it is: this is the hot path
        self._news, self._on_ended = news, on_ended

    def settled(self, settlements: Sequence[Settlement]) -> None:
        self.settled_total += len(settlements)
        self._news()
        self._metrics.settled(settlements, self._tenant)
        self.service_times.note(settlements)
        self._on_ended({one.kind for one in settlements if one.state in ENDED})
        failed, logs_all = JobState.FAILED, self._log.isEnabledFor(logging.DEBUG)
        for settlement in settlements:
            if settlement.state is failed:
                self._log_attempt(logging.WARNING, "job failed", settlement)
            elif logs_all:
                self._log_attempt(logging.DEBUG, "attempt settled", settlement)

    def succeeded(self, successes: Successes) -> None:
        self.settled_total += len(successes.ids)
        self._news()
        self._metrics.succeeded(successes, self._tenant)
        self.service_times.note_successes(successes)
        self._on_ended(set(successes.kinds))
        if self._log.isEnabledFor(logging.DEBUG):
            for settlement in successes.settlements():
                self._log_attempt(logging.DEBUG, "attempt settled", settlement)

    def stale_writes(self, count: int) -> None:
        if count:
            self._metrics.stale_writes(count)
            phrase = "settlements refused: leases were lost"
            event(self._log, logging.WARNING, phrase, count=count)

    def lease_lost(self, job_id: int, kind: str, attempt: int) -> None:
        self._metrics.lease_lost(job_id, kind, attempt)
        fields = {"job_id": job_id, "kind": kind, "attempt": attempt}
        event(self._log, logging.WARNING, "lease lost; job stopped here", **fields)

    def request_ignored(self, ignored: Ignored) -> None:
        fields = {"job_id": ignored.job_id, "kind": ignored.kind, "attempt": ignored.attempt}
        fields["request"] = ignored.request
        seconds = round(ignored.seconds, 1)
        event(self._log, logging.WARNING, "request ignored", **fields, seconds=seconds)

    def reaped(self, reaped: Sequence[Reaped]) -> None:
        self._metrics.reaped(reaped, self._tenant)
        self._news()
        for one in reaped:
            fields: dict[str, object] = {"job_id": one.id, "kind": one.kind, "attempt": one.attempt}
            fields |= {"node": one.node, "state": str(one.state)}
            event(self._log, logging.WARNING, "lease expired", **fields)

    def _log_attempt(self, level: int, phrase: str, settlement: Settlement) -> None:
        event(
            self._log, level, phrase, job_id=settlement.id, kind=settlement.kind,
            attempt=settlement.attempt, worker=settlement.worker, outcome=str(settlement.outcome),
            error=error_line(settlement.error), run_seconds=round(settlement.run_seconds, 6),
        )  # fmt: skip


@attrs.define(eq=False)
class DutyReporter:
    """The `DutyObserver` of a tenant. Calls `lost` for each duty that this node no longer does."""

    metrics: DutyMetrics
    event_writer: EventWriter
    deps: TenancyDeps
    lost: Callable[[str], None]

    def acquired(self, duties: Sequence[str]) -> None:
        self._log_duties("duties taken", duties)
        for duty in duties:
            self.metrics.acquired(duty)
            self.event_writer.announce("duty.acquired", duty=duty)

    def released(self, duties: Sequence[str], why: str) -> None:
        self._log_duties("duties released", duties, reason=why)
        for duty in duties:
            self.metrics.released(duty)
            self.lost(duty)
            self.event_writer.announce("duty.released", duty=duty, reason=why)

    def ran(self, duty: str, items: int, error: str | None) -> None:
        self.metrics.ran(duty, self.deps.wall_clock(), well=error is None)

    def _log_duties(self, phrase: str, duties: Sequence[str], **fields: str) -> None:
        event(self.deps.log, logging.INFO, phrase, duties=",".join(duties), **fields)
