"""A private PostgreSQL for tests and benchmarks: own data, own port, gone with its owner."""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import IO, Any, Self

import psycopg
from psycopg import sql

from tests.support.postgres_binaries import find_binaries, server_account, within_reach

_SUPERUSER = "musterd"
_START_SECONDS = 30.0
_STOP_SECONDS = 20.0
_POLL_SECONDS = 0.01
# Outside the range that Linux and macOS hand to outgoing connections: one of those could take the
# port while the server is down for a restart.
_PORTS = range(20_000, 32_000)

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "log_line_prefix": "%m [%p] %d ",
}
# Safe against the death of any process, not of the machine.
_FAST = {"fsync": "off", "full_page_writes": "off"}

# Is told through a pipe which process runs in its folder (an empty line: none). However the owner
# ends, SIGKILL included, the pipe closes: then that process is stopped and the folder removed.
_GUARD = """
while read -r line; do running=$line; done
if [ -n "$running" ]; then
    kill -QUIT "$running" 2>/dev/null
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        [ -e "$1/data/postmaster.pid" ] && sleep 0.2
    done
fi
for _ in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf "$1" 2>/dev/null
    [ -e "$1" ] && sleep 0.2
done
"""


class ServerFailed(Exception):
    """PostgreSQL could not be started; carries the end of its log."""


