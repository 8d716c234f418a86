"""A PgBouncer of its own for a test, in transaction mode, in front of a test's server."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from tests.support.missing import ToolMissing
from tests.support.pages import ROOT
from tests.support.postgres_binaries import server_account
from tests.support.postgres_server import PostgresServer

START_SECONDS = 20.0
PLACES = (None, "/usr/sbin/pgbouncer", "/usr/local/bin/pgbouncer")

# What is shipped is what is tried, but for the place and the passwords.
SHIPPED = ROOT / "deploy" / "pgbouncer" / "pgbouncer.ini"
SHIPPED_USERS = SHIPPED.parent / "userlist.txt"


class PgBouncerMissing(ToolMissing):
    """No PgBouncer was found; the text says what to install."""


class PgBouncer:
    """Runs while the block of `running` lasts. `restart` cuts all its connections."""

    def __init__(self, server: PostgresServer, folder: Path) -> None:
        self._program = _find()
        self._folder = folder
        self._server = conninfo_to_dict(server.dsn())
        self._process: subprocess.Popen[bytes] | None = None
        self.port = _free_port()
        self._write()

    def url(self, database: str) -> str:
        user, password = self._server["user"], self._server["password"]
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        account = server_account()  # as PostgreSQL it refuses to be root
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, "-q", self._folder / "pgbouncer.ini"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                user=account.uid if account else None,
                group=account.gid if account else None,
                extra_groups=[] if account else None,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            assert self._process.poll() is None, self.log
            assert time.monotonic() < deadline, self.log
            time.sleep(0.02)

    def stop(self, sign: signal.Signals = signal.SIGKILL) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(sign)
            process.wait()

    @property
    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
            return True
        return False

    def _write(self) -> None:
        places = {
            "jobs = host=db1.internal port=5432": f"* = host=127.0.0.1 port={self._server['port']}",
            "listen_addr = 0.0.0.0": "listen_addr = 127.0.0.1",
            "listen_port = 6432": f"listen_port = {self.port}",
            "/etc/pgbouncer/userlist.txt": f"{self._folder}/users",
        }
        role = f'"{self._server["user"]}" "{self._server["password"]}"'
        texts = {
            "pgbouncer.ini": replaced(SHIPPED.read_text("utf-8"), places),
            "users": replaced(SHIPPED_USERS.read_text("utf-8"), {'"musterd" "CHANGE-ME"': role}),
        }
        account = server_account()
        for path in (self._folder, *(self._folder / name for name in texts)):
            if path != self._folder:
                path.write_text(texts[path.name])
            if account:
                os.chown(path, account.uid, account.gid)


@contextlib.contextmanager
def running(server: PostgresServer) -> Generator[PgBouncer]:
    folder = Path(tempfile.mkdtemp(prefix="musterd-pgbouncer-", dir="/tmp"))  # open to its account
    try:
        bouncer = PgBouncer(server, folder)
        try:
            bouncer.start()
            yield bouncer
        finally:
            bouncer.stop()
    finally:
        shutil.rmtree(folder)


def replaced(text: str, places: Mapping[str, str]) -> str:
    """With each of the texts replaced; all of them have to be there."""
    for before, after in places.items():
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return text


def _find() -> str:
    for place in PLACES:
        found = shutil.which(place or "pgbouncer")
        if found:
            return found
    raise PgBouncerMissing(
        "these tests need PgBouncer and found none on PATH or in /usr/sbin; install it (Debian:"
        " apt-get install pgbouncer; macOS: brew install pgbouncer)"
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
