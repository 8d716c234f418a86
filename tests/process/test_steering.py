"""Operators steer a running node: drain it, stop its jobs, see what does not obey. Both engines."""

import json
import signal
import subprocess
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs
import psycopg
import pytest

from tests.fix_postgres import FreshDatabase
from tests.support.command import COMMAND, Daemon, Home, eventually

USER = Path(__file__).with_name("user")
LEASE_SECONDS = 3.0
SHORT_LEASE = ("--set", f"workers.lease_timeout_seconds={LEASE_SECONDS:g}")
TOLD_SECONDS = 0.1
CATALOG = "[kinds.long]\nduration_ms = 600000\n"


@pytest.fixture(params=["sqlite", "postgresql"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    (tmp_path / "kinds.toml").write_text(CATALOG)
    if request.param == "sqlite":
        return Home(tmp_path / "state")
    fresh_database: FreshDatabase = request.getfixturevalue("fresh_database")
    return Home(tmp_path / "state", fresh_database())


@pytest.fixture
def known(tmp_path: Path) -> tuple[str, ...]:
    return ("--set", f'catalog.paths=["{tmp_path / "kinds.toml"}", "{USER}/kinds.toml"]')


def run_long(home: Home, daemon: Daemon, known: tuple[str, ...], count: int) -> list[int]:
    daemon.wait_until_ready()
    home.call("enqueue", "long", "--count", str(count), *known)
    ids = list(range(1, count + 1))
    eventually(lambda: all(home.job(one)["state"] == "running" for one in ids))
    return ids


def status(home: Home, daemon: Daemon) -> dict[str, Any]:
    found: dict[str, Any] = home.call("status", "--json", "--set", daemon.listen).json
    return found


def lease_of(home: Home, job_id: int) -> datetime:
    return datetime.fromisoformat(home.job(job_id)["lease_expires_at"])


def test_a_drain_from_outside(home: Home, known: tuple[str, ...]) -> None:
    with home.daemon(*known, *SHORT_LEASE) as daemon:
        first, second = run_long(home, daemon, known, 2)
        lease = lease_of(home, second)
        there = ("--set", daemon.listen)
        begun = home.call("drain", *there)
        assert (begun.code, begun.err) == (0, "")
        assert begun.out.startswith("draining: it takes no new jobs, and waits up to ")
        assert begun.out.endswith(" for 2 jobs to end\n")
        again = home.call("drain", "--json", *there)
        assert (again.code, again.json["phase"], again.json["jobs"]) == (0, "draining", 2)
        waiting = subprocess.Popen(
            [*COMMAND, "drain", "--wait", *there], env=home.environ(), stdout=subprocess.PIPE
        )
        try:
            late = home.call("enqueue", "long", "--json", *known).json["id"]
            before = status(home, daemon)
            assert home.call("cancel", str(first)).code == 0
            eventually(lambda: home.job(first)["state"] == "canceled", 10)
            # The other one keeps its lease for longer than the lease lasted when the drain began.
            eventually(lambda: (lease_of(home, second) - lease).total_seconds() > LEASE_SECONDS, 20)
            after = status(home, daemon)
            assert after["node"]["drain_seconds_left"] < before["node"]["drain_seconds_left"]
            assert (after["healthy"], after["node"]["busy"] + after["node"]["retiring"]) == (
                False,
                1,
            )
            assert "1 job to end" in after["verdict"]
            assert (home.job(second)["attempt"], home.job(late)["attempt"]) == (1, 0)
            assert waiting.poll() is None
            assert home.call("pause", str(second)).code == 0
            out, _ = waiting.communicate(timeout=20)
        finally:
            waiting.kill()
            waiting.wait()
        assert (waiting.returncode, out.decode().endswith(" has ended\n")) == (0, True)
        assert daemon.end() == 0
    assert home.job(second)["state"] == "paused"
    assert home.job(late)["state"] == "queued"


def test_an_idle_daemon_answers_before_it_goes(home: Home) -> None:
    with home.daemon() as daemon:
        daemon.wait_until_ready()
        done = home.call("drain", "--wait", "--set", daemon.listen)
        assert (done.code, done.err) == (0, "")
        assert daemon.end() == 0


def test_a_signal_hurries_a_drain_only_when_it_comes_twice(
    home: Home, known: tuple[str, ...]
) -> None:
    with home.daemon(*known) as daemon:
        (job_id,) = run_long(home, daemon, known, 1)
        assert home.call("drain", "--set", daemon.listen).code == 0
        daemon.send(signal.SIGTERM)
        daemon.wait_for_line("event=signal")
        time.sleep(0.3)
        assert home.job(job_id)["state"] == "running"
        told = time.monotonic()
        daemon.send(signal.SIGTERM)
        assert daemon.end() == 0
        assert time.monotonic() - told < 3
    found = home.job(job_id)
    assert (found["state"], found["attempts"][0]["outcome"]) == ("queued", "released")


@pytest.mark.parametrize("interrupted", ["requeue", "pause"])
def test_what_the_grace_period_does_not_suffice_for_is_interrupted(
    home: Home, known: tuple[str, ...], interrupted: str
) -> None:
    sets = (f"shutdown.interrupted={interrupted}", "shutdown.grace_period_seconds=0.3")
    with home.daemon(*known, "--set", sets[0], "--set", sets[1]) as daemon:
        (job_id,) = run_long(home, daemon, known, 1)
        done = home.call("drain", "--wait", "--json", "--set", daemon.listen)
        assert (done.code, done.json["phase"], done.json["jobs"]) == (1, "stopped", 1)
        assert daemon.end() == 0
    found = home.job(job_id)
    state, outcome = ("paused", "paused") if interrupted == "pause" else ("queued", "released")
    assert (found["state"], [one["outcome"] for one in found["attempts"]]) == (state, [outcome])


@attrs.frozen
class Deaf:
    """A job whose handler does not stop when it is asked to, until a file says that it may."""

    id: int
    kind: str
    verb: str
    end: str
    folder: Path


def test_handlers_that_do_not_stop_are_told_of(
    home: Home, known: tuple[str, ...], tmp_path: Path
) -> None:
    deaf: list[Deaf] = []
    sets = ("--set", "executor.grace_seconds=0.1", "--set", "workers.default_count=4")
    with home.daemon(*known, *sets, *SHORT_LEASE) as daemon:
        daemon.wait_until_ready()
        for kind in ("ignores-cancel", "waits-thread"):
            for verb, end in (("cancel", "canceled"), ("pause", "paused")):
                folder = tmp_path / f"{kind}-{verb}"
                folder.mkdir()
                home.call("enqueue", kind, "--payload", json.dumps(str(folder)), *known)
                deaf.append(Deaf(len(deaf) + 1, kind, verb, end, folder))
        eventually(lambda: all(home.job(one.id)["progress"]["note"] == "half way" for one in deaf))
        leases = {one.id: lease_of(home, one.id) for one in deaf}
        for one in deaf:
            assert home.call(one.verb, str(one.id)).code == 0
            line = daemon.wait_for_line(f'event="request ignored" .*job_id={one.id} ')
            assert f"kind={one.kind} attempt=1 request={one.verb}" in line
        said = home.call("status", "--set", daemon.listen)
        for one in deaf:
            asked = f"IGNORED {one.verb}: job {one.id} ({one.kind}) still runs, asked to stop "
            assert asked in said.out
            assert f"asked for  {one.verb}, " in home.call("job", str(one.id), *known).out
        eventually(
            lambda: all(lasts_longer(home, job_id, since) for job_id, since in leases.items()), 20
        )
        assert all(home.job(one.id)["state"] == "running" for one in deaf)
        for one in deaf:
            (one.folder / "go").touch()
        eventually(lambda: all(home.job(one.id)["state"] == one.end for one in deaf), 10)
        assert status(home, daemon)["node"]["ignored"] == []
    for one in deaf:
        found = home.job(one.id)
        outcomes = [each["outcome"] for each in found["attempts"]]
        assert (outcomes, found["result"]) == ([one.end], None)
    assert len([line for line in daemon.log if "request ignored" in line]) == len(deaf)


def lasts_longer(home: Home, job_id: int, lease: datetime) -> bool:
    """By more than a whole lease."""
    return (lease_of(home, job_id) - lease).total_seconds() > LEASE_SECONDS


def test_holders_hear_within_a_tenth_of_a_second(
    tmp_path: Path, fresh_database: FreshDatabase, known: tuple[str, ...]
) -> None:
    """No renewal is near: it is the notification that tells them."""
    (tmp_path / "kinds.toml").write_text(CATALOG)
    home = Home(tmp_path / "state", fresh_database())
    rare = ("leases.heartbeat_seconds=60", "workers.lease_timeout_seconds=300")
    crew = ("workers.default_count=10", "workers.max_count=10")
    with (
        home.daemon(*known, *(word for one in (*rare, *crew) for word in ("--set", one))) as daemon,
        psycopg.connect(home.store_url, autocommit=True) as conn,
    ):
        ids = run_long(home, daemon, known, 10)
        took = [_seconds_to_stop(conn, one, "cancel" if one % 2 else "pause") for one in ids]
    shown = ", ".join(f"{seconds * 1000:.1f}" for seconds in sorted(took))
    print(f"from the request to the end of the work: {shown} ms")  # noqa: T201 - for who wonders
    assert sorted(took)[len(took) // 2] <= TOLD_SECONDS


def _seconds_to_stop(conn: psycopg.Connection[Any], job_id: int, verb: str) -> float:
    asked = conn.execute(f"select clock_timestamp(), musterd.{verb}(%s)".encode(), (job_id,))
    (since, _) = asked.fetchone() or (None, None)
    seconds = "select extract(epoch from finished_at - %s)::float8 from musterd.jobs where id = %s"

    def found() -> float | None:
        (value,) = conn.execute(seconds.encode(), (since, job_id)).fetchone() or (None,)
        return value

    eventually(lambda: found() is not None, 10)
    return found() or 0.0


def test_where_nobody_is_there_is_nothing_to_drain(tmp_path: Path) -> None:
    home = Home(tmp_path / "state")
    done = home.call("drain", "--wait", "--set", "http.listen=127.0.0.1:1")
    assert (done.code, done.out) == (69, "")
    assert done.err.startswith("musterd: no drain: no daemon answers at 127.0.0.1:1")
    assert "musterd run" in done.err


def test_a_daemon_of_another_store_is_left_alone(tmp_path: Path) -> None:
    with Home(tmp_path / "one").daemon() as daemon:
        daemon.wait_until_ready()
        done = Home(tmp_path / "other").call("drain", "--set", daemon.listen)
        assert (done.code, "uses another store" in done.err) == (69, True)
        assert daemon.process.poll() is None
        assert not [line for line in daemon.log if "draining" in line]
