"""Real daemons on a machine that runs short: a full disk, one that turns read-only, memory that is
used up, a handler that forks without end. Jobs are counted from outside; the daemon says what is
wrong, lives or is started again, and goes on within seconds.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import attrs
import psycopg
import pytest

from tests.support.command import COMMAND, Daemon, Home, eventually, kinds_in
from tests.support.http_client import ask
from tests.support.innocents import HANDLERS, KINDS, VARIABLE, Innocents
from tests.support.narrow import Disk, Group, disk, memory_group, pids_group
from tests.support.postgres_server import PostgresServer

pytestmark = pytest.mark.timeout(300)

JOBS = 100
MEMORY_MIB = 400
PROCESSES = 120
RECOVERED_SECONDS = 30.0  # a lease that was lost meanwhile has ended by then, and its job is done
LOSSES = frozenset({"lost", "released"})
SETTINGS = ("--set", "workers.lease_timeout_seconds=4", "--set", "leases.margin_seconds=1")
LOG_SIZE = "32MB"
DISK_MIB = {"sqlite": 40, "postgresql": 300}

BAD_HANDLERS = """
import os

def hog(job):
    blocks = []
    while True:
        blocks.append(bytearray(8 << 20))

def bomb(job):
    while True:
        try:
            os.fork()
        except OSError:
            time.sleep(0.01)
"""
BAD_KINDS = """
[kinds.hog]
python = "innocent:hog"
[kinds.hungry]
command = ["python3", "-c", "b = []\\nwhile True: b.append(bytearray(8 << 20))"]
[kinds.bomb]
python = "innocent:bomb"
time_limit_seconds = 4
grace_seconds = 1
[kinds.shell-bomb]
command = ["sh", "-c", "bomb() { bomb & bomb; }; bomb"]
time_limit_seconds = 4
grace_seconds = 1
"""
# Takes memory until the process whose number it is given is gone.
NEIGHBOUR = """
import sys
blocks = []
for _ in range(1000):
    blocks.append(bytearray(4 << 20))
    if open(f"/proc/{sys.argv[1]}/stat").read().rpartition(")")[2].split()[0] in "ZX":
        break
"""


@attrs.frozen
class Ground:
    """`server`: None where the store is a file."""

    home: Home
    options: tuple[str, ...]
    innocents: Innocents
    disk: Disk | None = None
    server: PostgresServer | None = None

    @contextmanager
    def daemon(self, group: Group | None = None) -> Generator[Daemon]:
        words = [*COMMAND, "run", "--set", "http.listen=127.0.0.1:0", *SETTINGS, *self.options]
        inside = words if group is None else group.command(words)
        with Daemon(inside, self.home.environ()) as daemon:
            yield daemon

    def stand_still(self) -> None:
        """The server, where there is one, gives the disk's files out of its hands."""
        if self.server is not None:
            self.server.stop()

    def go_on(self) -> None:
        if self.server is not None:
            self.server.stop()  # it may have ended by itself
            self.server.start()


@contextmanager
def ground(folder: Path, where: Disk | None, engine: str) -> Generator[Ground]:
    (folder / "innocent.py").write_text(HANDLERS + BAD_HANDLERS)
    (folder / "done").touch()
    options = kinds_in(folder, KINDS + BAD_KINDS)
    with ExitStack() as stack:
        server, url = None, ""
        state = (where.folder if where is not None else folder) / "state"
        if engine == "postgresql":
            assert where is not None
            server = stack.enter_context(
                PostgresServer(
                    durable=True, folder=where.folder, min_wal_size=LOG_SIZE, max_wal_size=LOG_SIZE
                )
            )
            url, state = server.create_database("jobs"), folder / "state"
        innocents = Innocents(url or f"sqlite:///{state}/musterd.db", folder / "done")
        home = Home(state, url, {VARIABLE: str(folder / "done")})
        yield Ground(home, options, innocents, where, server)


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def on_a_disk(tmp_path: Path, engine: str) -> Generator[Ground]:
    """The store is on a small disk."""
    with disk(DISK_MIB[engine]) as own, ground(tmp_path, own, engine) as found:
        yield found


@pytest.fixture
def plain(tmp_path: Path) -> Generator[Ground]:
    with ground(tmp_path, None, "sqlite") as found:
        yield found


def says(daemon: Daemon, words: str, home: Home) -> None:
    """Readiness, status and the probe of life, as soon as it has noticed."""
    eventually(lambda: words in ask(daemon.address, "/readyz").text, 15)
    assert ask(daemon.address, "/readyz").status == 503
    assert ask(daemon.address, "/livez").status == 200
    status = home.call("status", "--json", "--set", daemon.listen)
    assert words in status.json["verdict"], status.out


def recovers(on: Ground, daemon: Daemon, again: frozenset[str] = LOSSES) -> None:
    """All that was promised is done, and new work as well."""
    eventually(lambda: ask(daemon.address, "/readyz").status == 200, RECOVERED_SECONDS)
    on.innocents.enqueue(10)
    on.innocents.have_ended(RECOVERED_SECONDS)
    on.innocents.count_effects(again)
    verified = on.home.call("verify")
    assert verified.code == 0, verified.out + verified.err
    assert daemon.process.poll() is None


def use_up_the_log(url: str) -> None:
    """The rest of the segment that has its room already is given away."""
    with psycopg.connect(url, autocommit=True) as session:
        session.execute("select pg_switch_wal()")
        session.execute("select pg_logical_emit_message(true, 'x', repeat('y', 20000000))")


