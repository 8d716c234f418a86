"""What a handler that runs as the daemon's user can reach of the daemon."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from musterd import Client
from tests.support.command import COMMAND, Daemon, Home, eventually, kinds_in

MODULE = """
import os

def reached(job):
    found = {}
    for name in ("environ", "mem", "maps"):
        try:
            with open(f"/proc/{os.getppid()}/{name}", "rb") as file:
                file.read(0 if name == "mem" else 10)
            found[name] = "open"
        except PermissionError:
            found[name] = "closed"
    with open("/proc/self/environ", "rb") as own:
        found["own"] = "open" if own.read(1) else "empty"
    return found
"""
KINDS = """
[kinds.reached]
python = "reach:reached"
"""


def without_privilege() -> list[str]:
    """Root may trace everything; without these capabilities it is like any other user."""
    return ["setpriv", "--bounding-set=-sys_ptrace,-perfmon,-sys_admin"] if os.getuid() == 0 else []


@pytest.mark.skipif(
    os.getuid() == 0 and shutil.which("setpriv") is None, reason="root cannot give up rights here"
)
def test_a_handler_cannot_read_the_daemons_memory_or_environment(
    home: Home, tmp_path: Path
) -> None:
    (tmp_path / "reach.py").write_text(MODULE)
    options = (*kinds_in(tmp_path, KINDS), "--set", f'catalog.python_path=["{tmp_path}"]')
    command = [*without_privilege(), *COMMAND, "run", "--set", "http.listen=127.0.0.1:0", *options]
    with Daemon(command, home.environ()) as daemon:
        daemon.wait_until_ready()
        with Client(f"sqlite:///{home.folder.resolve()}/musterd.db") as client:
            job_id = client.enqueue("reached", None)
        eventually(lambda: home.job(job_id)["state"] in ("succeeded", "failed"))
        job = home.job(job_id)
    assert job["error"] is None, job
    closed = dict.fromkeys(("environ", "mem", "maps"), "closed")
    assert job["result"] == {**closed, "own": "open"}
