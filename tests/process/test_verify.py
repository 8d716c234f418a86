"""`musterd verify`, as an operator meets it: living stores, files, and what was tampered with."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import psycopg

from tests.support.command import Home

WORDS = ("verify", "--json")


def tamper(machine: Home, sql: str) -> None:
    if machine.store_url:
        with psycopg.connect(machine.store_url, autocommit=True) as connection:
            connection.execute("set search_path = musterd")
            connection.execute(sql.encode())
        return
    with closing(sqlite3.connect(machine.folder / "musterd.db", isolation_level=None)) as store:
        store.execute(sql)


def work(machine: Home) -> None:
    machine.call("enqueue", "noop", "--count", "30", "--wait")
    machine.call("enqueue", "noop", "--target", "t", "--wait")


def findings(told: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    return {one["rule"]: one["finding"] for one in told["rules"]}


def test_a_store_at_work_holds_and_one_that_was_tampered_with_does_not(machine: Home) -> None:
    with machine.daemon() as daemon:
        daemon.wait_until_ready()
        machine.call("enqueue", "noop", "--count", "300")
        during = machine.call(*WORDS)
        assert during.code == 0, during.out
        work(machine)
    done = machine.call(*WORDS)
    assert done.code == 0, done.out
    assert done.json["holds"] is True
    assert set(findings(done.json).values()) == {"ok", "not checked"}
    assert findings(done.json)["table"] == findings(done.json)["counts"] == "ok"
    assert machine.call("verify").out.startswith("all holds: ")

    tamper(machine, "delete from job_rows where id = 3")
    tamper(machine, "update job_rows set attempt = 5 where id = 4")
    done = machine.call(*WORDS)
    assert done.code == 1
    assert {(one["rule"], one["job_id"]) for one in done.json["violations"]} >= {
        ("table", 3),
        ("table", 4),
    }
    tamper(machine, "delete from event_log where last in (select min(last) + 3 from event_log)")
    told = machine.call("verify")
    assert told.code == 1
    assert told.out.startswith("NOT ALL HOLDS: ")


def test_a_log_in_a_file(home: Home) -> None:
    with home.daemon() as daemon:
        daemon.wait_until_ready()
        work(home)
    log = home.folder.parent / "log.jsonl"
    log.write_text(home.call("events", "--since", "0", "--json").out)
    done = home.call(*WORDS, "--file", str(log))
    assert done.code == 0, done.out
    assert findings(done.json)["log"] == "ok"
    assert findings(done.json)["table"] == "not checked"

    lines = log.read_text().splitlines()
    first_start = next(one for one in lines if "job.started" in one)
    told = json.loads(first_start)
    told["data"]["attempt"] = 3
    forged = "\n".join(json.dumps(told) if one == first_start else one for one in lines)
    done = home.call(*WORDS, "--file", "-", given=forged)
    assert done.code == 1
    assert ("attempts", told["job_id"]) in {
        (one["rule"], one["job_id"]) for one in done.json["violations"]
    }
    later = home.call(*WORDS, "--file", "-", "--since", "9", given="\n".join(lines))
    assert later.code == 0
    assert later.json["first"] == 10


def test_what_cannot_be_verified(home: Home) -> None:
    none = home.call("verify", "--file", str(home.folder / "missing"))
    assert none.code == 2
    bad = home.call("verify", "--file", "-", given="hello")
    assert bad.code == 2
    assert bad.err.startswith("musterd: <stdin>: line 1 is no JSON")
    assert home.call("verify", "--file", "-", "--since", "10m", given="").code == 2
    assert home.call("verify", "--set", "no.such=1").code == 78
    assert home.call("verify", "--tenant", "nobody").code == 3
    away = home.call("verify", "--set", "store.url=postgresql://127.0.0.1:1/x")
    assert away.code == 69
