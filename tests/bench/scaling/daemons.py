"""A contestant that is a musterd daemon, on a database of its own."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from typing import Any

import attrs
import psycopg

from musterd import Client
from musterd.catalog.load import catalog_of
from musterd.config.load import load
from musterd.manager.scaling.model.figures import quantile
from musterd.manager.scaling.model.settings import model_settings
from musterd.manager.scaling.model.simulation import simulate
from musterd.store.opening import in_store
from tests.bench.running import daemon, wait_until
from tests.bench.scaling.figures import PROMISED_SECONDS, WARM_UP, Crew, Found, Ran
from tests.bench.scaling.loads import Arrival, catalog, together
from tests.support.postgres_server import PostgresServer
from tests.support.traces import trace_from

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
        predicted, real = p95s(dsn, sets, begun_epoch)
        return Found(
            self.name,
            [Ran(due - begun_epoch, waited, took) for due, waited, took in ran],
            [Crew(at, size) for at, size, _ in crews],
            sum(hired for at, _, hired in crews if at >= 0),
            tuple(map(int, early)),
            predicted,
            real,
        )


def p95s(dsn: str, sets: Sequence[str], since_epoch: float) -> tuple[float, float]:
    """Of the waits that the model makes of the log, with the settings that were in force, as
    `musterd simulate` does; and of those that were. Without the jobs before, which met a daemon
    that was just starting.
    """
    settings = load(None, {}, [f"store.url={dsn}", *sets]).settings
    trace = in_store(settings, lambda engine: trace_from(engine.events))
    run = simulate(trace, model_settings(settings, catalog_of(settings, {})))
    since = since_epoch - trace.begun_at.timestamp()
    of_load = [due >= since for due in trace.due_seconds]
    modelled, real = (sorted(compress(one, of_load)) for one in (run.waits, trace.waited_seconds))
    return quantile(modelled, 0.95), quantile(real, 0.95)


def _driven(dsn: str, jobs: Sequence[Arrival], at_epoch: float) -> float:
    """Enqueues all at their times; gives the begin by the clock of the store."""
    with Client(dsn) as client:
        wait_until(lambda: _is_ready(dsn))
        kinds = {one.kind for one in jobs}
        for kind in sorted(kinds):
            client.enqueue_many([(kind, None)] * WARM_UP)
        _wait_for_all(dsn, WARM_UP * len(kinds))
        if time.time() > at_epoch - REST_SECONDS:
            raise TimeoutError("the machine is too busy: daemons were not ready in time")
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
