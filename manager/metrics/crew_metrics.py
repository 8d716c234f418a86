"""What Prometheus reads of the crews: their size, and how it is decided on."""

from __future__ import annotations

from contextlib import suppress

from attrs import evolve
from prometheus_client import CollectorRegistry, Counter, Gauge

from musterd.manager.node.status import Decision

CREW_STATES = ("idle", "busy", "retiring")
DIRECTIONS = ("up", "down", "hold")


class CrewMetrics:
    """What is said without naming a tenant is the sum over all of them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, help_text: str, *labels: str) -> Gauge:
            return Gauge(f"musterd_{name}", help_text, labels, registry=registry)

        def counter(name: str, help_text: str, *labels: str) -> Counter:
            return Counter(f"musterd_{name}", help_text, labels, registry=registry)

        self._wishes: dict[str, Decision] = {}  # the last of each tenant
        self._workers = gauge("workers", "The crew, by what it does.", "tenant", "state")
        self._min = gauge("workers_min", "The least crew: workers.default_count.")
        self._max = gauge("workers_max", "The largest crew: workers.max_count.")
        self._desired = gauge("workers_desired", "The crew decided on, within all limits.")
        self._desired_raw = gauge("workers_desired_raw", "The crew wished for, unlimited.")
        self._decisions = counter("scale_decisions", "Scaling decisions.", "direction")
        self._limited = counter("scale_limited", "Decisions held back, by what.", "reason")
        for direction in DIRECTIONS:
            self._decisions.labels(direction=direction)

    def scaled(self, decision: Decision, tenant: str) -> None:
        before = self._wishes.get(tenant)
        if decision.raw_wish is None and before is not None:
            decision = evolve(decision, raw_wish=before.raw_wish)  # the last one known
        self._wishes[tenant] = decision
        self._sum_up_wishes()
        self._decisions.labels(direction=_direction(decision)).inc()
        if decision.limited_by is not None:
            self._limited.labels(reason=decision.limited_by).inc()

    def counted(self, idle: int, busy: int, retiring: int, tenant: str) -> None:
        for state, count in zip(CREW_STATES, (idle, busy, retiring), strict=True):
            self._workers.labels(tenant=tenant, state=state).set(count)

    def bounds(self, default_count: int, max_count: int) -> None:
        self._min.set(default_count)
        self._max.set(max_count)

    def forget(self, tenant: str) -> None:
        """Drops the series of a tenant that is no longer served."""
        self._wishes.pop(tenant, None)
        self._sum_up_wishes()
        for state in CREW_STATES:
            with suppress(KeyError):  # its crew was never told of
                self._workers.remove(tenant, state)

    def _sum_up_wishes(self) -> None:
        self._desired.set(sum(one.desired for one in self._wishes.values()))
        raw = [one.raw_wish for one in self._wishes.values() if one.raw_wish is not None]
        if raw:
            self._desired_raw.set(sum(raw))


def _direction(decision: Decision) -> str:
    if decision.hired or decision.taken_back:
        return "up"
    return "down" if decision.retired else "hold"
