"""Every promised metric is there, counts what it says, and has a bounded number of series."""

import re
import shutil
import subprocess

import attrs
import pytest
from prometheus_client.parser import text_string_to_metric_families

from musterd.config.settings import Metrics as MetricsSettings
from musterd.manager.metrics import Metrics
from musterd.manager.view import Decision
from musterd.store.job import AttemptOutcome, Counts, JobState, Reaped
from musterd.workers.listener import Listener, Report

BUCKETS = (0.01, 0.1, 1.0)
PROMISED: dict[str, set[str]] = {
    "jobs": {"tenant", "state"},
    "queue_depth": {"tenant"},
    "queue_oldest_age_seconds": {"tenant"},
    "jobs_enqueued_total": {"tenant"},
    "jobs_claimed_total": set(),
    "jobs_finished_total": {"tenant", "kind", "outcome"},
    "job_retries_total": {"kind"},
    "job_wait_seconds_count": {"kind"},
    "job_run_seconds_count": {"kind", "outcome"},
    "leases_lost_total": set(),
    "leases_requeued_total": set(),
    "stale_writes_rejected_total": set(),
    "workers": {"tenant", "state"},
    "workers_min": set(),
    "workers_max": set(),
    "workers_desired": set(),
    "workers_desired_raw": set(),
    "scale_decisions_total": {"direction"},
    "scale_limited_total": {"reason"},
    "store_operation_seconds_count": {"operation"},
    "store_errors_total": {"operation"},
    "loop_lag_seconds": set(),
    "config_generation": set(),
    "config_reload_success": set(),
    "config_last_reload_timestamp_seconds": set(),
    "build_info": {"version", "python"},
}


def make(kinds_max: int = 10) -> Metrics:
    return Metrics(MetricsSettings(BUCKETS, BUCKETS, kinds_max), "1.2.3")


def report(
    kind: str = "report",
    outcome: AttemptOutcome = AttemptOutcome.SUCCEEDED,
    state: JobState = JobState.SUCCEEDED,
) -> Report:
    return Report(1, kind, 1, 1, outcome, state, 0.05, None)


UP = Decision(1.0, "demand", 9, 1, 2, 10, 8, "max", 6, 0, 0)


def told_everything() -> Metrics:
    metrics = make()
    counts = Counts({JobState.QUEUED: 4}, 9, 3, 1.5, None, None)
    metrics.counts(counts)
    metrics.claimed("report", 0.02)
    metrics.settled([report(), report(outcome=AttemptOutcome.RETRYING, state=JobState.QUEUED)])
    metrics.stale_writes(2)
    metrics.reaped([Reaped(n, "report", 1, "web-1", JobState.QUEUED) for n in (1, 2, 3)])
    metrics.reaped([Reaped(4, "report", 4, "web-1", JobState.FAILED)])
    metrics.scaled(UP)
    metrics.crew(idle=1, busy=2, retiring=3)
    metrics.crew_bounds(2, 8)
    metrics.store_operation("claim", 0.001)
    metrics.store_error("claim")
    metrics.loop_lag(0.01)
    metrics.config(generation=1, success=True, timestamp=1234.5)
    return metrics


def samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
    }


def value(metrics: Metrics, name: str, **labels: str) -> float:
    return samples(metrics)[f"musterd_{name}", tuple(sorted(labels.items()))]


def test_it_is_a_listener() -> None:
    listener: Listener = make()
    listener.lease_lost(1, "report", 1)


def test_every_promised_metric_has_its_name_and_labels() -> None:
    found = {name: {key for key, _ in labels} for name, labels in samples(told_everything())}
    for name, labels in PROMISED.items():
        assert found[f"musterd_{name}"] == labels, name


