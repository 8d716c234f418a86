"""What daemons stand on: a server whose disk is small, ways to it that can be cut, a pooler."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path

import attrs
import psycopg

from tests.support.pgbouncer import PgBouncer, running
from tests.support.postgres_binaries import server_account
from tests.support.postgres_server import PostgresServer
from tests.support.wire_proxy import WireProxy

DATABASE = "jobs"
CONNECTIONS_MAX = 60
# A server that has lost a process begins anew when all its connections have ended. One that came
# meanwhile and says nothing, as that of a node that is frozen, holds it up for so long; by default
# for a minute.
SILENT_SECONDS_MAX = 5


@attrs.frozen
class Way:
    """A node's, to the store."""

    url: str
    listen_url: str = ""


@attrs.frozen
class Ground:
    """`url`: straight to the server. `lines`: one to each node but the last, and one to the clients
    at the end; the last node goes through the pooler. `disk`: what holds the tables; None = it
    can't be filled.
    """

    server: PostgresServer
    url: str
    ways: tuple[Way, ...]
    clients_url: str
    lines: tuple[WireProxy, ...] = ()
    bouncer: PgBouncer | None = None
    disk: Path | None = None


@contextlib.contextmanager
def laid(nodes: int, memory_mb: int) -> Generator[Ground]:
    """All of it is gone after the block."""
    with contextlib.ExitStack() as stack:
        disk = stack.enter_context(small_disk(memory_mb))
        server = stack.enter_context(
            PostgresServer(
                max_connections=str(CONNECTIONS_MAX),
                authentication_timeout=f"{SILENT_SECONDS_MAX}s",
            )
        )
        make_database(server, disk)
        url = server.dsn(DATABASE)
        bouncer = stack.enter_context(running(server))
        lines = tuple(stack.enter_context(WireProxy(url)) for _ in range(nodes))
        ways = (*(Way(line.url) for line in lines[:-1]), Way(bouncer.url(DATABASE), url))
        yield Ground(server, url, ways, lines[-1].url, lines, bouncer, disk)


def make_database(server: PostgresServer, disk: Path | None) -> None:
    if disk is None:
        server.create_database(DATABASE)
        return
    with psycopg.connect(server.dsn(), autocommit=True) as session:
        session.execute(f"create tablespace small location '{disk}/tables'".encode())
        session.execute(f"create database {DATABASE} template template0 tablespace small".encode())


@contextlib.contextmanager
def small_disk(memory_mb: int) -> Generator[Path | None]:
    """A file system of its own, which only root can make; None for others."""
    if os.geteuid() != 0:
        yield None
        return
    folder = Path(tempfile.mkdtemp(prefix="musterd-disk-", dir="/tmp"))
    try:
        size = f"size={memory_mb}m,mode=755"
        subprocess.run(["mount", "-t", "tmpfs", "-o", size, "none", str(folder)], check=True)
        try:
            tables = folder / "tables"
            tables.mkdir(mode=0o700)
            account = server_account()
            if account:
                os.chown(tables, account.uid, account.gid)
            yield folder
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)
    finally:
        shutil.rmtree(folder)
