"""`musterd instances`, the real verb on a real PostgreSQL, beside a systemctl that writes down what
it is told.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

from tests.fix_postgres import FreshDatabase
from tests.support.command import COMMAND, Daemon, Home, eventually

SYSTEMCTL = """#!{python}
import pathlib, sys
folder = pathlib.Path({folder!r})
verb, *rest = sys.argv[1:]
units = rest[rest.index("--") + 1:]
if (folder / "broken").exists():
    sys.exit((folder / "broken").read_text())
if verb == "show":
    found = [f"Id={{unit}}\\nActiveState={{(folder / unit).read_text()}}" for unit in units]
    print("\\n\\n".join(found))
else:
    assert rest[0] == "--no-block", rest
    with (folder / "calls").open("a") as calls:
        calls.write(f"{{verb}} {{' '.join(units)}}\\n")
    for unit in units:
        (folder / unit).write_text({{"start": "active", "stop": "deactivating"}}[verb])
"""
MOST = 4
QUICK = ("--most", str(MOST), "--every", "1", "--linger", "0")


@attrs.frozen
class Machine:
    """Where `systemctl` keeps a file with the state of each unit."""

    folder: Path
    home: Home

    @property
    def environ(self) -> dict[str, str]:
        return {"PATH": f"{self.folder}:{os.environ['PATH']}"}

    def put(self, *found: str) -> None:
        for number, state in enumerate(found, start=1):
            (self.folder / f"musterd@{number}.service").write_text(state)

    @property
    def states(self) -> Sequence[str]:
        paths = [self.folder / f"musterd@{number}.service" for number in range(1, MOST + 1)]
        return [path.read_text() for path in paths]

    @property
    def calls(self) -> Sequence[str]:
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []

    @contextmanager
    def kept(self, *more: str) -> Generator[Daemon]:
        with Daemon(
            [*COMMAND, "instances", *QUICK, *more], self.home.environ() | self.environ
        ) as one:
            yield one


@pytest.fixture
def machine(tmp_path: Path, fresh_database: FreshDatabase) -> Machine:
    folder = tmp_path / "systemd"
    folder.mkdir()
    program = folder / "systemctl"
    program.write_text(SYSTEMCTL.format(python=sys.executable, folder=str(folder)))
    program.chmod(0o755)
    found = Machine(folder, Home(tmp_path / "state", fresh_database()))
    found.put(*["inactive"] * MOST)
    return found


def test_instances_come_with_work_and_are_drained_without(machine: Machine) -> None:
    """Nodes of eight workers: 20 jobs are work for three."""
    assert machine.home.call("enqueue", "slow", "--count", "20").code == 0
    with machine.kept():
        eventually(lambda: machine.states == ["active"] * 3 + ["inactive"])
        assert machine.calls == [f"start {' '.join(f'musterd@{one}.service' for one in (1, 2, 3))}"]
        jobs = [str(one) for one in range(1, 18)]
        assert machine.home.call("cancel", *jobs).code == 0
        eventually(lambda: machine.states == ["active", "deactivating", "deactivating", "inactive"])
        assert machine.calls[1:] == ["stop musterd@3.service musterd@2.service"]
        rest = [str(one) for one in range(18, 21)]
        assert machine.home.call("cancel", *rest).code == 0
        machine.put("active", "inactive", "inactive")
        assert machine.home.call("enqueue", "slow", "--count", "9").code == 0
        eventually(lambda: len(machine.calls) == 3)
        assert machine.calls[2] == "start musterd@2.service"


def test_a_fresh_store_gets_its_first_node(machine: Machine) -> None:
    """Its schema is made by that node."""
    with machine.kept() as keeper:
        keeper.wait_for_line("nobody knows how much work there is, and none is drained")
        eventually(lambda: machine.calls == ["start musterd@1.service"])


def test_while_the_store_is_away_nobody_is_drained(machine: Machine) -> None:
    machine.put(*["active"] * 3)
    away = ("--set", "store.url=postgresql://nobody@127.0.0.1:1/nothing")
    with machine.kept(*away) as keeper:
        keeper.wait_for_line("none is drained")
        eventually(lambda: machine.states == ["active"] * 3 + ["inactive"])
        assert machine.calls == []


def test_what_failed_is_named_and_left_alone(machine: Machine) -> None:
    assert machine.home.call("enqueue", "slow").code == 0
    machine.put("failed", "failed")
    with machine.kept() as keeper:
        keeper.wait_for_line("failed, and left alone: musterd@1.service, musterd@2.service")
        eventually(lambda: machine.calls == ["start musterd@3.service"])


def test_a_systemctl_that_fails_changes_nothing_and_is_asked_again(machine: Machine) -> None:
    assert machine.home.call("enqueue", "slow").code == 0
    (machine.folder / "broken").write_text("Failed to connect to bus")
    with machine.kept() as keeper:
        keeper.wait_for_line("nothing was changed: systemctl show: Failed to connect to bus")
        assert machine.calls == []
        (machine.folder / "broken").unlink()
        eventually(lambda: machine.calls == ["start musterd@1.service"])


def test_a_dry_run_tells_and_does_nothing(machine: Machine) -> None:
    assert machine.home.call("enqueue", "slow", "--count", "20").code == 0
    machine.put("active", "failed")
    done = machine.home.call("instances", *QUICK, "--dry-run", **machine.environ)
    assert (done.code, done.out) == (0, "there is work for 3 nodes; 1 up, 1 failed\n")
    told = machine.home.call("instances", *QUICK, "--dry-run", "--json", **machine.environ).json
    assert told["desired"] == 3
    assert told["instances"]["musterd@2.service"] == "failed"
    assert machine.calls == []


def test_work_of_all_tenants_is_added_up_before_it_is_divided(machine: Machine) -> None:
    tenants = (
        "--set",
        "tenants.acme.workers.max_count=8",
        "--set",
        "tenants.bolt.workers.max_count=8",
    )
    for name, count in (("default", 3), ("acme", 3), ("bolt", 2)):
        more = (*tenants, "--tenant", name, "--count", str(count))
        assert machine.home.call("enqueue", "slow", *more).code == 0
    done = machine.home.call("instances", *QUICK, *tenants, "--dry-run", **machine.environ)
    assert done.out == "there is work for 1 node; none up\n"


def test_a_file_is_one_daemons_store(tmp_path: Path) -> None:
    done = Home(tmp_path).call("instances", "--most", "4")
    assert (done.code, done.out) == (78, "")
    assert "the store of tenant default is a file, which one daemon has for itself" in done.err
    assert "instances need PostgreSQL" in done.err


@pytest.mark.parametrize("wrong", [(), ("--most", "0"), ("--most", "2", "--template", "a b@")])
def test_what_cannot_be_kept_is_refused(tmp_path: Path, wrong: Sequence[str]) -> None:
    assert Home(tmp_path).call("instances", *wrong).code == 2
