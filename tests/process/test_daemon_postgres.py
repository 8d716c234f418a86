"""Daemons on a real PostgreSQL: killed, frozen, cut off from it, two at a time. Nothing is lost."""

from __future__ import annotations

import signal
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.command import SHORT_DUTIES, Home, eventually, kinds_in
from tests.support.http_client import ask
from tests.support.postgres_server import PostgresServer

LEASE_SECONDS = 3.0
RECOVERY_SECONDS = LEASE_SECONDS + 2.0
SHORT_LEASE = ("--set", f"workers.lease_timeout_seconds={LEASE_SECONDS:g}")
CATALOG = """
[kinds.second]
duration_ms = 1000
retryable = true
[kinds.long]
duration_ms = 6000
"""


@pytest.fixture
def options(tmp_path: Path) -> tuple[str, ...]:
    return (*SHORT_LEASE, *SHORT_DUTIES, *kinds_in(tmp_path, CATALOG))


@pytest.fixture
def conn(server_home: Home) -> Generator[psycopg.Connection[Any]]:
    with psycopg.connect(server_home.store_url, autocommit=True) as conn:
        yield conn


def add(conn: psycopg.Connection[Any], kind: str, count: int) -> None:
    conn.execute(
        "insert into musterd.jobs (kind) select %s from generate_series(1, %s)", (kind, count)
    )


def states(conn: psycopg.Connection[Any]) -> dict[str, int]:
    return dict(conn.execute("select state, count(*) from musterd.jobs group by 1").fetchall())


def owners(conn: psycopg.Connection[Any]) -> set[str]:
    """The nodes that hold jobs now."""
    rows = conn.execute("select lease_owner from musterd.jobs where state = 'running'").fetchall()
    return {owner.rpartition("/")[0] for (owner,) in rows}


def test_two_daemons_share_the_work_and_a_killed_ones_jobs_are_recovered(
    server_home: Home, options: tuple[str, ...], conn: psycopg.Connection[Any]
) -> None:
    """Both make the schema at once; after kill -9 the other has the jobs within lease + 2 s."""
    with server_home.daemon(*options) as one, server_home.daemon(*options) as two:
        one.wait_until_ready()
        two.wait_until_ready()
        add(conn, "second", 16)
        eventually(lambda: len(owners(conn)) == 2)
        add(conn, "noop", 100)
        one.process.kill()
        killed = time.time()
        eventually(lambda: states(conn) == {"succeeded": 116}, seconds=30)
    found_lost = conn.execute(
        "select extract(epoch from finished_at)::float8 from musterd.attempts"
        " where outcome = 'lost'"
    ).fetchall()
    assert found_lost, "the killed daemon held jobs"
    assert max(at for (at,) in found_lost) - killed <= RECOVERY_SECONDS
    ran_twice = conn.execute(
        "select count(*) from musterd.attempts where outcome not in ('lost', 'released')"
    ).fetchone()
    assert ran_twice == (0,)


def test_a_frozen_daemon_that_wakes_up_too_late_changes_nothing(
    server_home: Home, options: tuple[str, ...], conn: psycopg.Connection[Any]
) -> None:
    with server_home.daemon(*options) as frozen:
        frozen.wait_until_ready()
        add(conn, "second", 1)
        eventually(lambda: states(conn) == {"running": 1})
        frozen.process.send_signal(signal.SIGSTOP)
        try:
            with server_home.daemon(*options) as other:
                other.wait_until_ready()
                eventually(lambda: states(conn) == {"succeeded": 1}, seconds=20)
                settled = conn.execute("select attempt, finished_at from musterd.jobs").fetchall()
        finally:
            frozen.process.send_signal(signal.SIGCONT)
        frozen.wait_for_line("lease lost|settlements refused")
        add(conn, "noop", 1)
        eventually(lambda: states(conn) == {"succeeded": 2})  # it works on
    assert settled[0][0] == 2
    unchanged = conn.execute(
        "select attempt, finished_at from musterd.jobs where id = 1"
    ).fetchall()
    assert unchanged == settled


def test_a_database_that_dies_under_load_loses_nothing(
    server_home: Home,
    options: tuple[str, ...],
    conn: psycopg.Connection[Any],
    postgres: PostgresServer,
) -> None:
    with server_home.daemon(*options, "--set", "workers.max_count=20") as daemon:
        daemon.wait_until_ready()
        add(conn, "noop", 5000)
        eventually(lambda: states(conn).get("succeeded", 0) > 50)
        conn.close()
        postgres.stop_hard()
        with psycopg.connect(server_home.store_url, autocommit=True) as again:
            eventually(lambda: states(again) == {"succeeded": 5000}, seconds=40)
            doubles = again.execute(
                "select count(*) from musterd.attempts where outcome = 'succeeded'"
            ).fetchone()
        assert doubles == (0,)
        assert ask(daemon.address, "/readyz").status == 200


def test_a_database_that_is_away_is_waited_for_and_named(
    server_home: Home, options: tuple[str, ...], postgres: PostgresServer
) -> None:
    with server_home.daemon(*options) as daemon:
        daemon.wait_until_ready()
        with postgres.down():
            assert server_home.call("enqueue", "noop").code == 69
            eventually(lambda: ask(daemon.address, "/readyz").status == 503)
            found = server_home.call("status", "--set", daemon.listen)
            assert found.code == 69
            assert "TROUBLE unreachable" in found.out + found.err
            assert daemon.process.poll() is None
        assert server_home.call("enqueue", "noop", "--wait").code == 0


@pytest.mark.parametrize("interrupted", ["requeue", "pause"])
def test_what_the_grace_period_does_not_suffice_for_is_given_back(
    server_home: Home, options: tuple[str, ...], conn: psycopg.Connection[Any], interrupted: str
) -> None:
    chosen = (f"shutdown.interrupted={interrupted}", "shutdown.grace_period_seconds=0.5")
    sets = [word for one in chosen for word in ("--set", one)]
    with server_home.daemon(*options, *sets) as daemon:
        daemon.wait_until_ready()
        add(conn, "long", 2)
        eventually(lambda: states(conn) == {"running": 2})
        daemon.process.terminate()
        assert daemon.process.wait(20) == 0
    if interrupted == "pause":
        assert states(conn) == {"paused": 2}
        assert server_home.job(1)["reason"] == "Job was interrupted by user"
        return
    assert states(conn) == {"queued": 2}
    found = server_home.job(1)
    assert [one["outcome"] for one in found["attempts"]] == ["released"]
    assert conn.execute("select distinct attempt, forgiven from musterd.job_rows").fetchall() == [
        (1, 1)
    ]
