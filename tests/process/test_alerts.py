"""A real Prometheus with the shipped rules watches a real daemon that is broken on purpose.

The rules are a hundred times faster than they are shipped: half an hour is 18 seconds.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Generator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import psycopg
import pytest

from musterd import Client
from tests.fix_postgres import FreshDatabase
from tests.support.command import Daemon, Home, eventually
from tests.support.http_client import ask
from tests.support.metric_pages import RULES, exported, metrics_in
from tests.support.pages import DOCS, blocks
from tests.support.prometheus import Prometheus, prometheus
from tests.support.sped_up import sped_up

FACTOR = 100
BREAK_SECONDS = 75.0
PUMP_SECONDS = 0.25
SETTINGS = """
[workers]
max_count = 24
lease_timeout_seconds = 6

[tenants.acme.workers]
default_count = 1
max_count = 2

[catalog]
paths = ["kinds.toml"]

[webhooks]
allow_private = true
allow_http = true
retry_base_seconds = 0.2
retry_max_seconds = 1
"""
KINDS = """
[kinds.slow]
duration_ms = 2000
[kinds.broken]
duration_ms = 1
outcome = "fail"
[kinds.stormy]
duration_ms = 1
retryable = true
fail_first = 5000
retry = {max_retries = 6000, backoff = "fixed", base_seconds = 0.2, jitter = "none"}
"""
EXPIRE_ONE = """
    update musterd.leases set expires_at = clock_timestamp() - interval '1 second'
    where id = (select lease_id from musterd.in_hand where started_at is not null and kind = 'slow'
                order by id desc limit 1)
