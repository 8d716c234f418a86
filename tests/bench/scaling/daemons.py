"""A contestant that is a musterd daemon, on a database of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import psycopg

from musterd import Client
from tests.bench.running import ROOT, daemon, wait_until
from tests.bench.scaling.figures import PROMISED_SECONDS, WARM_UP, Crew, Found, Ran
from tests.bench.scaling.loads import Arrival, catalog, together
from tests.support.postgres_server import PostgresServer

MAX_COUNT = 16
REST_SECONDS = 12.0  # until a crew has forgotten a burst
POLICIES = {
    "demand": ("scaling.policy=demand",),
    "latency": ("scaling.policy=latency",),
    "fixed": (f"workers.default_count={MAX_COUNT}",),
}
JOBS = """
select extract(epoch from run_at)::float8, extract(epoch from started_at - run_at)::float8,
    extract(epoch from finished_at - started_at)::float8
from musterd.jobs where run_at >= to_timestamp(%s) order by 1
"""
# From the last decision before the begin on, which may be a tick away.
CREWS = """
select extract(epoch from at)::float8 - %s, size_before + hired + taken_back - retired, hired
from musterd.scaling_journal where until >= to_timestamp(%s) - interval '5 s' order by at
"""
# What was claimed ahead and given back before it started was not begun twice.
ENDED_EARLY = """
select (select count(*) from musterd.events where type = 'worker.dismissed'),
    (
        select count(*) from (
            select from musterd.events where type = 'job.started'
            group by job_id having count(*) > 1
        ) begun_again
    ),
    (select count(*) from musterd.jobs where state <> 'succeeded')
"""


@attrs.define
class Daemon:
    """Runs the load when it is told to; `found` says what came of it."""

    server: PostgresServer
    name: str
    found: Found | None = attrs.field(default=None, init=False)

    def run(self, jobs: Sequence[Arrival], at_epoch: float, window_seconds: float) -> None:
        """Has run some jobs of each kind by then, and rested; begins at that time."""
        database = f"scaling_{self.name}"
        dsn = self.server.create_database(database)
        with tempfile.TemporaryDirectory() as folder:
            kinds = Path(folder) / "kinds.toml"
            kinds.write_text(catalog(jobs))
            sets = [
                "workers.default_count=1",
                f"workers.max_count={MAX_COUNT}",
                f"scaling.max_wait_seconds={PROMISED_SECONDS}",
                f"catalog.paths={json.dumps([str(kinds)])}",
                *POLICIES[self.name],
            ]
            with daemon(dsn, sets):
                begun_epoch = _driven(dsn, jobs, at_epoch)
                wait_until(lambda: time.time() > at_epoch + window_seconds)
                _wait_for_all(dsn, len(jobs) + WARM_UP * len({one.kind for one in jobs}))
            self.found = self._read(dsn, begun_epoch, sets)
        self.server.drop_database(database)

    def _read(self, dsn: str, begun_epoch: float, sets: Sequence[str]) -> Found:
        with psycopg.connect(dsn) as conn:
            ran = conn.execute(JOBS.encode(), [begun_epoch]).fetchall()
            crews = conn.execute(CREWS.encode(), [begun_epoch, begun_epoch]).fetchall()
            early = conn.execute(ENDED_EARLY.encode()).fetchone() or ()
        told = simulated(dsn, sets)
        return Found(
            self.name,
            [Ran(due - begun_epoch, waited, took) for due, waited, took in ran],
            [Crew(at, size) for at, size, _ in crews],
            sum(hired for at, _, hired in crews if at >= 0),
            tuple(map(int, early)),
            told["present"]["wait_p95_seconds"],
            told["trace"]["wait_p95_seconds"],
        )


def simulated(dsn: str, sets: Sequence[str]) -> Any:
    """What the model makes of the jobs of the log, with the settings that were in force."""
    command = [sys.executable, "-m", "musterd", "simulate", "--json"]
    for one in (f"store.url={dsn}", *sets):
        command += ["--set", one]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def _driven(dsn: str, jobs: Sequence[Arrival], at_epoch: float) -> float:
    """Enqueues all at their times; gives the begin by the clock of the store."""
    with Client(dsn) as client:
        wait_until(lambda: _is_ready(dsn))
        kinds = {one.kind for one in jobs}
        for kind in sorted(kinds):
            client.enqueue_many([(kind, None)] * WARM_UP)
        _wait_for_all(dsn, WARM_UP * len(kinds))
        if time.time() > at_epoch - REST_SECONDS:
            raise SystemExit("the machine is too busy: daemons were not ready in time")
        for at_seconds, alike in together(jobs):
            time.sleep(max(0.0, at_epoch + at_seconds - time.time()))
            client.enqueue_many([(one.kind, None) for one in alike])
    return at_epoch


def _is_ready(dsn: str) -> bool:
    with psycopg.connect(dsn) as conn:
        return conn.execute("select to_regclass('musterd.job_rows') is not null").fetchone() == (
            True,
        )


def _wait_for_all(dsn: str, number: int) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        wait_until(lambda: _succeeded(conn) >= number)


def _succeeded(conn: psycopg.Connection[Any]) -> int:
    (number,) = conn.execute("select succeeded from musterd.kept_counts").fetchone() or (0,)
    return int(number)