@contextmanager
def at_work(on: Ground) -> Generator[tuple[Disk, Daemon]]:
    assert on.disk is not None
    with on.daemon() as daemon:
        daemon.wait_until_ready()
        on.innocents.enqueue(JOBS)
        yield on.disk, daemon


def test_a_full_disk_loses_nothing(on_a_disk: Ground) -> None:
    on = on_a_disk
    with at_work(on) as (volume, daemon):
        with volume.full():
            says(daemon, "has no disk space left", on.home)
            on.innocents.enqueue(20)
        assert {each.trouble for each in on.innocents.refusals} == {"disk_full"}
        daemon.wait_for_line("store in trouble.*trouble=disk_full")
        recovers(on, daemon)
        daemon.wait_for_line("store recovered")


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_a_server_that_falls_over_its_full_disk_is_waited_for(on_a_disk: Ground) -> None:
    on = on_a_disk
    with at_work(on) as (volume, daemon):
        with volume.full(), pytest.raises(psycopg.OperationalError):
            use_up_the_log(on.innocents.url)
        eventually(lambda: ask(daemon.address, "/readyz").status == 503, 15)
        on.go_on()
        recovers(on, daemon)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize("trouble", ["disk_full", "read_only"])
def test_a_daemon_that_starts_on_such_a_disk_waits_for_it(on_a_disk: Ground, trouble: str) -> None:
    on = on_a_disk
    assert on.disk is not None
    with on.daemon() as daemon:
        daemon.wait_until_ready()
        on.innocents.enqueue(10)
        daemon.send(signal.SIGTERM)
        assert daemon.end() == 0
    with ExitStack() as stack:
        if trouble == "disk_full":
            stack.enter_context(on.disk.full())
        else:
            on.disk.turn_read_only()
        daemon = stack.enter_context(on.daemon())
        daemon.wait_for_line(f"waiting for the store.*trouble={trouble}")
        daemon.send(signal.SIGTERM)
        assert daemon.end() == 0
    if trouble == "read_only":
        on.disk.mend()
    with on.daemon() as daemon:
        recovers(on, daemon)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_file_on_a_disk_that_turns_read_only(on_a_disk: Ground) -> None:
    on = on_a_disk
    with at_work(on) as (volume, daemon):
        volume.turn_read_only()
        says(daemon, "is read-only", on.home)
        on.innocents.enqueue(5)
        assert {each.trouble for each in on.innocents.refusals} == {"read_only"}
        daemon.send(signal.SIGTERM)
        assert daemon.end() == 0
    volume.mend()
    with on.daemon() as daemon:
        recovers(on, daemon)


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_a_server_on_a_disk_that_turns_read_only(on_a_disk: Ground) -> None:
    on = on_a_disk
    with at_work(on) as (volume, daemon):
        volume.turn_read_only()
        on.innocents.enqueue(1)
        eventually(lambda: ask(daemon.address, "/readyz").status == 503, 15)
        on.stand_still()
        volume.mend()
        on.go_on()
        recovers(on, daemon)


@pytest.mark.parametrize("kind", ["hog", "hungry"])
def test_who_takes_all_memory_goes_and_nobody_else(plain: Ground, kind: str) -> None:
    with memory_group(MEMORY_MIB) as group, plain.daemon(group) as daemon:
        daemon.wait_until_ready()
        plain.innocents.enqueue(JOBS)
        hog = ends_badly(plain, kind)
        plain.innocents.enqueue(JOBS)
        recovers(plain, daemon, again=frozenset({"retrying"}))  # who was beside it may go as well
        error = plain.home.job(hog)["error"]
        assert "SIGKILL" in error["message"], error


def ends_badly(on: Ground, kind: str) -> int:
    """A job that fails, after one attempt."""
    made = on.home.call("enqueue", kind, "--json", *on.options)
    assert made.code == 0, made.err
    job_id: int = made.json["id"]
    eventually(lambda: on.home.job(job_id)["state"] == "failed", RECOVERED_SECONDS)
    assert len(on.home.job(job_id)["attempts"]) == 1
    return job_id


def test_a_daemon_that_is_killed_for_memory_is_followed_by_another(plain: Ground) -> None:
    with memory_group(MEMORY_MIB) as group:
        with plain.daemon(group) as daemon:
            daemon.wait_until_ready()
            plain.innocents.enqueue(JOBS)
            # The kernel takes whoever is said to be worth the least: here that is the daemon.
            Path(f"/proc/{daemon.process.pid}/oom_score_adj").write_text("1000")
            words = [sys.executable, "-c", NEIGHBOUR, str(daemon.process.pid)]
            subprocess.run(group.command(words), check=True, timeout=60)
            assert daemon.end() == -signal.SIGKILL
            eventually(lambda: not group.processes)  # its children went with it
        plain.innocents.enqueue(JOBS)
        with plain.daemon() as daemon:
            recovers(plain, daemon, again=LOSSES | {"retrying"})


@pytest.mark.parametrize("kind", ["bomb", "shell-bomb"])
def test_a_handler_that_forks_without_end_costs_its_own_attempt(plain: Ground, kind: str) -> None:
    with pids_group(PROCESSES) as group, plain.daemon(group) as daemon:
        daemon.wait_until_ready()
        plain.innocents.enqueue(JOBS)
        made = plain.home.call("enqueue", kind, "--json", *plain.options)
        bomb = made.json["id"]
        plain.innocents.enqueue(20, "program")
        eventually(lambda: int(group.read("pids.events").split()[1]) > 0)  # refused forks
        assert ask(daemon.address, "/livez").status == 200
        recovers(plain, daemon)
        assert len(group.processes) < PROCESSES // 2
        assert len(plain.home.job(bomb)["attempts"]) == 1
