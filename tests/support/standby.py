"""A second PostgreSQL that follows the first, is cut off from it, takes its place."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from tests.support.postgres_server import PostgresServer, ServerFailed

NAME = "standby"
WAIT_SECONDS = 20.0


class Standby(PostgresServer):
    """Made as a copy of a running server, which it follows once it is started. `port`: its own
    choice, or one that has become free.
    """

    def __init__(self, primary: PostgresServer, port: int | None = None) -> None:
        self._primary = primary
        super().__init__(binaries=primary.binaries)
        self.port = port or self.port

    def promote(self) -> None:
        """Returns when it takes writes."""
        with self._session() as session:
            session.execute("select pg_promote(wait => false)")
            recovering = "select pg_is_in_recovery()"
            wait_until(lambda: session.execute(recovering).fetchone() == (False,))

    def follow_nobody(self) -> None:
        """What is written from now on does not reach it."""
        with self._session() as session:
            session.execute("alter system set primary_conninfo = 'host=127.0.0.1 port=1'")
            session.execute("select pg_reload_conf()")
            wait_until(lambda: _receivers(session) == 0)

    def _make_cluster(self, durable: bool) -> None:
        del durable
        self._password = self._primary._password
        url = f"{self._primary.dsn()}?application_name={NAME}"
        chosen = ("--write-recovery-conf", "--checkpoint=fast", "--no-sync")
        self._run("pg_basebackup", "--pgdata", self._home / "data", *chosen, "--dbname", url)

    def _run(self, program: str, *arguments: str | Path) -> None:
        account = self._account
        done = subprocess.run(
            [self.binaries / program, *arguments],
            capture_output=True,
            cwd=self._home,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
            check=False,
        )
        if done.returncode:
            said = done.stderr.decode(errors="replace")[-2000:]
            raise ServerFailed(f"{program} failed:\n{said}{self.log[-2000:]}")


def follow_closely(primary: PostgresServer) -> None:
    """From now on no commit is acknowledged before the standby has it."""
    with psycopg.connect(primary.dsn(), autocommit=True) as session:
        session.execute(f"alter system set synchronous_standby_names = '{NAME}'")
        session.execute("select pg_reload_conf()")
        wait_until(lambda: _sync_states(session) == ["sync"])


def caught_up(primary: PostgresServer) -> None:
    """Returns when all standbys have what has been written so far."""
    with psycopg.connect(primary.dsn(), autocommit=True) as session:
        row = session.execute("select pg_current_wal_flush_lsn()::text").fetchone()
        left = "select count(*) from pg_stat_replication where replay_lsn < %s::pg_lsn"
        wait_until(lambda: session.execute(left, row).fetchone() == (0,))


def kill_hard(server: PostgresServer) -> None:
    """All its processes at once, as when the power fails. `server.close()` tidies up."""
    for process_id in processes_of(server):
        send(process_id, signal.SIGKILL)


def freeze(server: PostgresServer) -> None:
    """Its processes stop, its connections stay: nothing answers, nothing is closed."""
    for process_id in processes_of(server):
        send(process_id, signal.SIGSTOP)


def thaw(server: PostgresServer) -> None:
    for process_id in processes_of(server):
        send(process_id, signal.SIGCONT)


def processes_of(server: PostgresServer) -> list[int]:
    """The postmaster first, then its children."""
    postmaster = server.process_id
    if postmaster is None:
        return []
    listed = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text()
    return [postmaster, *map(int, listed.split())]


def send(process_id: int, sign: signal.Signals) -> None:
    try:
        os.kill(process_id, sign)
    except ProcessLookupError:
        return  # it has just left


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"did not come true within {WAIT_SECONDS} s"
        time.sleep(0.01)


def _sync_states(session: psycopg.Connection) -> list[str]:
    return [state for (state,) in session.execute("select sync_state from pg_stat_replication")]


def _receivers(session: psycopg.Connection) -> int:
    rows = session.execute("select 1 from pg_stat_wal_receiver where status = 'streaming'")
    return len(rows.fetchall())
