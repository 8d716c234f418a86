"""Three real daemons on one PostgreSQL as one system: who does what, and who takes it over."""

from __future__ import annotations

import signal
import time
import urllib.request
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import attrs
import psycopg
import pytest

from musterd.manager.duties.duty import DUTIES
from tests.fix_postgres import FreshDatabase
from tests.support.command import Daemon, Home, eventually

LEASE_SECONDS = 3.0
SETTINGS = f"""
[duties]
lease_seconds = {LEASE_SECONDS}
heartbeat_seconds = 0.5

[schedules.each-second]
kind = "noop"
every_seconds = 1
missed = "all"
"""
HOLDERS = "select duty, node from musterd.duty_leaders where is_held"
FIRED = """
    select fired, (select count(*) from musterd.jobs), extract(epoch from last_slot - first.at)
    from musterd.schedules, (select min(created_at) as at from musterd.jobs) first
"""


@attrs.frozen
class Cluster:
    home: Home
    daemons: list[Daemon]
    conn: psycopg.Connection[Any]

    def holders(self) -> dict[str, str]:
        return dict(self.conn.execute(HOLDERS).fetchall())

    def name_of(self, daemon: Daemon) -> str:
        return daemon.wait_for_line("event=ready").partition("node=")[2].split()[0]

    def of(self, duty: str) -> Daemon:
        node = self.holders()[duty]
        return next(one for one in self.daemons if self.name_of(one) == node)

    def all_are_held_by_others_than(self, daemon: Daemon) -> bool:
        held = self.holders()
        return set(held) == set(DUTIES) and self.name_of(daemon) not in held.values()

    def each_slot_has_one_job(self) -> None:
        """As many jobs as slots have passed since the first, and as many as were fired."""
        ((fired, jobs, seconds),) = self.conn.execute(FIRED).fetchall()
        assert fired == jobs
        assert jobs - 1 == pytest.approx(float(seconds), abs=1.01)


@pytest.fixture
def cluster(tmp_path: Path, fresh_database: FreshDatabase) -> Generator[Cluster]:
    (tmp_path / "musterd.toml").write_text(SETTINGS)
    home = Home(tmp_path / "state", fresh_database())
    with ExitStack() as stack:
        options = ("--config", str(tmp_path / "musterd.toml"))
        daemons = [stack.enter_context(home.daemon(*options)) for _ in range(3)]
        for daemon in daemons:
            daemon.wait_until_ready()
        conn = stack.enter_context(psycopg.connect(home.store_url, autocommit=True))
        found = Cluster(home, daemons, conn)
        eventually(lambda: set(found.holders()) == set(DUTIES), 20)
        eventually(lambda: conn.execute("select from musterd.jobs").fetchone() is not None)
        yield found
        verified = home.call("verify", *options, "--json")
        assert verified.code == 0, verified.out


def gauges(daemon: Daemon) -> list[str]:
    with urllib.request.urlopen(f"{daemon.address}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    return [line for line in lines if line.startswith("musterd_queue_depth{")]


def test_duties_are_spread_and_one_node_exports_the_queue(cluster: Cluster) -> None:
    eventually(lambda: len(set(cluster.holders().values())) == 3, 30)
    exporting = [daemon for daemon in cluster.daemons if gauges(daemon)]
    assert exporting == [cluster.of("metrics")]
    shown = cluster.home.call("duties", "--json").lines
    assert {one["duty"]: one["node"] for one in shown} == cluster.holders()
    told = cluster.home.call("events", "--type", "duty.acquired", "--json").lines
    assert {one["data"]["duty"] for one in told} == set(DUTIES)


def test_a_draining_nodes_duties_are_anothers_within_a_second(cluster: Cluster) -> None:
    leaving = cluster.of("schedules")
    leaving.send(signal.SIGTERM)
    leaving.wait_for_line("duties released")
    given_up = time.monotonic()
    eventually(lambda: cluster.all_are_held_by_others_than(leaving), 5)
    assert time.monotonic() - given_up < 3  # a second, on a machine that has nothing else to do
    assert leaving.end() == 0
    time.sleep(2)
    cluster.each_slot_has_one_job()


def test_a_killed_nodes_duties_are_anothers_when_its_leases_have_run_out(
    cluster: Cluster,
) -> None:
    victim = cluster.of("schedules")
    victim.process.kill()
    died = time.monotonic()
    eventually(lambda: cluster.all_are_held_by_others_than(victim), 20)
    assert time.monotonic() - died < LEASE_SECONDS + 6
    time.sleep(2)
    cluster.each_slot_has_one_job()  # also those that nobody was there for


def test_a_frozen_node_steps_down_when_it_wakes_up(cluster: Cluster) -> None:
    frozen = cluster.of("schedules")
    frozen.send(signal.SIGSTOP)
    eventually(lambda: cluster.all_are_held_by_others_than(frozen), 20)
    frozen.send(signal.SIGCONT)
    frozen.wait_for_line("duties released")
    time.sleep(2)
    cluster.each_slot_has_one_job()
    assert set(cluster.holders()) == set(DUTIES)
