"""The real command, as a process: one-shot verbs, and a daemon that never outlives its test."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from musterd import Client

COMMAND = (sys.executable, "-m", "musterd")
# For daemons that die: what they did for all others, the next one does soon.
SHORT_DUTIES = ("--set", "duties.lease_seconds=2", "--set", "duties.heartbeat_seconds=0.5")
VERB_SECONDS = 60.0
DAEMON_SECONDS = 30.0


@attrs.frozen
class Done:
    """A verb that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@attrs.frozen
class Home:
    """A folder that stands for a machine of its own: its state, and nothing of the real one's."""

    folder: Path
    store_url: str = ""
    more: Mapping[str, str] = attrs.Factory(dict[str, str])  # of its environment

    def environ(self) -> dict[str, str]:
        kept = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
        home = kept | {"STATE_DIRECTORY": str(self.folder), "PYTHONUNBUFFERED": "1"}
        url = {"MUSTERD_STORE__URL": self.store_url} if self.store_url else {}
        return {**home, **url, **self.more}

    def call(self, *arguments: str, given: str | None = None, **environ: str) -> Done:
        """Runs a verb to its end; its standard input is `given`, or empty."""
        done = subprocess.run(
            [*COMMAND, *arguments],
            input=(given or "").encode(),
            env=self.environ() | environ,
            capture_output=True,
            timeout=VERB_SECONDS,
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def job(self, job_id: int) -> dict[str, Any]:
        """As the store has it: much sooner than `musterd job` says the same."""
        with Client(self.store_url or f"sqlite:///{self.folder.resolve()}/musterd.db") as client:
            return client.job(job_id)

    @contextmanager
    def daemon(self, *arguments: str) -> Generator[Daemon, None, None]:
        """Runs a daemon while the block lasts; gives it when its web side listens."""
        listen = ("--set", "http.listen=127.0.0.1:0")
        with Daemon([*COMMAND, "run", *listen, *arguments], self.environ()) as daemon:
            yield daemon


class Daemon:
    """A running daemon, its log as it comes. Killed at the end of its block if it still runs."""

    def __init__(self, command: list[str], environ: dict[str, str]) -> None:
        self.log: list[str] = []
        self._changed = threading.Condition()
        self.process = subprocess.Popen(
            command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> Daemon:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        if self.process.stderr is not None:
            self.process.stderr.close()

    @property
    def address(self) -> str:
        """Where its web side is."""
        line = self.wait_for_line(r"page=http")
        found = re.search(r"page=(http://[^/ ]+)", line)
        assert found is not None
        return found[1]

    @property
    def listen(self) -> str:
        """The setting that leads other verbs to it."""
        return f"http.listen={self.address.removeprefix('http://')}"

    def wait_until_ready(self) -> None:
        self.wait_for_line(r"event=ready")

    def wait_for_line(self, pattern: str) -> str:
        """Gives the first line of the log that matches, once it is there."""
        deadline = time.monotonic() + DAEMON_SECONDS
        with self._changed:
            while True:
                found = [line for line in self.log if re.search(pattern, line)]
                if found:
                    return found[0]
                if time.monotonic() > deadline or not self._reader.is_alive():
                    raise AssertionError(f"no line {pattern!r} in:\n" + "\n".join(self.log))
                self._changed.wait(0.1)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        """Waits for its end; gives the exit code."""
        code = self.process.wait(DAEMON_SECONDS)
        self._reader.join(DAEMON_SECONDS)
        return code

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._changed:
                self.log.append(line.rstrip("\n"))
                self._changed.notify_all()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def kinds_in(folder: Path, catalog: str) -> tuple[str, str]:
    """The option for a catalog, which is written there."""
    path = folder / "kinds.toml"
    path.write_text(catalog)
    return "--set", f"catalog.paths={[str(path)]}"


def eventually(holds: Callable[[], bool], seconds: float = DAEMON_SECONDS) -> None:
    """Looks until it holds; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"did not come true within {seconds} s"
        time.sleep(0.05)
