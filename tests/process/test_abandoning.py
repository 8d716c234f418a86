"""A daemon whose work never ends, and which ends all the same."""

import signal
import time
from pathlib import Path

import pytest

from tests.support.command import SHORT_DUTIES, Home, eventually

HANDLERS = """
import trio
async def forever(job):
    with trio.CancelScope(shield=True):
        await trio.sleep(600)
"""
CATALOG = """
[kinds.forever]
python = "endless:forever"
isolation = "task"
"""


@pytest.fixture
def kinds(tmp_path: Path) -> Path:
    (tmp_path / "endless.py").write_text(HANDLERS)
    path = tmp_path / "kinds.toml"
    path.write_text(CATALOG)
    return path


def test_it_ends_in_time_and_another_one_has_the_job(machine: Home, kinds: Path) -> None:
    own = (
        *("--set", f'catalog.paths=["{kinds}"]', "--set", "workers.lease_timeout_seconds=6"),
        *("--set", "shutdown.abandon_seconds=0.5", "--set", "executor.grace_seconds=0.5"),
        *SHORT_DUTIES,
    )
    with machine.daemon(*own) as daemon:
        daemon.wait_until_ready()
        job_id = machine.call("enqueue", "forever", "--json", *own).json["id"]
        eventually(lambda: machine.job(job_id)["state"] == "running")
        began = time.monotonic()
        daemon.send(signal.SIGTERM)
        daemon.wait_for_line("event=draining")
        daemon.send(signal.SIGTERM)
        assert daemon.end() == 0
        assert time.monotonic() - began < 20
        assert daemon.wait_for_line(r'event="job abandoned; its lease will expire"')
    with machine.daemon(*own) as daemon:
        eventually(lambda: machine.job(job_id)["attempt"] == 2)
        daemon.process.kill()
    first, second = machine.job(job_id)["attempts"]
    assert (first["outcome"], second["outcome"]) == ("lost", None)
