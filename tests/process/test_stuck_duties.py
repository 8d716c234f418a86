"""Duties that hang on real daemons: an archive on a disk that does not answer, a hook that never
returns, a statement that waits.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from musterd.console.output import Exit
from tests.support.command import Home, eventually

HANGS = "import time\n\ndef told(job):\n    time.sleep(3600)\n"
SOON = ("--set", "duties.run_limit_seconds=1", "--set", "duties.heartbeat_seconds=0.5")
SHORT = (
    *SOON,
    *("--set", "retention.stale_after_hours=0.0005"),  # 1.8 s
    *("--set", "retention.delete_after_hours=0.001"),
)


@contextmanager
def hung(file: Path) -> Generator[None]:
    """Whoever appends to this file waits, as on a disk that does not answer."""
    with file.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def duty(home: Home, name: str) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = [one for one in home.call("duties", "--json").lines if one["duty"] == name]
    return found


def test_an_archive_on_a_hung_disk_holds_up_nothing_else(machine: Home, tmp_path: Path) -> None:
    file = tmp_path / "old.jsonl"
    with machine.daemon(*SHORT, "--set", f"retention.archive={file}") as daemon:
        daemon.wait_until_ready()
        with hung(file):
            old = machine.call("enqueue", "report", "--wait", "--json").json["id"]
            daemon.wait_for_line("duty given up")
            eventually(
                lambda: "run_limit_seconds" in (duty(machine, "retention")["last_error"] or "")
            )
            # The store, claims and settlements go on meanwhile.
            assert machine.call("enqueue", "report", "--wait").code == Exit.DONE
            assert machine.call("job", str(old)).code == Exit.DONE, "not deleted without its copy"
        eventually(lambda: machine.call("job", str(old)).code == Exit.UNKNOWN, seconds=30)
    kept = [json.loads(line)["id"] for line in file.read_text().splitlines()]
    assert old in kept


def test_a_node_that_drains_does_not_wait_for_a_hung_disk(machine: Home, tmp_path: Path) -> None:
    file = tmp_path / "old.jsonl"
    with (
        hung(file),
        machine.daemon(*SHORT, "--set", f"retention.archive={file}") as daemon,
    ):
        daemon.wait_until_ready()
        machine.call("enqueue", "report", "--wait")
        daemon.wait_for_line("duty given up")
        assert machine.call("drain", "--wait", "--set", daemon.listen).code == Exit.DONE
        assert daemon.end() == 0


def test_a_hook_that_never_returns_holds_up_no_duty(machine: Home, tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text(HANGS)
    sets = (
        "--set",
        "retention.on_delete=hooks:told",
        "--set",
        f'catalog.python_path=["{tmp_path}"]',
    )
    with machine.daemon(*SHORT, *sets) as daemon:
        daemon.wait_until_ready()
        old = machine.call("enqueue", "report", "--wait", "--json").json["id"]
        eventually(lambda: machine.call("job", str(old)).code == Exit.UNKNOWN, seconds=30)
        webhooks, retention = (duty(machine, name)["runs"] for name in ("webhooks", "retention"))
        eventually(lambda: duty(machine, "webhooks")["runs"] > webhooks, seconds=30)
        eventually(lambda: duty(machine, "retention")["runs"] > retention, seconds=30)
        assert duty(machine, "webhooks")["errors"] == duty(machine, "retention")["errors"] == 0


def test_a_statement_that_waits_costs_the_node_its_duty_and_another_takes_it(
    server_home: Home,
) -> None:
    patient = (
        "--set",
        "store.statement_timeout_seconds=60",
        "--set",
        "store.lock_timeout_seconds=60",
    )
    with (
        server_home.daemon(*SOON, *patient) as one,
        server_home.daemon(*SOON, *patient) as two,
        psycopg.connect(server_home.store_url) as holder,
    ):
        one.wait_until_ready()
        two.wait_until_ready()
        eventually(lambda: duty(server_home, "statistics")["node"] is not None, seconds=20)
        before = duty(server_home, "statistics")["hand_overs"]
        holder.execute("lock table musterd.count_changes in access exclusive mode")
        eventually(lambda: duty(server_home, "statistics")["hand_overs"] > before, seconds=90)
        found = duty(server_home, "statistics")
        assert "run_limit_seconds" in found["last_error"]
        holder.rollback()
        done = found["runs"] - found["errors"]
        eventually(
            lambda: (
                duty(server_home, "statistics")["runs"]
                > duty(server_home, "statistics")["errors"] + done
            ),
            seconds=90,
        )
