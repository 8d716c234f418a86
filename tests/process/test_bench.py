"""`musterd bench` on either store: figures, and nothing left of it, however it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from musterd.store.postgres.scratch import MARK
from tests.fix_postgres import FreshDatabase
from tests.support import pgbouncer
from tests.support.command import COMMAND, Home, eventually
from tests.support.postgres_server import PostgresServer

FEW = ("bench", "--json", "--jobs", "200", "--pick-ups", "5", "--workers", "3")
ENDLESS = ("bench", "--json", "--jobs", "200", "--pick-ups", "10000", "--within", "5m")
ALIKE = "musterd_bench_0123abcd"  # a name like those of the bench, of somebody else's schema
EMPTY = "musterd_bench_ffffffff"
SCHEMAS = "select nspname from pg_namespace order by 1"


@pytest.fixture
def home(machine: Home) -> Home:
    """A machine with two jobs in its queue."""
    assert machine.call("enqueue", "report", "--count", "2").code == 0
    return machine


@pytest.fixture
def server(tmp_path: Path, fresh_database: FreshDatabase) -> Home:
    """One with PostgreSQL, still empty."""
    return Home(tmp_path / "state", fresh_database())


def places(home: Home) -> Sequence[str]:
    """All that there is beside the queue: schemas, or files."""
    if not home.store_url:
        return sorted(path.name for path in home.folder.iterdir() if path.name[:7] != "musterd")
    with psycopg.connect(home.store_url) as session:
        return [name for (name,) in session.execute(SCHEMAS.encode()).fetchall()]


def scratches(home: Home) -> list[str]:
    if not home.store_url:
        return [path.name for path in home.folder.glob("musterd_bench_*")]
    return [name for name in places(home) if name.startswith("musterd_bench_")]


def made_jobs(home: Home, name: str) -> int:
    """How many jobs there are in a scratch schema."""
    with psycopg.connect(home.store_url) as session:
        try:
            found = session.execute(f"select count(*) from {name}.job_rows".encode()).fetchone()
        except psycopg.errors.UndefinedTable:
            return 0
    return 0 if found is None else int(found[0])


@contextmanager
def running(home: Home) -> Generator[subprocess.Popen[bytes]]:
    """A measurement under way, whose store is there."""
    with subprocess.Popen(
        [*COMMAND, *ENDLESS], env=home.environ(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            eventually(lambda: bool(scratches(home)))
            yield process
        finally:
            process.kill()


def test_figures_and_nothing_else_is_different(home: Home) -> None:
    before, queue = places(home), home.call("jobs", "--json").out
    done = home.call(*FEW, "--set", "webhooks.url=https://127.0.0.1:1/never", "--set",
        "webhooks.allow_private=true", "--set", "webhooks.secret=whsec_" + "QUFB" * 8)  # fmt: skip
    assert (done.code, done.err) == (0, ""), done
    (found,) = done.lines
    assert found["whole"] is True
    assert (found["enqueued"], found["done"], found["pick_ups"], found["workers"]) == (
        *(200, 200),
        *(5, 3),
    )
    assert found["enqueued_jobs_per_second"] > 0
    assert found["done_jobs_per_second"] > 0
    spread = found["pick_up_seconds"]
    assert 0 <= spread["p50"] <= spread["p99"] <= spread["max"]
    assert spread["max"] > 0
    assert found["database"].split()[0] == ("PostgreSQL" if home.store_url else "SQLite")
    if home.store_url:
        assert str(conninfo_to_dict(home.store_url)["password"]) not in done.out
    assert places(home) == before
    assert scratches(home) == []
    assert home.call("jobs", "--json").out == queue


def test_people_get_a_table_and_no_live_line_where_nobody_looks(small_home: Home) -> None:
    done = small_home.call("bench", "--jobs", "50", "--pick-ups", "2")
    assert (done.code, done.err) == (0, "")
    assert "\x1b" not in done.out
    assert "8 workers in this process" in done.out
    for said in ("enqueued ", "done ", "pick-up p50", "pick-up p99", "pick-up max", "jobs/s"):
        assert said in done.out
    assert not small_home.folder.exists()  # no state of its own


@pytest.fixture
def small_home(tmp_path: Path) -> Home:
    """On SQLite, with nothing on it yet."""
    return Home(tmp_path / "state")


def test_time_is_up(small_home: Home) -> None:
    small_home.call("db", "migrate")
    done = small_home.call(*ENDLESS, "--within", "2s")
    assert (done.code, done.json["whole"], done.json["wanted"]["pick_ups"]) == (1, False, 10_000)
    assert done.json["pick_ups"] < 10_000
    assert "musterd: cut short after 2.0 s, while " in done.err
    assert scratches(small_home) == []


def test_interrupted_as_soon_as_its_store_is_there(home: Home) -> None:
    with running(home) as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=40)
    assert process.returncode == 1, err
    assert b"cut short by a signal" in err
    assert json.loads(out)["whole"] is False
    assert scratches(home) == []


def test_two_at_once_and_one_is_told_to_end(server: Home) -> None:
    with running(server) as process:
        (name,) = scratches(server)
        eventually(lambda: made_jobs(server, name) > 200)  # it picks up single ones by now
        other = server.call(*FEW)
        assert (other.code, other.json["removed"], other.json["left"]) == (0, [], [])
        assert scratches(server) == [name]
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=40)
    assert (process.returncode, b"while picking up" in err) == (1, True), err
    assert json.loads(out)["done_jobs_per_second"] > 0
    assert scratches(server) == []


def test_what_a_killed_one_leaves_the_next_one_removes(home: Home) -> None:
    with running(home) as process:
        (name,) = scratches(home)
        eventually(lambda: has_begun(home, name))
        process.kill()
    assert scratches(home) == [name]
    if home.store_url:
        make_schema(home, "")
    else:
        (home.folder / ALIKE).mkdir()
        (home.folder / ALIKE / "letter.txt").touch()
        (home.folder / EMPTY).mkdir()  # of one that was killed before it had made a file
    done = home.call(*FEW)
    assert done.code == 0, done
    wanted = {name} if home.store_url else {name, EMPTY}
    assert {one.split()[1].rpartition("/")[2] for one in done.json["removed"]} == wanted
    assert scratches(home) == [ALIKE]


def has_begun(home: Home, name: str) -> bool:
    if home.store_url:
        return made_jobs(home, name) > 0
    return (home.folder / name / "bench.db-wal").exists()


def make_schema(home: Home, comment: str) -> None:
    with psycopg.connect(home.store_url, autocommit=True) as session:
        session.execute(f"create schema {ALIKE}".encode())
        session.execute(f"comment on schema {ALIKE} is '{comment}'".encode())


def test_a_role_that_may_make_no_schema_and_one_that_may_not_drop_one(server: Home) -> None:
    known = conninfo_to_dict(server.store_url)
    role = f"bench_{os.urandom(4).hex()}"
    url = f"postgresql://{role}:poor@{known['host']}:{known['port']}/{known['dbname']}"
    make_schema(server, MARK)
    with psycopg.connect(server.store_url, autocommit=True) as session:
        session.execute(f"create role {role} login password 'poor'".encode())
        try:
            refused = server.call(*FEW, "--set", f"store.url={url}")
            session.execute(f"grant create on database {known['dbname']} to {role}".encode())
            done = server.call(*FEW, "--set", f"store.url={url}")
        finally:
            session.execute(f"drop owned by {role}".encode())
            session.execute(f"drop role {role}".encode())
    assert (refused.code, refused.out, "Traceback" in refused.err) == (78, "", False)
    assert f'grant create on database "{known["dbname"]}" to "{role}"' in refused.err
    assert "poor@" not in refused.err
    assert (done.code, done.json["removed"]) == (0, [])
    assert [one.startswith(f"schema {ALIKE}: drop schema") for one in done.json["left"]] == [True]


def test_through_a_pooler(server: Home, postgres: PostgresServer) -> None:
    database = str(conninfo_to_dict(server.store_url)["dbname"])
    with pgbouncer.running(postgres) as bouncer:
        done = server.call(*FEW, "--set", f"store.url={bouncer.url(database)}")
    assert (done.code, done.err) == (0, "")
    assert (done.json["pooler"], done.json["done"]) == (True, 200)
    assert scratches(server) == []


def test_a_store_that_is_away(small_home: Home) -> None:
    done = small_home.call(*FEW, "--set", "store.url=postgresql://x:hidden@127.0.0.1:1/x")
    assert (done.code, done.out) == (69, "")
    assert "127.0.0.1" in done.err
    assert "hidden" not in done.err


@pytest.mark.parametrize(
    "wrong",
    [("--jobs", "0"), ("--workers", "1001"), ("--pick-ups", "x"), ("--within", "0s"),
     ("--within", "2h")],
)  # fmt: skip
def test_bounds(small_home: Home, wrong: tuple[str, str]) -> None:
    done = small_home.call("bench", *wrong)
    assert (done.code, done.out) == (2, "")
    assert wrong[0] in done.err
