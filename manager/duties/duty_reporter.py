"""Where it is told what becomes of a tenant's duties: the log, the metrics, the log of events."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import attrs

from musterd.manager.events.event_writer import EventWriter
from musterd.manager.log import event
from musterd.manager.metrics.duty_metrics import DutyMetrics
from musterd.manager.tenancy.deps import TenancyDeps


@attrs.define(eq=False)
class DutyReporter:
    """The `DutyObserver` of a tenant's duties. `lost` hears of each that is no longer done here."""

    metrics: DutyMetrics
    event_writer: EventWriter
    deps: TenancyDeps
    lost: Callable[[str], None]

    def acquired(self, duties: Sequence[str]) -> None:
        self._tell("duties taken", duties)
        for duty in duties:
            self.metrics.acquired(duty)
            self.event_writer.announce("duty.acquired", duty=duty)

    def released(self, duties: Sequence[str], why: str) -> None:
        self._tell("duties given up", duties, reason=why)
        for duty in duties:
            self.metrics.released(duty)
            self.lost(duty)
            self.event_writer.announce("duty.released", duty=duty, reason=why)

    def ran(self, duty: str, items: int, error: str | None) -> None:
        self.metrics.ran(duty, self.deps.wall_clock(), well=error is None)

    def _tell(self, phrase: str, duties: Sequence[str], **fields: str) -> None:
        event(self.deps.log, logging.INFO, phrase, duties=",".join(duties), **fields)
