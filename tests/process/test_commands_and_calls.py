"""The daemon with command and HTTP kinds: from enqueue to result, and nothing left at its end."""

import json
import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.support.children import is_alive
from tests.support.command import Home, eventually
from tests.support.leaks import no_leaks

KINDS = """
[kinds.shout]
command = ["tr", "a-z", "A-Z"]

[kinds.patient]
command = ["sh", "-c", "echo $$ > pid; sleep 300 & echo $! >> pid; wait"]
cwd = "."
grace_seconds = 0.5
time_limit_seconds = 300

[kinds.notify]
http = { url = "URL" }
"""


class Echo(BaseHTTPRequestHandler):
    """Answers with what it was sent."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its base's name
        """Says nothing."""


@contextmanager
def echoing() -> Generator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def catalog(folder: Path, url: str = "http://127.0.0.1:1/") -> tuple[str, str]:
    path = folder / "kinds.toml"
    path.write_text(KINDS.replace("URL", url))
    return "--set", f"catalog.paths={json.dumps([str(path)])}"


def pids_in(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def test_programs_and_services_do_jobs(home: Home, tmp_path: Path) -> None:
    with no_leaks(), echoing() as url:
        kinds = catalog(tmp_path, url)
        with home.daemon(*kinds) as daemon:
            daemon.wait_until_ready()
            for kind, result in (("shout", {"TEXT": "HI"}), ("notify", {"text": "hi"})):
                payload = ("--payload", '{"text": "hi"}')
                done = home.call("enqueue", kind, *payload, "--wait", "--json", *kinds)
                assert (done.code, done.json["result"]) == (0, result), done


def test_a_daemon_that_is_told_twice_takes_its_programs_along(home: Home, tmp_path: Path) -> None:
    kinds = catalog(tmp_path)
    with no_leaks(), home.daemon(*kinds) as daemon:
        daemon.wait_until_ready()
        home.call("enqueue", "patient", *kinds)
        eventually(lambda: len(pids_in(tmp_path / "pid")) == 2)
        daemon.send(signal.SIGTERM)
        daemon.wait_for_line("event=draining")  # two at once would count as one
        daemon.send(signal.SIGTERM)
        assert daemon.end() == 0
    assert not any(is_alive(pid) for pid in pids_in(tmp_path / "pid"))


def test_a_daemon_that_is_killed_takes_its_programs_along(home: Home, tmp_path: Path) -> None:
    kinds = catalog(tmp_path)
    with home.daemon(*kinds) as daemon:
        daemon.wait_until_ready()
        home.call("enqueue", "patient", *kinds)
        eventually(lambda: len(pids_in(tmp_path / "pid")) == 2)
        daemon.send(signal.SIGKILL)
        daemon.end()
    program, its_child = pids_in(tmp_path / "pid")
    eventually(lambda: not is_alive(program))
    if is_alive(its_child):  # the known limit: the kernel tells the program alone
        os.kill(its_child, signal.SIGKILL)
