"""Two real daemons on one PostgreSQL, and jobs with targets: one at a time, in order, whoever runs
them; halted, steered and explained from outside.
"""

from __future__ import annotations

from collections.abc import Generator
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.command import Home, eventually, kinds_in

CATALOG = """
[kinds.quick]
duration_ms = [1, 20]
fail_first = 1
retryable = true
[kinds.quick.retry]
base_seconds = 0.05
[kinds.bad]
outcome = "fail"
"""
TARGETS, JOBS_EACH = 6, 12
ADD = """
    select musterd.enqueue('quick', target => 'target ' || number %% %s)
    from generate_series(0, %s) number order by number
"""
RUNS = """
    select target, id, finished_at, (select min(past.started_at) from musterd.attempts past
                                     where past.job_id = id) as began_at
    from musterd.jobs where kind = 'quick' order by target, id
"""


@pytest.fixture
def kinds(tmp_path: Path) -> tuple[str, str]:
    return kinds_in(tmp_path, CATALOG)


@pytest.fixture
def conn(server_home: Home, kinds: tuple[str, str]) -> Generator[psycopg.Connection[Any]]:
    with server_home.daemon(*kinds) as one, server_home.daemon(*kinds) as two:
        one.wait_until_ready()
        two.wait_until_ready()
        with psycopg.connect(server_home.store_url, autocommit=True) as conn:
            yield conn


def test_jobs_of_a_target_run_one_at_a_time_and_in_order(conn: psycopg.Connection[Any]) -> None:
    """Each fails once, and keeps its place while it waits for its retry."""
    conn.execute(ADD, (TARGETS, TARGETS * JOBS_EACH - 1))
    left = "select count(*) from musterd.jobs where state <> 'succeeded'"
    eventually(lambda: conn.execute(left).fetchone() == (0,), 60)
    runs = conn.execute(RUNS).fetchall()
    assert len(runs) == TARGETS * JOBS_EACH
    for before, after in pairwise(runs):
        if before[0] == after[0]:
            assert before[2] <= after[3], (before, after)  # it had ended before this one began
    nodes = conn.execute("select count(distinct node) from musterd.job_rows").fetchone()
    assert nodes == (2,)


def test_a_halted_target_is_explained_and_goes_on_when_seen_to(
    server_home: Home, kinds: tuple[str, str], conn: psycopg.Connection[Any]
) -> None:
    bad = server_home.call("enqueue", "bad", "--target", "disk", "--json", *kinds).json["id"]
    eventually(lambda: server_home.call("job", str(bad), "--json").json["state"] == "failed", 20)
    waiting = server_home.call("enqueue", "quick", "--target", "disk", "--json", *kinds).json["id"]
    halted = eventually_first_reason(server_home, waiting, "target_halted")
    assert halted["what"]["job"] == bad
    assert f"musterd clear {bad}" in halted["do"]
    assert server_home.call("clear", str(bad)).code == 0
    eventually(
        lambda: server_home.call("job", str(waiting), "--json").json["state"] == "succeeded", 20
    )
    ((state,),) = conn.execute("select state from musterd.jobs where id = %s", (bad,)).fetchall()
    assert state == "failed"  # which is what it came to; it halts nothing any more


def eventually_first_reason(server_home: Home, job_id: int, code: str) -> dict[str, Any]:
    def first() -> dict[str, Any]:
        found: dict[str, Any] = server_home.call("why", str(job_id), "--json").json["reasons"][0]
        return found

    eventually(lambda: first()["code"] == code, 20)
    return first()