class PostgresServer:
    """One cluster in a temporary folder, on 127.0.0.1, with a password that nobody else knows.

    `with PostgresServer() as server:` starts it and takes it away. `durable=True` writes to disk
    as a real server does (for benchmarks); otherwise nothing waits for the disk. `folder`: where
    its files are to be, on a disk of the test's, say.
    """

    def __init__(
        self,
        *,
        durable: bool = False,
        binaries: Path | None = None,
        folder: Path | None = None,
        **settings: str,
    ) -> None:
        """Makes the cluster; raises PostgresMissing if the machine has no server. `settings` are
        the server's own, over ours.
        """
        found = binaries or find_binaries()
        self._account = server_account()
        # Short, open to the server's account; /var/tmp is on disk where /tmp may be in memory.
        self._home = Path(tempfile.mkdtemp(prefix="musterd-pg-", dir=folder or _parent(durable)))
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "musterd-pg-guard", str(self._home)],
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        if self._account:
            os.chown(self._home, self._account.uid, self._account.gid)
        self._process: subprocess.Popen[bytes] | None = None
        self._settings = {**_SETTINGS, **({} if durable else _FAST), **settings}
        self._password = secrets.token_hex(16)
        try:
            self.binaries = within_reach(found, self._account, self._home)
            self._make_cluster(durable)
        except BaseException:
            self._dismiss_guard()
            raise
        self.port = _free_port()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def process_id(self) -> int | None:
        """The postmaster's, or None while the server is down."""
        return self._process.pid if self._process else None

    @property
    def log(self) -> str:
        """What the server has written so far."""
        path = self._home / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def dsn(self, dbname: str = "postgres") -> str:
        """The URL of one database, complete: it leaves nothing to PG* variables."""
        return f"postgresql://{_SUPERUSER}:{self._password}@127.0.0.1:{self.port}/{dbname}"

    def start(self) -> None:
        """Returns when connections are taken; raises ServerFailed. Nothing if it is up."""
        if self._process:
            return
        deadline = time.monotonic() + _START_SECONDS
        while not self._try_start(deadline):
            time.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        """Ends all sessions and stops (`pg_ctl stop -m fast`). Nothing if it is down."""
        self._end(signal.SIGINT)

    @contextlib.contextmanager
    def down(self) -> Generator[None]:
        """Is down meanwhile."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def restart(self) -> None:
        """Stops and starts again on the same port."""
        self.stop()
        self.start()

    def stop_hard(self) -> None:
        """Kills the postmaster (SIGKILL), starts again: the server recovers as from a crash."""
        self._end(signal.SIGKILL)
        self.start()

    def close(self) -> None:
        """Stops the server and removes all its files."""
        self.stop()
        self._dismiss_guard()

    def create_database(self, name: str, template: str | None = None) -> str:
        """Makes a database, a copy of `template` if one is named; the answer is its URL."""
        statement = sql.SQL("create database {} template {}").format(
            sql.Identifier(name), sql.Identifier(template or "template0")
        )
        deadline = time.monotonic() + _STOP_SECONDS
        while not self._try_create(statement, deadline):
            time.sleep(_POLL_SECONDS)
        return self.dsn(name)

    def drop_database(self, name: str) -> None:
        """Drops a database whoever is still connected to it. Nothing if there is none."""
        statement = sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name))
        with self._session() as session:
            session.execute(statement)

    def sessions(self, dbname: str) -> Sequence[str]:
        """One line for each client connected to the database: who, state, last statement."""
        with self._session() as session:
            rows = session.execute(
                "select format('pid %%s %%s %%s: %%s', pid, application_name, state, query)"
                " from pg_stat_activity"
                " where datname = %s and backend_type = 'client backend' order by pid",
                [dbname],
            )
            return [str(line) for (line,) in rows]

    @contextlib.contextmanager
    def _session(self) -> Generator[psycopg.Connection]:
        with psycopg.connect(self.dsn(), autocommit=True, connect_timeout=5) as session:
            yield session

    def _try_create(self, statement: sql.Composed, deadline: float) -> bool:
        try:
            with self._session() as session:
                session.execute(statement)
        except psycopg.errors.ObjectInUse:
            # The last session of a template may take a moment to leave after its client has.
            if time.monotonic() > deadline:
                raise
            return False
        return True

    def _make_cluster(self, durable: bool) -> None:
        password_file = self._home / "password"
        password_file.write_text(self._password)
        if self._account:
            os.chown(password_file, self._account.uid, self._account.gid)
        command: list[str | Path] = [
            *(self.binaries / "initdb", "--pgdata", self._home / "data"),
            *("--username", _SUPERUSER, "--pwfile", password_file, "--auth", "scram-sha-256"),
            *("--encoding", "UTF8", "--locale", "C"),
            *(() if durable else ("--no-sync",)),
        ]
        with (self._home / "initdb.log").open("w+b") as log:
            failed = self._spawn(command, log).wait() != 0
            self._tell_guard("")
            if failed:
                log.seek(0)
                raise ServerFailed(f"initdb failed:\n{log.read().decode(errors='replace')}")

    def _try_start(self, deadline: float) -> bool:
        written = len(self.log)
        command: list[str | Path] = [
            *(self.binaries / "postgres", "-D", self._home / "data", "-p", str(self.port)),
            *(f"--{name}={value}" for name, value in self._settings.items()),
        ]
        with (self._home / "log").open("ab") as log:
            self._process = self._spawn(command, log)
        while self._process.poll() is None and time.monotonic() < deadline:
            if self.answers():
                return True
            time.sleep(_POLL_SECONDS)
        self._end(signal.SIGKILL)
        said = self.log[written:]
        # Sessions outlive a killed postmaster by a moment, and hold its shared memory so long.
        if "shared memory block" in said and time.monotonic() < deadline:
            return False
        raise ServerFailed(f"postgres in {self.binaries} did not start:\n{said[-2000:]}")

    def answers(self) -> bool:
        try:
            with self._session():
                return True
        except psycopg.OperationalError:
            return False

    def _spawn(self, command: Sequence[str | Path], log: IO[Any]) -> subprocess.Popen[bytes]:
        account = self._account
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=self._home,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C", "TZ": "UTC"},
            start_new_session=True,  # a Ctrl-C at the terminal is for pytest, which stops it
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )
        self._tell_guard(str(process.pid))
        return process

    def _end(self, sign: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(sign)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._tell_guard("")

    def _tell_guard(self, running: str) -> None:
        assert self._guard.stdin is not None
        self._guard.stdin.write(f"{running}\n")
        self._guard.stdin.flush()

    def _dismiss_guard(self) -> None:
        shutil.rmtree(self._home, ignore_errors=True)
        self._guard.communicate()


def _parent(durable: bool) -> str:
    return "/var/tmp" if durable else "/tmp"


def _free_port() -> int:
    while True:
        port = secrets.choice(_PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
