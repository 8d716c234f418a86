"""The tests' own PostgreSQL: it survives what tests do to it, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests.fix_postgres import FreshDatabase
from tests.support.command import eventually
from tests.support.postgres_binaries import PostgresMissing, find_binaries
from tests.support.postgres_server import PostgresServer

ROOT = Path(__file__).resolve().parent.parent

OWNER = """
from tests.support.postgres_server import PostgresServer
server = PostgresServer()
server.start()
print(server.dsn(), server._home, flush=True)
input()
"""

LEAKY = """
import psycopg
import pytest
pytest_plugins = ["tests.fix_postgres"]

@pytest.fixture(scope="session")
def held():
    connections = []
    yield connections
    for connection in connections:
        connection.close()

def test_leaves_a_connection_open(held, fresh_database):
    held.append(psycopg.connect(fresh_database(), application_name="forgetful"))
"""


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


def test_a_database_is_a_copy_of_its_template(
    postgres: PostgresServer, fresh_database: FreshDatabase
) -> None:
    template = fresh_database()
    with psycopg.connect(template) as session:
        session.execute("create table facts as select 42 as answer")
        name = session.info.dbname
    with psycopg.connect(fresh_database(name)) as session:
        assert session.execute("select answer from facts").fetchall() == [(42,)]
        assert session.info.dbname != name
    assert postgres.process_id is not None


def test_a_restarted_server_keeps_its_address_and_data(server: PostgresServer) -> None:
    dsn = server.create_database("kept")
    for again in (server.restart, server.stop_hard):
        before = server.process_id
        with psycopg.connect(dsn) as session:
            name = sql.Identifier(f"kept_{again.__name__}")
            session.execute(sql.SQL("create table {} ()").format(name))
            session.commit()
            again()
            with pytest.raises(psycopg.OperationalError):
                session.execute("select 1")
        assert server.process_id != before
    with psycopg.connect(dsn) as session:
        tables = session.execute("select relname from pg_class where relname like 'kept_%'")
        assert {name for (name,) in tables} == {"kept_restart", "kept_stop_hard"}


@pytest.mark.usefixtures("postgres")
def test_a_killed_owner_leaves_no_server_and_no_files() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        dsn, home = owner.stdout.readline().split()
        psycopg.connect(dsn).close()
        owner.send_signal(signal.SIGKILL)
    eventually(lambda: not Path(home).exists())
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(dsn)


@pytest.mark.usefixtures("postgres")
def test_a_forgotten_connection_fails_its_test(tmp_path: Path) -> None:
    (tmp_path / "test_leaky.py").write_text(LEAKY)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", os.devnull, "-p", "no:cacheprovider", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1, run.stdout + run.stderr
    assert "connections left open" in run.stdout
    assert "forgetful" in run.stdout


def test_a_folder_without_a_server_is_named(tmp_path: Path) -> None:
    with pytest.raises(PostgresMissing, match=r"MUSTERD_TEST_PG_BIN=.*no postgres and initdb"):
        find_binaries({"MUSTERD_TEST_PG_BIN": str(tmp_path)})
