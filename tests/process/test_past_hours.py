"""Hours beside the model as people meet them: a daemon compares, and verbs and page show it."""

from __future__ import annotations

import json
import signal
import sqlite3
import time
from contextlib import closing
from zlib import crc32

import psycopg

from musterd.manager.duties.past_hours import LATE_SECONDS, SPREAD_SECONDS
from tests.support.command import Home, eventually
from tests.support.http_client import ask

HOUR_SECONDS = 3_600
WAS = {"wait_p50_seconds": 0.0, "wait_p95_seconds": 2.0, "wait_max_seconds": 3.0}
FIGURES = {
    "was": {**WAS, "worker_seconds": None},
    "present": {**WAS, "wait_p95_seconds": 2.1, "worker_seconds": 7200.0},
    "candidate": {**WAS, "wait_p95_seconds": 4.0, "worker_seconds": 3600.0},
}


def run_sql(home: Home, for_sqlite: str, for_postgres: str) -> None:
    if home.store_url:
        with psycopg.connect(home.store_url, autocommit=True) as conn:
            conn.execute(for_postgres.encode())
        return
    with closing(sqlite3.connect(home.folder / "musterd.db", isolation_level=None)) as conn:
        conn.executescript(for_sqlite)


def move_into_the_last_hour(home: Home) -> int:
    """All that has happened; returns when that hour began."""
    now = time.time()
    late = LATE_SECONDS + crc32(b"default") % SPREAD_SECONDS
    begun = int((now - late) // HOUR_SECONDS) * HOUR_SECONDS - HOUR_SECONDS
    seconds = int((now - begun - HOUR_SECONDS / 2) // 600) * 600
    run_sql(
        home,
        f"update event_log set at = at - {seconds} * 1000000;"
        f"update history_kinds set at_seconds = at_seconds - {seconds};",
        f"update musterd.event_log set at = at - interval '{seconds} s';"
        f"update musterd.history_kinds set at_seconds = at_seconds - {seconds};",
    )
    return begun


def figures_instead(home: Home) -> None:
    """As if it had been there all the time."""
    was, present, candidate = (json.dumps(each) for each in FIGURES.values())
    values = f"seconds = 3600, attempts = 500, skipped = null, was = '{was}'"
    values += f", present = '{present}', candidate = '{candidate}'"
    run_sql(
        home,
        f"update compared_hours set {values};",
        f"update musterd.compared_hours set {values};",
    )


def test_an_hour_that_a_daemon_did_not_see_is_told_as_such_and_others_are_shown(
    machine: Home,
) -> None:
    with machine.daemon() as daemon:
        daemon.wait_until_ready()
        machine.call("enqueue", "report", "--count", "30", "--wait")
        advice = machine.call("tune").out
        daemon.send(signal.SIGTERM)
        assert daemon.end() == 0
    assert "no hour has been compared with the model yet" in advice
    begun = move_into_the_last_hour(machine)
    with machine.daemon() as daemon:
        daemon.wait_until_ready()
        eventually(lambda: bool(ask(daemon.address, "/scaling").json["hours"]), seconds=30)
        (hour,) = ask(daemon.address, "/scaling").json["hours"]
        why = "its settings have not been in force for all of it"
        assert (hour["skipped"], hour["error_ratio"], hour["candidate"]) == (why, None, None)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(begun))
        assert hour["at"] == stamp
        figures_instead(machine)
        (hour,) = ask(daemon.address, "/scaling").json["hours"]
        assert {name: hour[name] for name in FIGURES} == FIGURES
        assert hour["error_ratio"] == 0.05
        page = ask(daemon.address, "/ui/scaling").text
        assert "Hours beside the model" in page
        assert "5 % off" in page
        said = machine.call("explain", "--set", daemon.listen)
        assert said.code == 0, said
        model, candidate = said.out.splitlines()[-2:]
        assert model.startswith("The model makes of it 0.0 ms at p50, 2.1 s at p95 and 3.0 s")
        assert model.endswith("for 7,200 worker-seconds: 5 % off.")
        assert candidate.startswith("With [scaling.candidate] it makes of it 0.0 ms at p50, 4.0 s")
        assert candidate.endswith("for 3,600 worker-seconds.")
        (whole, *_) = machine.call("explain", "--json", "--set", daemon.listen).lines
        assert whole["hour"] == hour
    sure = machine.call("tune").out
    assert "In 1 hour that the model was compared with, its p95 wait was off by 5 %" in sure
    assert machine.call("tune", "--json").json["confidence"] == {
        "hours": 1, "median_error_ratio": 0.05, "worst_error_ratio": 0.05, "longer": 0,
    }  # fmt: skip
