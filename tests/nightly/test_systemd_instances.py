"""Instances of the shipped template on a real systemd: they come with work, and are drained after
it.
"""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.support.command import eventually
from tests.support.machine import ROOT, Machine, missing, one_of_its_own
from tests.support.postgres_server import PostgresServer

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"not here: {', '.join(missing())}")

MUSTERD = "/opt/musterd/bin/musterd"
UNITS = "/etc/systemd/system"
JOBS = 20  # of 5 s: work for three nodes of eight workers
MOST = 3
OWN = f"""
[Service]
ExecStart=
ExecStart={MUSTERD} instances --most {MOST} --every 1 --linger 5
"""


class _Door(socketserver.BaseRequestHandler):
    """Carries a connection on to the server."""

    address: tuple[str, int]

    def handle(self) -> None:
        with socket.create_connection(self.address) as far:
            back = threading.Thread(target=_carry, args=[far, self.request])
            back.start()
            _carry(self.request, far)
            back.join()


def _carry(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


@contextmanager
def door_to(url: str, folder: Path) -> Generator[str]:
    """A socket in a folder, for a machine without a network; gives the URL by way of it."""
    known = conninfo_to_dict(url)
    address = (str(known["host"]), int(str(known["port"])))
    path = folder / ".s.PGSQL.5432"
    handler = type("Door", (_Door,), {"address": address})
    with socketserver.ThreadingUnixStreamServer(str(path), handler) as server:
        path.chmod(0o777)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"postgresql://{known['user']}:{known['password']}@/{known['dbname']}?host=/pg"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def machine(tmp_path_factory: pytest.TempPathFactory) -> Generator[Machine]:
    """One with the units, the drop-in for instances, and a PostgreSQL outside."""
    folder = tmp_path_factory.mktemp("machines")
    with (
        tempfile.TemporaryDirectory() as name,
        PostgresServer() as server,
        door_to(server.create_database("jobs"), Path(name)) as url,
    ):
        Path(name).chmod(0o755)
        with one_of_its_own("bookworm", folder, f"--bind={name}:/pg") as one:
            shipped = (ROOT / "deploy" / "systemd" / "drop-ins" / "instances.conf").read_text()
            one.write(f"{UNITS}/musterd@.service.d/instances.conf", shipped)
            one.write(f"{UNITS}/musterd-instances.service.d/test.conf", OWN)
            one.write("/etc/credstore/musterd.store-url", f"{url}\n", 0o600)
            one.write("/etc/musterd/musterd.toml", '[store]\nurl_file = "musterd.store-url"\n')
            one.do("systemctl", "daemon-reload")
            yield one


def verb(machine: Machine, *arguments: str) -> str:
    """A verb as root types it."""
    return machine.do("env", "CREDENTIALS_DIRECTORY=/etc/credstore", MUSTERD, *arguments)


def active(machine: Machine) -> list[int]:
    return [
        number
        for number in range(1, MOST + 2)
        if machine.show(f"musterd@{number}", "ActiveState") == "active"
    ]


def test_instances_come_with_work_and_are_drained_after_it(machine: Machine) -> None:
    machine.do("systemctl", "start", "musterd-instances")
    eventually(lambda: active(machine) == [1], 60)
    verb(machine, "enqueue", "slow", "--count", str(JOBS))
    eventually(lambda: active(machine) == [1, 2, 3], 60)
    eventually(lambda: active(machine) == [1], 120)
    jobs = [json.loads(line) for line in verb(machine, "jobs", "--json").splitlines()]
    assert {(job["state"], job["attempt"]) for job in jobs} == {("succeeded", 1)}
    assert len(jobs) == JOBS
    assert {machine.show(f"musterd@{one}", "Result") for one in (2, 3)} == {"success"}
    assert machine.show("musterd-instances", "NRestarts") == "0"
    told = "\n".join(str(one["MESSAGE"]) for one in machine.journal("musterd-instances"))
    assert "starting musterd@1.service" in told
    assert "draining musterd@3.service" in told
    machine.do("systemctl", "stop", "musterd-instances")
    assert active(machine) == [1], "they stay as they are"
    machine.do("systemctl", "stop", "musterd@1")


def test_the_unit_is_without_fault(machine: Machine) -> None:
    done = machine.call("systemd-analyze", "verify", "--man=no", "musterd-instances.service")
    assert (done.code, done.err) == (0, "")
