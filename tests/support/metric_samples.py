"""Metrics of a test's own, and what they say when they are read."""

from __future__ import annotations

from uuid import UUID

from prometheus_client.parser import text_string_to_metric_families

from musterd.config.settings import Metrics as MetricsSettings
from musterd.manager.metrics.metrics import Metrics
from musterd.store.leases import Settlement
from musterd.store.lifecycle import AttemptOutcome, JobState

BUCKETS = (0.01, 0.1, 1.0)
# What is promised, by name without its prefix: its labels.
PROMISED: dict[str, set[str]] = {
    "jobs": {"tenant", "state"},
    "queue_depth": {"tenant"},
    "queue_oldest_age_seconds": {"tenant"},
    "queue_paused": {"tenant"},
    "targets_halted": {"tenant"},
    "jobs_unknown_kind": {"tenant"},
    "nodes_desired": {"tenant"},
    "jobs_enqueued_total": {"tenant"},
    "jobs_claimed_total": set(),
    "jobs_finished_total": {"tenant", "kind", "outcome"},
    "job_retries_total": {"kind"},
    "leases_lost_total": set(),
    "leases_requeued_total": set(),
    "stale_writes_rejected_total": set(),
    "faults_contained_total": {"where"},
    "workers": {"tenant", "state"},
    "workers_min": set(),
    "workers_max": set(),
    "workers_desired": set(),
    "workers_desired_raw": set(),
    "scale_decisions_total": {"direction"},
    "scale_limited_total": {"reason"},
    "store_errors_total": {"operation"},
    "store_connections": {"state"},
    "store_connections_max": set(),
    "store_connections_waiting": set(),
    "duty_leader": {"tenant", "duty"},
    "duty_runs_total": {"tenant", "duty", "result"},
    "duty_last_success_timestamp_seconds": {"tenant", "duty"},
    "webhooks_total": {"result"},
    "node_draining": set(),
    "metrics_render_seconds": set(),
    "loop_lag_seconds": set(),
    "config_generation": set(),
    "config_reload_success": set(),
    "config_last_reload_timestamp_seconds": set(),
    "build_info": {"version", "python"},
}
HISTOGRAMS: dict[str, set[str]] = {
    "job_wait_seconds": {"kind"},
    "job_run_seconds": {"kind", "outcome"},
    "store_operation_seconds": {"operation"},
}


def make(kinds_max: int = 10) -> Metrics:
    return Metrics(MetricsSettings(BUCKETS, BUCKETS, kinds_max, 48.0), "1.2.3")


def settled(
    kind: str = "report",
    outcome: AttemptOutcome = AttemptOutcome.SUCCEEDED,
    state: JobState = JobState.SUCCEEDED,
    seconds: float = 0.05,
) -> Settlement:
    """The end of an attempt that ran so long."""
    ended = Settlement(1, UUID(int=1), 1, 1, 0.0, seconds, state, outcome, kind=kind)
    return ended._replace(run_seconds=seconds)


def samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
    }


def value(metrics: Metrics, name: str, **labels: str) -> float:
    return samples(metrics)[f"musterd_{name}", tuple(sorted(labels.items()))]
