"""A daemon whose descriptors, or processes, others have used up: no job pays, and it lives on."""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from musterd import Client
from tests.fix_postgres import FreshDatabase
from tests.support.command import COMMAND, Daemon, Home, eventually, kinds_in
from tests.support.http_client import ask
from tests.support.narrow import pids_group

USER = Path(__file__).parents[1] / "runners" / "user"
KINDS = """
[kinds.echo]
python = "untrue:echo"
[kinds.prints]
command = ["echo", "1"]
[kinds.called]
http = {{ url = "http://127.0.0.1:{port}/" }}
"""
LEFT = 12  # descriptors more than it has open
CONNECTIONS = 20
PATIENCE_SECONDS = 30.0


def in_use(daemon: Daemon) -> int:
    return len(list(Path(f"/proc/{daemon.process.pid}/fd").iterdir()))


@contextmanager
def answering() -> Generator[int]:
    """A server that answers each request with nothing, at this port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                conn, _ = listener.accept()
                with conn:
                    conn.recv(65_536)
                    conn.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def put_off(daemon: Daemon) -> int:
    return len([line for line in daemon.log if "fault contained" in line and "=start" in line])


def test_no_job_burns_an_attempt_while_descriptors_are_used_up(home: Home, tmp_path: Path) -> None:
    with answering() as port:
        burns_nothing(home, options_of(tmp_path, KINDS.format(port=port)))


def options_of(folder: Path, kinds: str) -> tuple[str, ...]:
    return (*kinds_in(folder, kinds), "--set", f'catalog.python_path=["{USER}"]')


def burns_nothing(home: Home, options: tuple[str, ...]) -> None:
    with home.daemon(*options, "--set", "workers.default_count=2") as daemon, ExitStack() as held:
        daemon.wait_until_ready()
        host, _, port = daemon.address.removeprefix("http://").partition(":")
        before = resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)
        limit = in_use(daemon) + LEFT
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (limit, before[1]))
        for _ in range(CONNECTIONS):
            held.enter_context(socket.create_connection((host, int(port))))
        with Client(f"sqlite:///{home.folder.resolve()}/musterd.db") as client:
            ids = [client.enqueue(kind, 1) for kind in ("echo", "prints", "called")]
        eventually(lambda: put_off(daemon) >= len(ids))
        eventually(lambda: in_use(daemon) < limit - 2)  # some are left for itself
        for probe in ("/livez", "/readyz"):
            assert ask(daemon.address, probe).status == 200
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, before)
        eventually(lambda: all(home.job(job_id)["state"] == "succeeded" for job_id in ids))
        for job_id in ids:
            outcomes = [attempt["outcome"] for attempt in home.job(job_id)["attempts"]]
            assert outcomes == ["snoozed"] * (len(outcomes) - 1) + ["succeeded"], outcomes
        assert daemon.process.poll() is None


PROCESSES = 60
INSIDE = """
[kinds.named]
http = {{ url = "http://localhost:{port}/" }}
[kinds.inside]
python = "untrue:echo"
isolation = "thread"
[kinds.prints]
command = ["echo", "1"]
"""


def test_a_daemon_that_can_start_no_thread_lives_on(home: Home, tmp_path: Path) -> None:
    """A limit on processes counts threads: the first connection wants one, and so do kinds."""
    with answering() as port:
        lives_on(home, options_of(tmp_path, INSIDE.format(port=port)))


def lives_on(home: Home, options: tuple[str, ...]) -> None:
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
                ids = [client.enqueue(kind, 1) for kind in ("inside", "prints", "named")]
            eventually(lambda: put_off(daemon) >= len(ids))
            assert ask(daemon.address, "/livez").status == 200
            assert ask(daemon.address, "/readyz").status == 200
            group.kill_all_but(daemon.process.pid)
        assert ask(daemon.address, "/metrics").status == 200
        eventually(lambda: all(home.job(each)["state"] == "succeeded" for each in ids))
        for each in ids:
            outcomes = [attempt["outcome"] for attempt in home.job(each)["attempts"]]
            assert outcomes == ["snoozed"] * (len(outcomes) - 1) + ["succeeded"], outcomes
        assert daemon.process.poll() is None


def test_a_daemon_that_gets_no_thread_for_its_file_waits_for_one(home: Home) -> None:
    words = [*COMMAND, "run", "--set", "http.listen=127.0.0.1:0"]
    with pids_group(1) as group, Daemon(group.command(words), home.environ()) as daemon:
        eventually(lambda: any("no_thread" in line for line in daemon.log))
        assert daemon.process.poll() is None
        group.set("pids.max", PROCESSES)
        daemon.wait_until_ready()


WAITS = """
import sys
from musterd import Client
with Client(sys.argv[1]) as client:
    job_id = client.enqueue("brief", {})
    print("enqueued", flush=True)
    input()
    print(client.wait(job_id, timeout=20)["state"])
"""
BRIEF = """
[kinds.brief]
duration_ms = 100
"""


def test_a_client_that_gets_no_thread_to_listen_in_looks_by_itself(
    home: Home, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    home = Home(home.folder, fresh_database())
    with home.daemon(*kinds_in(tmp_path, BRIEF)) as daemon, pids_group(PROCESSES) as group:
        daemon.wait_until_ready()
        asked = group.command([sys.executable, "-c", WAITS, home.store_url])
        pipe = subprocess.PIPE
        with subprocess.Popen(asked, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as waiting:
            assert waiting.stdout is not None
            assert waiting.stdout.readline() == "enqueued\n"
            group.set("pids.max", int(group.read("pids.current")))
            said, complaint = waiting.communicate("\n", timeout=PATIENCE_SECONDS)
        assert (waiting.returncode, said) == (0, "succeeded\n"), complaint


def test_a_client_that_gets_no_thread_at_all_says_what_is_missing(
    home: Home, fresh_database: FreshDatabase
) -> None:
    with pids_group(1) as group:
        asked = group.command([sys.executable, "-c", WAITS, fresh_database()])
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.rstrip().splitlines()[-1]
    assert last.startswith("musterd.store.errors.StoreUnavailable: ")
    assert last.endswith(": no thread can be started: a limit on processes is reached")
