"""A daemon whose descriptors, or processes, others have used up: no job pays, and it lives on."""

from __future__ import annotations

import resource
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

from musterd import Client
from tests.support.command import COMMAND, Daemon, Home, eventually, kinds_in
from tests.support.http_client import ask
from tests.support.narrow import pids_group

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


PROCESSES = 60
INSIDE = """
[kinds.inside]
python = "untrue:echo"
isolation = "thread"
[kinds.prints]
command = ["echo", "1"]
"""


def test_a_daemon_that_can_start_no_thread_lives_on(home: Home, tmp_path: Path) -> None:
    """A limit on processes counts threads: the first connection wants one, and so do kinds."""
    options = (*kinds_in(tmp_path, INSIDE), "--set", f'catalog.python_path=["{USER}"]')
    words = [*COMMAND, "run", "--set", "http.listen=127.0.0.1:0", *options]
    with (
        pids_group(PROCESSES) as group,
        Daemon(group.command(words), home.environ()) as daemon,
    ):
        daemon.wait_until_ready()
        sleeper = group.command(["/bin/sh", "-c", "while sleep 60 & do :; done; wait"])
        with subprocess.Popen(sleeper, stderr=subprocess.DEVNULL):
            eventually(lambda: int(group.read("pids.events").split()[1]) > 0)
            with Client(f"sqlite:///{home.folder.resolve()}/musterd.db") as client:
                ids = [client.enqueue(kind, 1) for kind in ("inside", "prints")]
            eventually(lambda: put_off(daemon) >= len(ids))
            assert ask(daemon.address, "/livez").status == 200
            assert ask(daemon.address, "/readyz").status == 200
            group.kill_all_but(daemon.process.pid)
        assert ask(daemon.address, "/metrics").status == 200
        eventually(lambda: all(home.job(each)["state"] == "succeeded" for each in ids))
        assert daemon.process.poll() is None
