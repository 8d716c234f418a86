"""Every query of every dashboard is asked of a real Prometheus that has watched real daemons: two
of them under load, with failures, retries, webhooks, a reload, a store in trouble, and a death.
"""

from __future__ import annotations

import math
import secrets
import signal
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import attrs
import psycopg
import pytest

from musterd import Client
from tests.support.command import SHORT_DUTIES, Daemon, Home, eventually
from tests.support.grafana import Asked, asked, choices, chosen, dashboards, filled, spans
from tests.support.hooked import Say, hooked
from tests.support.manifests import manifest
from tests.support.postgres_server import PostgresServer
from tests.support.prometheus import Prometheus, prometheus

SETTINGS = """
[workers]
max_count = 6
lease_timeout_seconds = 3
scale_interval_ms = 500
[store]
lock_timeout_seconds = 0.3
[webhooks]
allow_private = true
allow_http = true
retry_base_seconds = 0.2
secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
[schedules.mine]
kind = "noop"
every_seconds = 3600
[schedules.theirs]
kind = "noop"
every_seconds = 3600
tenant = "acme"
[tenants.acme]
"""
KINDS = ("noop", "report", "flaky", "broken", "sleep")
CHOICES: tuple[str, ...] = ("job", "instance", "tenant", "kind")
TENANTS = ("default", "acme")
FALLBACK = " or vector(0)"  # a query has to find something without it
OF_AN_HOUR = "musterd_model_error_ratio"  # there once an hour is over
LOCKED_SECONDS = 2.0
SEEN_SECONDS = 20.0
SEEN = (
    "sum(musterd_leases_requeued_total) > 0",
    "sum(musterd_store_errors_total) > 0",
    "sum(musterd_job_retries_total) > 0",
    'sum(musterd_webhooks_total{result="delivered"}) > 0',
    'sum(musterd_jobs_finished_total{outcome="failed"}) > 0',
    "max(musterd_config_generation) > 1",
    "count(count by (tenant) (musterd_queue_depth)) == 2",  # the survivor has the duty
    *(f'sum(musterd_jobs_finished_total{{tenant="{tenant}"}}) > 0' for tenant in TENANTS),
)


@attrs.frozen
class Watched:
    """What was seen, and since when."""

    prometheus: Prometheus
    began: float

    def values(self, query: Asked, variables: dict[str, str]) -> list[float]:
        """All numbers that the query gives over the whole time, or now."""
        end = time.time()
        expr = filled(query.expr, variables | spans(1, 1, end - self.began))
        if query.instant:
            found = self.prometheus.query(expr)
            numbers = [series["value"] for series in found]
        else:
            found = self.prometheus.query_range(expr, self.began, end)
            numbers = [value for series in found for value in series["values"]]
        return [number for _, text in numbers if math.isfinite(number := float(text))]


@pytest.fixture(scope="module")
def url(postgres: PostgresServer) -> Generator[str]:
    name = f"dashboards_{secrets.token_hex(6)}"
    yield postgres.create_database(name)
    postgres.start()
    postgres.drop_database(name)


@pytest.fixture(scope="module")
def watched(url: str, tmp_path_factory: pytest.TempPathFactory) -> Generator[Watched]:
    folder = tmp_path_factory.mktemp("dashboards")
    home, file = Home(folder / "state", url), folder / "musterd.toml"
    file.write_text(SETTINGS)
    options = ("--config", str(file), *SHORT_DUTIES)
    with home.daemon(*options) as one, home.daemon(*options) as two:
        for daemon in (one, two):
            daemon.wait_until_ready()
            daemon.wait_for_line("tenant ready.*tenant=acme")
        began = time.time()
        targets = [daemon.address.removeprefix("http://") for daemon in (one, two)]
        with prometheus(folder, targets) as found:
            _live_through(url, file, one, two)
            _wait_until_seen(found, one)
            yield Watched(found, began)


def _wait_until_seen(found: Prometheus, survivor: Daemon) -> None:
    deadline = time.monotonic() + SEEN_SECONDS
    while missing := [expr for expr in SEEN if not found.query(expr)]:
        assert time.monotonic() < deadline, "\n".join((*missing, *survivor.log))
        time.sleep(0.2)


