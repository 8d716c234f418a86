"""Metrics of a test's own, and what they say when they are read."""

from __future__ import annotations

from uuid import UUID

from prometheus_client.parser import text_string_to_metric_families

from musterd.config.settings import Metrics as MetricsSettings
from musterd.manager.metrics.metrics import Metrics
from musterd.store.leases import Settlement
from musterd.store.lifecycle import AttemptOutcome, JobState

BUCKETS = (0.01, 0.1, 1.0)


def make(kinds_max: int = 10) -> Metrics:
    return Metrics(MetricsSettings(BUCKETS, BUCKETS, kinds_max), "1.2.3")


def settled(
    kind: str = "report",
    outcome: AttemptOutcome = AttemptOutcome.SUCCEEDED,
    state: JobState = JobState.SUCCEEDED,
    seconds: float = 0.05,
) -> Settlement:
    """The end of an attempt that ran so long."""
    return Settlement(1, UUID(int=1), 1, 1, 0.0, seconds, state, outcome, kind=kind)


def samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
    }


def value(metrics: Metrics, name: str, **labels: str) -> float:
    return samples(metrics)[f"musterd_{name}", tuple(sorted(labels.items()))]
