"""A role that may only enqueue and act on jobs leaves its transaction open: it holds up what it has
touched, and nothing else of a daemon's work.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from musterd.store.postgres.migrating import apply_roles, role_names
from tests.support.command import Home, eventually, kinds_in

CATALOG = """
[kinds.second]
duration_ms = 1000
[kinds.long]
duration_ms = 6000
"""
SECONDS = 3.0  # less than the time that a statement may wait for a lock, twice
HELD_SECONDS = 5.0
OTHERS = 100


@contextmanager
def enqueuer(url: str) -> Generator[psycopg.Connection[Any]]:
    """A session of the role, in a transaction that is undone at the end of the block."""
    apply_roles(url, "musterd")
    role = role_names("musterd")["enqueue"]
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(f"create role shop login password 'secret' in role {role}".encode())
        try:
            with psycopg.connect(url, user="shop", password="secret") as conn:
                yield conn
                conn.rollback()
        finally:
            owner.execute("drop role shop")


def state(conn: psycopg.Connection[Any], job_id: int) -> str:
    row = conn.execute("select state from musterd.jobs where id = %s", (job_id,)).fetchone()
    assert row is not None
    return str(row[0])


@pytest.mark.parametrize("held", ["the target", "the job"])
def test_an_open_transaction_holds_up_its_own_job_alone(
    server_home: Home, tmp_path: Path, held: str
) -> None:
    options = (*kinds_in(tmp_path, CATALOG), "--set", "workers.max_count=20")
    with (
        server_home.daemon(*options) as daemon,
        psycopg.connect(server_home.store_url, autocommit=True) as main,
    ):
        daemon.wait_until_ready()
        main.execute(
            "insert into musterd.jobs (kind, target) values ('second', 't'), ('noop', 't')"
        )
        eventually(lambda: state(main, 1) == "running")
        with enqueuer(server_home.store_url) as weak:
            weak.execute("select musterd.cancel(%s)", (2 if held == "the target" else 1,))
            daemon.wait_for_line("end not yet written")
            began = time.monotonic()
            for _ in range(OTHERS // 10):
                main.execute(
                    "insert into musterd.jobs (kind) select 'noop' from generate_series(1, 10)"
                )
                time.sleep(0.05)
            count = "select count(*) from musterd.jobs where state = 'succeeded'"
            eventually(lambda: main.execute(count).fetchone() == (OTHERS,), SECONDS)
            assert state(main, 1) == "running"
            main.execute("insert into musterd.jobs (kind) values ('long')")
            eventually(lambda: state(main, OTHERS + 3) == "running", SECONDS)
            time.sleep(max(0.0, began + HELD_SECONDS - time.monotonic()))
            assert state(main, 1) == "running"
        eventually(lambda: state(main, 1) == state(main, 2) == "succeeded", SECONDS)
        row = main.execute("select count(*) from musterd.attempts").fetchone()
        assert row == (0,)  # nothing ran twice
        assert main.execute("select * from musterd.check()").fetchall() == []
