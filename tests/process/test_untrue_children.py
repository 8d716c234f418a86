"""Handlers whose processes forge, repeat or garble messages, in the real daemon: conservation of
jobs, seen from outside.
"""

from __future__ import annotations

import urllib.request
from pathlib import Path
from typing import Any

import pytest

from musterd import Client
from tests.support.command import Daemon, Home, eventually, kinds_in

USER = Path(__file__).parents[1] / "runners" / "user"
KINDS = """
[kinds]
echo = { python = "untrue:echo" }
forks = { python = "untrue:fork_that_comes_back" }
[kinds.says]
python = "untrue:says"
retryable = true
retry = { max_retries = 1, base_seconds = 0.1, backoff = "fixed" }
"""
ENDED = ("succeeded", "failed", "canceled")
ONE_WORKER = ("--set", "workers.default_count=1", "--set", "workers.max_count=1")
BAD = (
    "[]", "null", "[" * 50_000, '{"is": "end", "memory_bytes": [], "result": false}',
    '{"is": "note", "percent": "half"}', '{"is": "note", "percent": 1, "note": ["a"]}',
    '{"is": "end", "memory_bytes": 1, "ending": ["failure", null, [], 7, null, false, false]}',
    '{"is": "end", "memory_bytes": 1, "ending": ["snooze", null, [], "", "x", false, false]}',
)  # fmt: skip


@pytest.fixture
def home(machine: Home) -> Home:
    return machine


@pytest.fixture
def options(tmp_path: Path) -> tuple[str, ...]:
    return (*kinds_in(tmp_path, KINDS), "--set", f'catalog.python_path=["{USER}"]', *ONE_WORKER)


def enqueue(home: Home, kind: str, *payloads: object) -> list[int]:
    url = home.store_url or f"sqlite:///{home.folder.resolve()}/musterd.db"
    with Client(url) as client:
        return [client.enqueue(kind, payload) for payload in payloads]


def ended(home: Home, ids: list[int]) -> list[dict[str, Any]]:
    eventually(lambda: all(home.job(job_id)["state"] in ENDED for job_id in ids))
    return [home.job(job_id) for job_id in ids]


def contained(daemon: Daemon) -> float:
    with urllib.request.urlopen(f"{daemon.address}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    (line,) = [line for line in lines if 'faults_contained_total{where="child"}' in line]
    return float(line.split()[-1])


def test_each_job_gets_its_own_end_though_handlers_fork(
    home: Home, options: tuple[str, ...]
) -> None:
    with home.daemon(*options) as daemon:
        daemon.wait_until_ready()
        ids: list[int] = []
        for number in range(5):
            ids += enqueue(home, "forks", "return" if number % 2 else "exit")
            ids += enqueue(home, "echo", number)
        jobs = ended(home, ids)
    assert [job["result"] for job in jobs[::2]] == ["parent"] * 5
    assert [job["result"] for job in jobs[1::2]] == list(range(5))
    assert {(job["state"], len(job["attempts"])) for job in jobs} == {("succeeded", 1)}
    assert "forked by the handler, came back" in jobs[0]["attempts"][0]["log"]


def test_no_message_of_a_child_ends_the_daemon(home: Home, options: tuple[str, ...]) -> None:
    with home.daemon(*options) as daemon:
        daemon.wait_until_ready()
        bad = enqueue(home, "says", *([each] for each in BAD))
        good = enqueue(home, "echo", *range(5))
        jobs = ended(home, bad)
        assert [job["result"] for job in ended(home, good)] == list(range(5))
        assert contained(daemon) == 2 * len(BAD)
        assert daemon.process.poll() is None
    for job in jobs:
        outcomes = [attempt["outcome"] for attempt in job["attempts"]]
        assert outcomes == ["retrying", "failed"], job
        assert job["error"]["type"] == "child_died"
    assert [line for line in daemon.log if "fault contained" in line and "where=child" in line]