"""
MANY, FIRST, LAST = 10, 9, -9  # jobs at once; priorities
NOWHERE = "http://127.0.0.1:9/hook"  # nobody listens there

pytestmark = [
    pytest.mark.timeout(180),
]


@attrs.frozen
class Watched:
    """A daemon of two tenants that works well, and the Prometheus that watches it."""

    home: Home
    folder: Path
    daemon: Daemon
    prometheus: Prometheus
    conn: psycopg.Connection[Any]

    def client(self, tenant: str = "default") -> Client:
        return Client(self.home.store_url, tenant=tenant)

    def post(self, path: str) -> None:
        assert ask(self.daemon.address, path, method="POST").status == 200

    def fires(self) -> dict[str, dict[str, str]]:
        """The alerts that fire, with the labels of one of each."""
        found = [one for one in self.prometheus.alerts() if one["state"] == "firing"]
        return {one["labels"]["alertname"]: one["labels"] for one in found}


@pytest.fixture
def watched(tmp_path: Path, fresh_database: FreshDatabase) -> Generator[Watched]:
    home = Home(tmp_path / "state", fresh_database())
    (tmp_path / "musterd.toml").write_text(SETTINGS)
    (tmp_path / "kinds.toml").write_text(KINDS)
    rules = tmp_path / "fast.rules.yml"
    rules.write_text(sped_up(RULES.read_text(), FACTOR))
    with ExitStack() as stack:
        daemon = stack.enter_context(home.daemon("--config", str(tmp_path / "musterd.toml")))
        daemon.wait_until_ready()
        target = daemon.address.removeprefix("http://")
        conn = stack.enter_context(psycopg.connect(home.store_url, autocommit=True))
        watching = stack.enter_context(prometheus(tmp_path, [target], [rules]))
        yield Watched(home, tmp_path, daemon, watching, conn)


@attrs.define
class Trouble:
    """What is done to the daemon again and again, until all alerts have fired."""

    watched: Watched
    seen: dict[str, dict[str, str]] = attrs.field(factory=dict[str, dict[str, str]], init=False)
    rounds: int = attrs.field(default=0, init=False)

    def until(self, wanted: set[str]) -> None:
        deadline = time.monotonic() + BREAK_SECONDS
        with self.watched.client() as client:
            while not wanted <= self.seen.keys():
                missing = wanted - self.seen.keys()
                assert time.monotonic() < deadline, f"{missing}\n{self.watched.prometheus.alerts()}"
                self._round(client)
                self.seen |= self.watched.fires()
                time.sleep(PUMP_SECONDS)

    def _round(self, client: Client) -> None:
        client.enqueue_many(jobs("slow", MANY))  # more than are done
        hook = {"webhook": NOWHERE} if self.rounds < MANY else {}
        client.enqueue("broken", priority=FIRST, **hook)
        self.watched.conn.execute(EXPIRE_ONE)
        self.rounds += 1


def jobs(kind: str, count: int) -> list[tuple[str, Any]]:
    return [(kind, {})] * count


def begin(watched: Watched) -> None:
    """What is broken once."""
    with watched.client() as client:
        client.enqueue("broken", target="a switch", priority=FIRST)
        for _ in range(MANY // 2):
            client.enqueue("stormy", priority=FIRST)
        client.enqueue("slow", priority=LAST, run_at=an_hour_ago())
    (watched.folder / "musterd.toml").write_text(SETTINGS + "[limits]\nmax_runing = 3\n")
    watched.daemon.send(signal.SIGHUP)


def an_hour_ago() -> datetime:
    return datetime.now(UTC) - timedelta(hours=1)


def lock_the_jobs_of_acme(watched: Watched, blocker: psycopg.Connection[Any]) -> None:
    """They can be read and counted, and none can be claimed."""
    watched.post("/queue/pause?tenant=acme")
    with watched.client("acme") as client:
        client.enqueue("slow", run_at=an_hour_ago())
    blocker.execute("lock table musterd_acme.ready in share mode")
    watched.post("/queue/resume?tenant=acme")


def test_alerts_fire_for_what_is_broken_and_for_nothing_else(watched: Watched) -> None:
    with watched.client() as client:
        client.enqueue_many(jobs("noop", 50))
    each_series_is_there(watched)
    all_queries_of_the_pages_are_understood(watched)
    eventually(lambda: watched.fires() == {})  # nothing is wrong
    trouble = Trouble(watched)
    with psycopg.connect(watched.home.store_url) as blocker:
        begin(watched)
        lock_the_jobs_of_acme(watched, blocker)
        trouble.until(
            {
                *("MusterdReloadFailed", "MusterdTargetHalted", "MusterdFailureRatio"),
                *("MusterdRetryStorm", "MusterdQueueLatencyHigh", "MusterdQueueStalled"),
                *("MusterdWebhookFailing", "MusterdAtMaxWorkers", "MusterdBacklogGrowing"),
                "MusterdLeasesExpiring",
            }
        )
        watched.daemon.process.kill()
        eventually(lambda: "MusterdNoDaemon" in watched.fires())
    labels = trouble.seen
    # Slow ones fail as well, once their leases have run out often enough.
    assert labels["MusterdFailureRatio"]["kind"] in {"broken", "slow"}
    assert labels["MusterdRetryStorm"]["kind"] == "stormy"
    assert labels["MusterdTargetHalted"]["tenant"] == "default"
    assert labels["MusterdQueueStalled"]["tenant"] == "acme"
    innocent = {"MusterdNoLeader", "MusterdVersionSkew", "MusterdQueuePaused", "MusterdNoDaemon"}
    assert not innocent & labels.keys()


def each_series_is_there(watched: Watched) -> None:
    """Every metric that has a page, but for those that need more than a quiet daemon."""
    ask_for = watched.prometheus.query
    named = 'count by (__name__) ({__name__=~"musterd_.+"})'

    def told() -> set[str]:
        names = {one["metric"]["__name__"] for one in ask_for(named)}
        return {family for name in names for family in metrics_in(name)}

    wanted = {name for name in exported() if name.startswith("musterd_")}
    wanted.discard("musterd_scale_limited_total")  # nothing was limited, perhaps
    wanted.discard("musterd_workers_desired_candidate")  # there is none
    wanted.discard("musterd_model_error_ratio")  # no hour is over
    wanted -= {name for name in wanted if name.startswith("musterd_promise_")}  # none is made
    eventually(lambda: wanted <= told())
    assert told() <= set(exported()), "each has a page"


def all_queries_of_the_pages_are_understood(watched: Watched) -> None:
    for path in sorted(DOCS.rglob("*.md")):
        for block in blocks(path.read_text("utf-8"), "promql"):
            for query in block.text.split("\n\n"):
                watched.prometheus.query(query)
