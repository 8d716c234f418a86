"""What Prometheus reads of duties: who has which, and what came of it."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge

from musterd.manager.duties.names import DUTIES

RESULTS = ("ok", "error")


class DutyMetrics:
    """All of a node's tenants together: names of duties are few, those of tenants may be many."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._leader = Gauge(
            "musterd_duty_leader",
            "For how many tenants this node has the duty.",
            ["duty"],
            registry=registry,
        )
        self._runs = Counter(
            "musterd_duty_runs", "Runs of a duty.", ["duty", "result"], registry=registry
        )
        self._last_success = Gauge(
            "musterd_duty_last_success_timestamp_seconds",
            "When a run of the duty last went well on this node.",
            ["duty"],
            registry=registry,
        )
        for duty in DUTIES:
            self._leader.labels(duty=duty)
            for result in RESULTS:
                self._runs.labels(duty=duty, result=result)

    def acquired(self, duty: str) -> None:
        self._leader.labels(duty=duty).inc()

    def released(self, duty: str) -> None:
        self._leader.labels(duty=duty).dec()

    def ran(self, duty: str, at: float, *, well: bool) -> None:
        self._runs.labels(duty=duty, result=RESULTS[0 if well else 1]).inc()
        if well:
            self._last_success.labels(duty=duty).set(at)
