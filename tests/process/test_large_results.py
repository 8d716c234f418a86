"""Results that are larger than is kept: the job says how large, and how large they may be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from musterd import Client
from tests.support.command import Home, eventually, kinds_in

MODULE = "def large(job): return 'x' * job.payload\n"
KINDS = """
[kinds.python]
python = "large:large"
[kinds.command]
command = ["head", "-c", "20000000", "/dev/zero"]
"""
MIB = 1_048_576


@pytest.mark.parametrize(
    ("kind", "payload", "found"),
    [
        ("python", 2 * MIB, f"{2 * MIB + 2} bytes"),
        ("python", 20 * MIB, f"{20 * MIB + 2} bytes"),
        ("command", None, r"more than \d+ bytes"),
    ],
)
def test_the_job_says_what_was_found_and_what_is_wanted(
    home: Home, tmp_path: Path, kind: str, payload: object, found: str
) -> None:
    (tmp_path / "large.py").write_text(MODULE)
    options = (*kinds_in(tmp_path, KINDS), "--set", f'catalog.python_path=["{tmp_path}"]')
    with home.daemon(*options) as daemon:
        daemon.wait_until_ready()
        with Client(f"sqlite:///{home.folder.resolve()}/musterd.db") as client:
            job_id = client.enqueue(kind, payload)
        eventually(lambda: home.job(job_id)["state"] == "failed")
        job = home.job(job_id)
    assert job["error"]["type"] == "result_invalid", job["error"]
    assert re.search(f"found {found}, wanted at most [0-9]+ ", job["error"]["message"]), job
    assert len(job["attempts"]) == 1