def _live_through(url: str, file: Path, one: Daemon, two: Daemon) -> None:
    """Load, a reload, a lock that holds up the store, and the death of one node at work."""
    with hooked([Say(503)] * 3) as receiver:
        for tenant in TENANTS:
            _enqueue(url, tenant, receiver.url)
        file.write_text(SETTINGS + "[tenants.acme.workers]\nmax_count = 4\n")
        one.send(signal.SIGHUP)
        with psycopg.connect(url) as session:
            session.execute("lock table musterd.job_rows in access exclusive mode")
            time.sleep(LOCKED_SECONDS)
        with Client(url) as client:
            client.enqueue_many([{"kind": "slow", "priority": 100}] * 12)
        two.wait_for_line("crew resized")
        eventually(lambda: _running_on_both(url))
        two.send(signal.SIGKILL)
        two.end()
        eventually(lambda: len(receiver.got) > 10)


def _enqueue(url: str, tenant: str, webhook: str) -> None:
    with Client(url, tenant=tenant) as client:
        for kind in KINDS:
            client.enqueue_many([{"kind": kind, "webhook": webhook}] * 20)
        client.enqueue("broken", target="disk")
        client.enqueue("noop", target="disk")


def _running_on_both(url: str) -> bool:
    with psycopg.connect(url) as session:
        found = session.execute(
            "select count(distinct lease_owner) from musterd.jobs"
            " where kind = 'slow' and state = 'running'"
        ).fetchone()
    return found == (2,)


def all_asked() -> Sequence[Asked]:
    found = [query for dashboard in dashboards() for query in asked(dashboard)]
    return [one for one in found if OF_AN_HOUR not in one.expr]


def test_every_query_finds_something(watched: Watched) -> None:
    everything: dict[str, str] = dict.fromkeys(CHOICES, ".*")
    silent = [
        f"{query.place}: {query.expr}"
        for query in all_asked()
        if not watched.values(
            attrs.evolve(query, expr=query.expr.removesuffix(FALLBACK)), everything
        )
    ]
    assert not silent, "\n" + "\n".join(silent)


def test_every_query_finds_something_where_values_are_chosen(watched: Watched) -> None:
    options = {one.name: one for dashboard in dashboards() for one in choices(dashboard)}
    values: dict[str, str] = {}
    for name in CHOICES:  # each asks with those before it
        series, label = filled(options[name].series, values), options[name].label
        found = watched.prometheus.label_values(label, series)
        assert found, name
        values[name] = chosen(found)
    silent = [
        f"{query.place}: {filled(query.expr, values | spans(1, 1, 60))}"
        for query in all_asked()
        if not watched.values(query, values)
    ]
    assert not silent, "\n" + "\n".join(silent)


def test_the_variables_offer_what_there_is(watched: Watched) -> None:
    everything: dict[str, str] = dict.fromkeys(CHOICES, ".*")
    offered: dict[str, list[str]] = {}
    for dashboard in dashboards():
        for one in choices(dashboard):
            found = watched.prometheus.label_values(one.label, filled(one.series, everything))
            assert offered.setdefault(one.name, found) == found, one.place
    assert offered["job"] == ["musterd"]
    assert len(offered["instance"]) == 2
    assert offered["tenant"] == sorted(TENANTS)
    assert set(KINDS) <= set(offered["kind"])


def test_gauges_of_the_store_are_never_counted_twice(watched: Watched) -> None:
    """Two nodes may export them for a moment, so each query takes the largest by tenant."""
    exported = (
        *("musterd_jobs{", "musterd_queue_", "musterd_jobs_enqueued_total", "musterd_store_size"),
        *("musterd_targets_halted", "musterd_store_horizon", "musterd_store_dead"),
    )
    for query in all_asked():
        if any(name in query.expr for name in exported):
            assert "max by (tenant" in query.expr, query.place
            assert "instance=" not in query.expr, query.place
    assert watched.prometheus.query("count(musterd_queue_depth) by (tenant)")


def test_what_a_quantile_is_made_of_has_its_bounds(watched: Watched) -> None:
    quantiles: list[Any] = [query for query in all_asked() if "histogram_quantile" in query.expr]
    assert len(quantiles) > 5
    assert all("sum by (le" in query.expr for query in quantiles)
    assert watched.prometheus.query('musterd_job_wait_seconds_bucket{le="+Inf"}')


def test_keda_finds_one_number(watched: Watched) -> None:
    """By the query as it stands: its label `job` is what the PodMonitor's `jobLabel` makes."""
    (trigger,) = manifest("ScaledObject")["spec"]["triggers"]
    (found,) = watched.prometheus.query(trigger["metadata"]["query"])
    assert float(found["value"][1]) >= 0
    values = [
        float(value)
        for series in watched.prometheus.query_range(
            trigger["metadata"]["query"], watched.began, time.time()
        )
        for _, value in series["values"]
    ]
    assert max(values) >= 12  # the slow ones alone