def test_names_are_in_base_units_with_help_and_no_creation_times() -> None:
    text = told_everything().render().decode()
    names = set(re.findall(r"^# TYPE (musterd_\w+)", text, re.MULTILINE))
    helped = dict(re.findall(r"^# HELP (musterd_\w+) (.*)", text, re.MULTILINE))
    assert names == set(helped)
    assert all(helped.values())
    assert not any(name.endswith(("_ms", "_created")) for name in names)
    assert all(re.fullmatch(r"musterd_[a-z_]+", name) for name in names)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_finds_nothing() -> None:
    done = subprocess.run(
        ["promtool", "check", "metrics"],
        input=told_everything().render(),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_queue_is_told_as_the_store_counted_it() -> None:
    metrics = told_everything()
    assert value(metrics, "jobs", tenant="default", state="queued") == 4
    assert value(metrics, "jobs", tenant="default", state="failed") == 0
    assert value(metrics, "queue_depth", tenant="default") == 3
    assert value(metrics, "jobs_enqueued_total", tenant="default") == 9


def test_a_store_that_never_answered_has_no_counts() -> None:
    assert "musterd_queue_depth{" not in make().render().decode()


def test_a_retry_is_an_attempt_and_no_end() -> None:
    metrics = told_everything()
    finished = {"tenant": "default", "kind": "report"}
    assert value(metrics, "jobs_finished_total", outcome="succeeded", **finished) == 1
    assert value(metrics, "job_retries_total", kind="report") == 1
    assert value(metrics, "job_run_seconds_count", kind="report", outcome="retrying") == 1


def test_the_buckets_are_the_configured_ones() -> None:
    metrics = told_everything()
    assert value(metrics, "job_wait_seconds_bucket", kind="report", le="0.1") == 1
    assert value(metrics, "job_wait_seconds_bucket", kind="report", le="0.01") == 0


def test_each_lost_lease_counts_once_where_it_is_reaped() -> None:
    metrics = told_everything()
    assert (value(metrics, "leases_lost_total"), value(metrics, "leases_requeued_total")) == (4, 3)


def test_a_job_that_the_reaper_ended_is_a_finished_job() -> None:
    metrics = told_everything()
    labels = {"tenant": "default", "kind": "report", "outcome": "failed"}
    assert value(metrics, "jobs_finished_total", **labels) == 1


@pytest.mark.parametrize(
    ("tick", "direction"),
    [
        (UP, "up"),
        (attrs.evolve(UP, hired=0, taken_back=1), "up"),
        (attrs.evolve(UP, hired=0, retired=2), "down"),
        (attrs.evolve(UP, hired=0), "hold"),
    ],
)
def test_the_direction_of_a_decision(tick: Decision, direction: str) -> None:
    metrics = make()
    metrics.scaled(tick)
    assert value(metrics, "scale_decisions_total", direction=direction) == 1


def test_a_failed_observation_keeps_the_last_wish() -> None:
    metrics = told_everything()
    blind = attrs.evolve(UP, due=None, raw_wish=None, limited_by="no_observation")
    metrics.scaled(blind)
    assert value(metrics, "workers_desired_raw") == 10
    assert value(metrics, "scale_limited_total", reason="no_observation") == 1


def test_kinds_beyond_the_bound_share_one_label() -> None:
    metrics = make(kinds_max=2)
    for kind in ("a", "b", "c", "d"):
        metrics.claimed(kind, 0.0)
        metrics.settled([report(kind)])
        retrying = report(kind, AttemptOutcome.RETRYING, JobState.QUEUED)
        metrics.settled([retrying])
    labels = {dict(labels).get("kind") for _, labels in samples(metrics)}
    assert labels == {None, "a", "b", "other"}
    assert value(metrics, "job_wait_seconds_count", kind="other") == 2
    assert value(metrics, "job_retries_total", kind="other") == 2


def test_the_lag_shown_is_the_largest_of_late() -> None:
    metrics = make()
    metrics.loop_lag(0.5)
    metrics.loop_lag(0.001)
    assert value(metrics, "loop_lag_seconds") == 0.5
    for _ in range(30):
        metrics.loop_lag(0.002)
    assert value(metrics, "loop_lag_seconds") == 0.002


def test_tenants_are_told_apart_and_summed_up_where_they_are_not_named() -> None:
    metrics = told_everything()
    metrics.settled([report()], "acme")
    metrics.crew(4, 0, 0, "acme")
    metrics.counts(Counts({}, 7, 5, 0.0, None, None), "acme")
    metrics.scaled(attrs.evolve(UP, desired=3, raw_wish=4), "acme")
    finished = {"kind": "report", "outcome": "succeeded"}
    assert value(metrics, "jobs_finished_total", tenant="acme", **finished) == 1
    assert value(metrics, "jobs_finished_total", tenant="default", **finished) == 1
    assert value(metrics, "workers", tenant="acme", state="idle") == 4
    assert value(metrics, "queue_depth", tenant="acme") == 5
    assert (value(metrics, "workers_desired"), value(metrics, "workers_desired_raw")) == (11, 14)


def test_nothing_is_left_of_a_tenant_that_was_forgotten() -> None:
    metrics = told_everything()
    before = samples(metrics)
    metrics.crew(4, 0, 0, "acme")
    metrics.counts(Counts({}, 7, 5, 0.0, None, None), "acme")
    metrics.settled([report()], "acme")
    metrics.forget("acme")
    metrics.forget("never seen")
    assert "acme" not in metrics.render().decode()
    assert set(samples(metrics)) == set(before)
