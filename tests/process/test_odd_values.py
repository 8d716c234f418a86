"""Values that no store can keep, from handlers in a process and in a thread, on both engines: each
ends its own job, under its own lease, and the daemon works on.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from musterd import Client
from tests.support.command import Home, kinds_in

HANDLERS = r"""
def spends_under_a_nul(job):
    job.spend(**{"a\0b": 1})

def spends_under_half_a_character(job):
    job.spend(**{"\ud800": 1})

def spends_without_end(job):
    job.spend(tokens=1e308)
    job.spend(tokens=1e308)

def spends_nothing_that_is_a_number(job):
    job.spend(tokens=float("nan"))

def notes_a_nul(job):
    job.progress(50, "a\0b")

def notes_half_a_character(job):
    job.progress(50, "\ud800")

def notes_no_number(job):
    job.progress(float("inf"), "far")

def logs_both(job):
    job.log("a\0b \ud800")

def raises_both(job):
    raise ValueError("a\0b \ud800")

def returns_a_nul(job):
    return "a\0b"

def returns_half_a_character(job):
    return {"\ud800": 1}

def returns_without_end(job):
    return float("inf")
"""
NAMES = [line.split()[1].partition("(")[0] for line in HANDLERS.splitlines() if "def " in line]
ISOLATIONS = ("process", "thread")


@pytest.fixture
def kinds(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "odd.py").write_text(HANDLERS)
    return kinds_in(
        tmp_path,
        "".join(
            f'[kinds.{name}-{isolation}]\npython = "odd:{name}"\nisolation = "{isolation}"\n'
            "retryable = true\nbudgets = { tokens = 10 }\n"
            for name in NAMES
            for isolation in ISOLATIONS
        ),
    )


def test_each_odd_value_ends_its_own_job_and_nothing_else(
    machine: Home, kinds: tuple[str, str]
) -> None:
    kinds_of_jobs = [f"{name}-{isolation}" for name in NAMES for isolation in ISOLATIONS]
    with machine.daemon(*kinds, "--set", "retry.base_seconds=0.01") as daemon:
        daemon.wait_until_ready()
        url = machine.store_url or f"sqlite:///{machine.folder.resolve()}/musterd.db"
        with Client(url) as client:
            ids = {client.enqueue(kind, {}): kind for kind in kinds_of_jobs}
            plain = client.enqueue("noop", {})
            for job_id, kind in ids.items():
                job = client.wait(job_id, 30)
                assert job["state"] in ("succeeded", "failed"), kind
                assert "lost" not in [one["outcome"] for one in job["attempts"]], kind
            assert client.wait(plain, 30)["state"] == "succeeded"
        assert daemon.process.poll() is None
