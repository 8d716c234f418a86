"""A daemon whose file descriptors are used up by others: no job pays for it, and it lives on."""

from __future__ import annotations

import resource
import socket
from contextlib import ExitStack
from pathlib import Path

from musterd import Client
from tests.support.command import Daemon, Home, eventually, kinds_in

USER = Path(__file__).parents[1] / "runners" / "user"
KINDS = """
[kinds.echo]
python = "untrue:echo"
[kinds.prints]
command = ["echo", "1"]
"""
LEFT = 12  # descriptors more than it has open
CONNECTIONS = 20


def in_use(daemon: Daemon) -> int:
    return len(list(Path(f"/proc/{daemon.process.pid}/fd").iterdir()))


def put_off(daemon: Daemon) -> int:
    return len([line for line in daemon.log if "fault contained" in line and "=start" in line])


def test_no_job_burns_an_attempt_while_descriptors_are_used_up(home: Home, tmp_path: Path) -> None:
    options = (*kinds_in(tmp_path, KINDS), "--set", f'catalog.python_path=["{USER}"]')
    with home.daemon(*options, "--set", "workers.default_count=2") as daemon, ExitStack() as held:
        daemon.wait_until_ready()
        host, _, port = daemon.address.removeprefix("http://").partition(":")
        before = resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)
        limit = in_use(daemon) + LEFT
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (limit, before[1]))
        for _ in range(CONNECTIONS):
            held.enter_context(socket.create_connection((host, int(port))))
        with Client(f"sqlite:///{home.folder.resolve()}/musterd.db") as client:
            ids = [client.enqueue(kind, 1) for kind in ("echo", "prints")]
        eventually(lambda: put_off(daemon) >= len(ids))
        eventually(lambda: in_use(daemon) < limit - 2)  # some are left for itself
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, before)
        eventually(lambda: all(home.job(job_id)["state"] == "succeeded" for job_id in ids))
        for job_id in ids:
            outcomes = [attempt["outcome"] for attempt in home.job(job_id)["attempts"]]
            assert outcomes == ["snoozed"] * (len(outcomes) - 1) + ["succeeded"], outcomes
        assert daemon.process.poll() is None
    assert [line for line in daemon.log if "connection refused" in line]
