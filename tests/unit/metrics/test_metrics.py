"""Every promised metric is there, counts what it says, and has a bounded number of series."""

import inspect
import re
import subprocess
from datetime import UTC, datetime

import attrs
import pytest

from musterd.manager.metrics.instruments import DutyMetrics, RunResult, StoreHealthMetrics
from musterd.manager.metrics.metrics import Metrics
from musterd.manager.node.status import Decision
from musterd.store.leases import Reaped
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.queue import Counts
from tests.support.metric_pages import exported, tell_everything
from tests.support.metric_samples import HISTOGRAMS, PROMISED, make, samples, settled, value
from tests.support.missing import program

EXPECTED = {**PROMISED, **{f"{name}_count": labels for name, labels in HISTOGRAMS.items()}}


UP = Decision(1.0, "demand", 9, 1, 2, 10, 8, "max", 6, 0, 0)


def told_everything() -> Metrics:
    metrics = make()
    counts = Counts({JobState.QUEUED: 4}, 9, 3, 1.5, None, None)
    metrics.counts(counts)
    metrics.unknown_kinds(2)
    metrics.nodes_desired(3)
    metrics.claimed("report", [0.02])
    metrics.settled([settled(), settled(outcome=AttemptOutcome.RETRYING, state=JobState.QUEUED)])
    metrics.stale_writes(2)
    metrics.reaped([Reaped(n, "report", 1, "web-1", JobState.QUEUED) for n in (1, 2, 3)])
    metrics.reaped([Reaped(4, "report", 4, "web-1", JobState.FAILED)])
    metrics.scaled(UP)
    metrics.crew(idle=1, busy=2, retiring=3)
    metrics.crew_bounds(2, 8)
    metrics.store_operation("claim", 0.001)
    metrics.store_error("claim")
    metrics.duties.serve("default")
    metrics.duties.ran("default", "reaping", RunResult.OK, 0.1, 1234.5)
    metrics.loop_lag(0.01)
    metrics.config(generation=1, success=True, timestamp=1234.5)
    return metrics


def test_every_promised_metric_has_its_name_and_labels() -> None:
    found = {name: {key for key, _ in labels} for name, labels in samples(told_everything())}
    for name, labels in EXPECTED.items():
        assert found[f"musterd_{name}"] == labels, name


def test_names_are_in_base_units_with_help_and_no_creation_times() -> None:
    text = told_everything().render().decode()
    names = set(re.findall(r"^# TYPE (musterd_\w+)", text, re.MULTILINE))
    helped = dict(re.findall(r"^# HELP (musterd_\w+) (.*)", text, re.MULTILINE))
    assert names == set(helped)
    assert all(helped.values())
    assert not any(name.endswith(("_ms", "_created")) for name in names)
    assert all(re.fullmatch(r"musterd_[a-z_]+", name) for name in names)


def test_promtool_finds_nothing() -> None:
    done = subprocess.run(
        [program("promtool", "prometheus"), "check", "metrics"],
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


def test_late_starts_are_counted_where_something_is_promised() -> None:
    metrics = make()
    metrics.promised("report", [0.5, 2.5, 9.0], 2.0)
    metrics.promised("thumbnail", [0.5], 1.0)
    metrics.promised("backup", [900.0], 0.0)
    assert value(metrics, "promise_seconds", kind="report") == 2
    assert value(metrics, "promise_broken_total", kind="report") == 2
    assert value(metrics, "promise_broken_total", kind="thumbnail") == 0, "it begins at 0"
    assert "backup" not in str([one for one in samples(metrics) if "promise" in one[0]])


def test_the_slack_of_the_worst_job_is_told_while_one_waits() -> None:
    metrics = make()
    metrics.scaled(attrs.evolve(UP, slack_seconds=-3.5))
    assert value(metrics, "promise_slack_seconds", tenant="default") == -3.5
    metrics.scaled(UP)
    assert not [one for one in samples(metrics) if "slack" in one[0]]
    metrics.scaled(attrs.evolve(UP, slack_seconds=1.0), "acme")
    metrics.forget("acme")
    assert not [one for one in samples(metrics) if "slack" in one[0]]


def test_what_the_candidate_would_have_is_told_while_there_is_one() -> None:
    metrics = make()
    metrics.scaled(attrs.evolve(UP, candidate={"desired": 3}), "acme")
    assert value(metrics, "workers_desired_candidate", tenant="acme") == 3
    metrics.scaled(UP, "acme")
    assert not [one for one in samples(metrics) if "candidate" in one[0]]


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


def test_the_queue_tells_whether_it_is_paused_and_how_many_targets_are_halted() -> None:
    metrics = told_everything()
    assert value(metrics, "queue_paused", tenant="default") == 0
    since = datetime(2026, 1, 1, tzinfo=UTC)
    metrics.counts(Counts({}, 9, 3, 1.5, since, "ann", targets_halted=7))
    assert value(metrics, "queue_paused", tenant="default") == 1
    assert value(metrics, "targets_halted", tenant="default") == 7


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
    metrics.settled([settled()], "acme")
    metrics.crew(4, 0, 0, "acme")
    metrics.counts(Counts({}, 7, 5, 0.0, None, None), "acme")
    metrics.scaled(attrs.evolve(UP, desired=3, raw_wish=4), "acme")
    finished = {"kind": "report", "outcome": "succeeded"}
    assert value(metrics, "jobs_finished_total", tenant="acme", **finished) == 1
    assert value(metrics, "jobs_finished_total", tenant="default", **finished) == 1
    assert value(metrics, "workers", tenant="acme", state="idle") == 4
    assert value(metrics, "queue_depth", tenant="acme") == 5
    assert (value(metrics, "workers_desired"), value(metrics, "workers_desired_raw")) == (11, 14)


def test_all_that_counts_by_tenant_is_told_of_one() -> None:
    counting = {
        name
        for part in (Metrics, DutyMetrics, StoreHealthMetrics)
        for name, one in vars(part).items()
        if inspect.isfunction(one) and "tenant" in inspect.signature(one).parameters
    }
    assert counting - {"forget"} <= set(tell_everything.__code__.co_names)


def test_nothing_is_left_of_a_tenant_that_was_forgotten() -> None:
    metrics = make()
    tell_everything(metrics)
    before = set(samples(metrics))
    tell_everything(metrics, "acme")
    named = {name for name, labels in samples(metrics) if ("tenant", "acme") in labels}
    assert named == {name for name, (_, labels) in exported().items() if "tenant" in labels}
    metrics.forget("acme")
    metrics.forget("never seen")
    assert "acme" not in metrics.render().decode()
    assert set(samples(metrics)) == before
