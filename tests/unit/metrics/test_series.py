"""How many series there are, when they begin, and what is looked at only when somebody asks."""

from musterd.store.connections import ConnectionUse
from musterd.store.lifecycle import AttemptOutcome, JobState
from tests.support.metric_samples import BUCKETS, make, samples, settled, value


def test_a_first_failure_or_retry_is_a_rise_from_nothing() -> None:
    metrics = make()
    metrics.settled([settled()])
    metrics.store_operation("claim", 0.1)
    labels = {"tenant": "default", "kind": "report"}
    assert value(metrics, "jobs_finished_total", outcome="failed", **labels) == 0
    assert value(metrics, "jobs_finished_total", outcome="canceled", **labels) == 0
    assert value(metrics, "job_retries_total", kind="report") == 0
    assert value(metrics, "store_errors_total", operation="claim") == 0


def test_connections_are_looked_at_when_somebody_asks() -> None:
    metrics = make()
    metrics.watch_connections(lambda: ConnectionUse(idle=1, busy=2, most=6, waiting=4))
    assert value(metrics, "store_connections", state="idle") == 1
    assert value(metrics, "store_connections", state="busy") == 2
    assert value(metrics, "store_connections_max") == 6
    assert value(metrics, "store_connections_waiting") == 4


def test_a_node_that_drains_says_so() -> None:
    metrics = make()
    assert value(metrics, "node_draining") == 0
    metrics.draining()
    assert value(metrics, "node_draining") == 1


def test_a_rendering_is_timed() -> None:
    metrics = make()
    metrics.render()
    assert value(metrics, "metrics_render_seconds") > 0


def test_ten_thousand_kinds_have_as_many_series_as_two_hundred() -> None:
    metrics = make(kinds_max=200)
    before = len(samples(metrics))
    ends = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED)
    outcomes = (AttemptOutcome.SUCCEEDED, AttemptOutcome.FAILED, AttemptOutcome.CANCELED)
    for number in range(10_000):
        kind = f"kind{number}"
        metrics.claimed(kind, [0.0])
        metrics.settled([settled(kind, *end) for end in zip(outcomes, ends, strict=True)])
    a_kind = 3 + 1 + (1 + 3) * (len(BUCKETS) + 3)  # ends, retries, four histograms
    assert len(samples(metrics)) - before == 201 * a_kind
    left = {"tenant": "default", "kind": "other", "outcome": "failed"}
    assert value(metrics, "jobs_finished_total", **left) == 9_800


def test_a_kind_that_is_named_other_counts_with_the_others() -> None:
    metrics = make(kinds_max=1)
    for kind in ("a", "other", "b"):
        metrics.claimed(kind, [0.0])
    assert value(metrics, "job_wait_seconds_count", kind="other") == 2


def test_kinds_beyond_the_bound_share_one_label() -> None:
    metrics = make(kinds_max=2)
    for kind in ("a", "b", "c", "d"):
        metrics.claimed(kind, [0.0])
        metrics.settled([settled(kind)])
        retrying = settled(kind, AttemptOutcome.RETRYING, JobState.QUEUED)
        metrics.settled([retrying])
    labels = {dict(labels).get("kind") for _, labels in samples(metrics)}
    assert labels == {None, "a", "b", "other"}
    assert value(metrics, "job_wait_seconds_count", kind="other") == 2
    assert value(metrics, "job_retries_total", kind="other") == 2
