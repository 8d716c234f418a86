"""Two daemons, each behind a cable of its own; one cable is cut without a word to anybody, and
mended later.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.fix_postgres import FreshDatabase
from tests.support.command import COMMAND, Daemon, Home, eventually
from tests.support.netns import Cable, cables
from tests.support.postgres_server import PostgresServer
from tests.support.servers import Session, check_ended_once, ended, states

LEASE_SECONDS = 3.0
UNDER_WAY_SECONDS = 0.3  # what had left before the cable was cut has arrived by then
CATALOG = """
[kinds.ticking]
python = "ticking:tick"
[kinds.second]
duration_ms = 1000
"""
# Leaves a line for each moment in which it works.
HANDLER = """
import time
from pathlib import Path

def tick(job):
    with Path(job.payload["file"]).open("a") as ticks:
        for _ in range(int(job.payload["seconds"] * 20)):
            print(job.attempt, time.time(), file=ticks, flush=True)
            time.sleep(0.05)
"""


@pytest.fixture
def url(fresh_database: FreshDatabase) -> str:
    return fresh_database()


@pytest.fixture
def two(postgres: PostgresServer, url: str) -> Generator[Sequence[Cable]]:
    del url  # the doors have to be shut before its database is dropped
    with cables(2, postgres.port) as laid:
        yield laid


@pytest.fixture
def session(url: str) -> Generator[Session]:
    with psycopg.connect(url, autocommit=True) as session:
        yield session


@pytest.fixture
def options(tmp_path: Path) -> Sequence[str]:
    (tmp_path / "kinds.toml").write_text(CATALOG)
    (tmp_path / "ticking.py").write_text(HANDLER)
    sets: dict[str, Any] = {
        "catalog.paths": [str(tmp_path / "kinds.toml")],
        "workers.lease_timeout_seconds": LEASE_SECONDS,
        "store.statement_timeout_seconds": 2,
        "store.connect_timeout_seconds": 1,
        "http.listen": "127.0.0.1:0",
    }
    return [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]


def daemon_at(cable: Cable, url: str, folder: Path, options: Sequence[str]) -> Daemon:
    known = conninfo_to_dict(url)
    place = f"{known['user']}:{known['password']}@{cable.door}:{known['port']}"
    home = Home(folder / cable.namespace, f"postgresql://{place}/{known['dbname']}")
    return Daemon([*cable.command, *COMMAND, "run", *options], home.environ())


def test_a_node_that_is_cut_off_stops_in_time_and_comes_back(
    two: Sequence[Cable], url: str, session: Session, tmp_path: Path, options: Sequence[str]
) -> None:
    """What it worked on is taken over by the other node; never do both work on it."""
    ticks = tmp_path / "ticks"
    with daemon_at(two[0], url, tmp_path, options) as cut_off:
        cut_off.wait_until_ready()
        ask = (
            "select musterd.enqueue('ticking', jsonb_build_object('file', %s::text, 'seconds', 6))"
        )
        session.execute(ask, [str(ticks)])
        session.execute("select musterd.enqueue('second')")
        eventually(lambda: states(session) == {"running": 2} and ticks.exists())
        two[0].cut()
        lease_end = lease_end_of(session)
        with daemon_at(two[1], url, tmp_path, options):
            eventually(lambda: attempt_of(session) == 2)
            cut_off.wait_for_line("trouble=(timeout|unreachable)")
            eventually(lambda: states(session) == {"succeeded": 2})
            first, second = times_by_attempt(ticks)
            assert max(first) < lease_end < min(second)
            settled = ended(session)
            assert {attempt for attempt, _ in settled.values()} == {2}
            two[0].mend()
            cut_off.wait_for_line("store recovered")
            cut_off.wait_for_line("lease lost|settlements refused")
        # The other one has left: this is the one that comes back.
        session.execute("select musterd.enqueue('second') from generate_series(1, 3)")
        eventually(lambda: states(session) == {"succeeded": 5})
        assert settled.items() <= ended(session).items()
        check_ended_once(session)
        assert cut_off.process.poll() is None


def attempt_of(session: Session) -> int:
    row = session.execute("select attempt from musterd.jobs where id = 1").fetchone()
    assert row is not None
    return int(row[0])


def lease_end_of(session: Session) -> float:
    """When the lease of the first job ends, if nobody renews it any more."""
    time.sleep(UNDER_WAY_SECONDS)
    row = session.execute(
        "select extract(epoch from lease_expires_at)::float8 from musterd.jobs where id = 1"
    ).fetchone()
    assert row is not None
    return float(row[0])


def times_by_attempt(ticks: Path) -> tuple[list[float], list[float]]:
    lines = [line.split() for line in ticks.read_text().splitlines()]
    first, second = ([float(at) for no, at in lines if no == each] for each in ("1", "2"))
    return first, second
