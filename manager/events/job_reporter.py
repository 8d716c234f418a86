"""Passes on what desk and workers report: to the metrics for counting, to the log where people want
to read it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from musterd.manager.log import Log, event
from musterd.manager.metrics.metrics import Metrics
from musterd.manager.scaling.service_times import ServiceTimes
from musterd.store.leases import Reaped, Settlement
from musterd.store.lifecycle import JobState
from musterd.store.report import error_line
from musterd.workers.observer import Ignored


class JobReporter:
    """The `JobObserver` of a tenant's desk. `news` is called when something has been written, and
    `on_settled` with the ends of attempts.
    """

    def __init__(
        self,
        metrics: Metrics,
        log: Log,
        tenant: str,
        news: Callable[[], None],
        on_settled: Callable[[Sequence[Settlement]], None],
    ) -> None:
        self.settled_total = 0
        self.service_times = ServiceTimes()
        self._tenant = tenant
        self.claimed = metrics.claimed  # as it is: this is the hot path
        self._metrics = metrics
        self._log = log
        self._news, self._on_settled = news, on_settled

    def settled(self, settlements: Sequence[Settlement]) -> None:
        self.settled_total += len(settlements)
        self._news()
        self._metrics.settled(settlements, self._tenant)
        self.service_times.note(settlements)
        self._on_settled(settlements)
        failed, tells_all = JobState.FAILED, self._log.isEnabledFor(logging.DEBUG)
        for settlement in settlements:
            if settlement.state is failed:
                self._tell(logging.WARNING, "job failed", settlement)
            elif tells_all:
                self._tell(logging.DEBUG, "attempt settled", settlement)

    def stale_writes(self, count: int) -> None:
        if count:
            self._metrics.stale_writes(count)
            phrase = "settlements refused: leases were lost"
            event(self._log, logging.WARNING, phrase, count=count)

    def lease_lost(self, job_id: int, kind: str, attempt: int) -> None:
        self._metrics.lease_lost(job_id, kind, attempt)
        fields = {"job_id": job_id, "kind": kind, "attempt": attempt}
        event(self._log, logging.WARNING, "lease lost, job stopped here", **fields)

    def request_ignored(self, ignored: Ignored) -> None:
        fields = {"job_id": ignored.job_id, "kind": ignored.kind, "attempt": ignored.attempt}
        fields["request"] = ignored.request
        seconds = round(ignored.seconds, 1)
        event(self._log, logging.WARNING, "request ignored", **fields, seconds=seconds)

    def reaped(self, reaped: Sequence[Reaped]) -> None:
        self._metrics.reaped(reaped, self._tenant)
        self._news()
        for one in reaped:
            fields: dict[str, object] = {
                "job_id": one.id,
                "kind": one.kind,
                "attempt": one.attempt,
                "node": one.node,
            }
            fields |= {"state": str(one.state)}
            event(self._log, logging.WARNING, "lease ran out", **fields)

    def crew_changed(self, how: str, worker: int) -> None:
        event(self._log, logging.DEBUG, f"worker {how}", worker=worker)

    def _tell(self, level: int, phrase: str, settlement: Settlement) -> None:
        event(
            self._log, level, phrase, job_id=settlement.id, kind=settlement.kind,
            attempt=settlement.attempt, worker=settlement.worker, outcome=str(settlement.outcome),
            error=error_line(settlement.error), run_seconds=round(settlement.run_seconds, 6),
        )  # fmt: skip
