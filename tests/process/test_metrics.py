"""What a real daemon under load exports, on either store: all that was promised, in good form."""

from __future__ import annotations

import json
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.command import Daemon, Home, eventually
from tests.support.http_client import ask
from tests.support.metric_pages import exported
from tests.support.metric_samples import HISTOGRAMS, PROMISED
from tests.support.missing import program

# What dashboards and scripts hold on to: the labels by name.
EXPECTED = {
    **PROMISED,
    **{f"{name}_bucket": {*labels, "le"} for name, labels in HISTOGRAMS.items()},
}
LABELS = {
    "state": {"pending", "queued", "assigned", "running", "paused", "succeeded", "failed"}
    | {"canceled", "idle", "busy", "retiring"},
    "direction": {"up", "down", "hold"},
    "result": {"ok", "error", "given_up", "delivered", "failed", "retried"},
}
KINDS = """
[kinds.flaky]
duration_ms = 1
retryable = true
fail_first = 1
retry = {base_seconds = 0.01}
[kinds.broken]
duration_ms = 1
outcome = "fail"
[kinds.long]
duration_ms = 60000
"""

Found = dict[str, list[dict[str, str]]]


def scrape(daemon: Daemon) -> Found:
    """The labels of all samples, by name."""
    found: Found = {}
    for family in text_string_to_metric_families(ask(daemon.address, "/metrics").text):
        for sample in family.samples:
            found.setdefault(sample.name.removeprefix("musterd_"), []).append(sample.labels)
    return found


def value(daemon: Daemon, name: str) -> float:
    text = ask(daemon.address, "/metrics").text
    lines = [line for line in text.splitlines() if line.startswith(f"{name} ")]
    return float(lines[0].split()[1])


def work(daemon: Daemon) -> None:
    for kind, target in (("flaky", None), ("broken", "a"), ("noop", "a"), ("noop", None)):
        for _ in range(20):
            enqueue(daemon, kind, target)
    eventually(lambda: ended(daemon, "flaky") == 20 and ended(daemon, "broken") == 1)


def enqueue(daemon: Daemon, kind: str, target: str | None = None) -> None:
    body = json.dumps({"kind": kind, "target": target}).encode()
    headers = {"Content-Type": "application/json"}
    assert ask(daemon.address, "/jobs", headers, method="POST", body=body).status == 201


def ended(daemon: Daemon, kind: str) -> float:
    text = ask(daemon.address, "/metrics").text
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "musterd_jobs_finished_total" and sample.labels["kind"] == kind
    )


@pytest.fixture
def config(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "kinds.toml").write_text(KINDS)
    (tmp_path / "musterd.toml").write_text('[catalog]\npaths = ["kinds.toml"]\n')
    return ("--config", str(tmp_path / "musterd.toml"))


def test_a_daemon_under_load_exports_what_was_promised(
    machine: Home, config: tuple[str, ...]
) -> None:
    with machine.daemon(*config) as daemon:
        daemon.wait_until_ready()
        work(daemon)
        eventually(lambda: set(EXPECTED) <= scrape(daemon).keys())
        found = scrape(daemon)
        for name, labels in EXPECTED.items():
            for one in found[name]:
                assert one.keys() == labels, name
                assert all(one[key] in LABELS[key] for key in one.keys() & LABELS.keys())
        assert not [name for name in found if name.endswith("_created")]
        assert {one["kind"] for one in found["job_run_seconds_bucket"]} == {
            *("flaky", "broken", "noop")
        }
        families = text_string_to_metric_families(ask(daemon.address, "/metrics").text)
        documented = {name.removesuffix("_total") for name in exported()}
        assert {family.name for family in families} <= documented
        assert in_good_form(ask(daemon.address, "/metrics").body)


def in_good_form(text: bytes) -> bool:
    done = subprocess.run(
        [program("promtool", "prometheus"), "check", "metrics"],
        input=text,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")
    return True


def test_a_daemon_that_drains_says_so_and_is_scraped_by_many_at_once(
    home: Home, config: tuple[str, ...]
) -> None:
    with home.daemon(*config) as daemon:
        daemon.wait_until_ready()
        enqueue(daemon, "long")
        eventually(lambda: ask(daemon.address, "/jobs/1").json["state"] == "running")
        assert value(daemon, "musterd_node_draining") == 0
        assert value(daemon, "musterd_store_connections_max") == 1
        with ThreadPoolExecutor(20) as many:
            answers = list(many.map(ask, [daemon.address] * 60, ["/metrics"] * 60))
        assert [answer.status for answer in answers] == [200] * 60
        daemon.send(signal.SIGTERM)
        eventually(lambda: value(daemon, "musterd_node_draining") == 1)
        daemon.send(signal.SIGTERM)
        assert daemon.end() == 0
