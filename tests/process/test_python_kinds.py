"""Python kinds in the real daemon, on both engines: from a user's module to the job's report."""

from __future__ import annotations

import json
import signal
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from musterd.manager.node.process import YOUNG_MAX
from musterd.store.job_log import lines_of, plain
from tests.support.children import is_alive
from tests.support.command import Daemon, Home, eventually
from tests.support.leaks import no_leaks

USER = Path(__file__).with_name("user")
KINDS = ("--set", f'catalog.paths=["{USER}/kinds.toml"]')
SHORT_LEASE = ("--set", "workers.lease_timeout_seconds=2")
MAX_LOG_BYTES = 65_536


@pytest.fixture
def home(machine: Home) -> Home:
    return machine


def enqueue(home: Home, kind: str, payload: object) -> int:
    done = home.call("enqueue", kind, "--payload", json.dumps(payload), "--json", *KINDS)
    assert done.code == 0, done
    job_id: int = done.json["id"]
    return job_id


def run(home: Home, kind: str, payload: object) -> dict[str, Any]:
    """Gives the job when it has ended."""
    words = ("--payload", json.dumps(payload), "--wait", "--json", *KINDS)
    job: dict[str, Any] = home.call("enqueue", kind, *words).json
    return job


def outcomes(job: dict[str, Any]) -> list[str]:
    return [attempt["outcome"] for attempt in job["attempts"]]


def seconds_since_epoch(time_text: str) -> float:
    return datetime.fromisoformat(time_text).timestamp()


def pids_in(folder: Path) -> list[int]:
    return [int(path.name.removeprefix("pid-")) for path in folder.glob("pid-*")]


def wait_until_running(home: Home, daemon: Daemon, kind: str, folder: Path) -> int:
    daemon.wait_until_ready()
    job_id = enqueue(home, kind, str(folder))
    eventually(lambda: home.job(job_id)["progress"]["note"] == "half way")
    return job_id


def test_every_isolation_gives_results_and_logs(home: Home) -> None:
    with no_leaks(), home.daemon(*KINDS) as daemon:
        daemon.wait_until_ready()
        for kind, said in (
            ("plain", ["printed", "logged"]), ("on-asyncio", ["printed", "logged"]),
            ("on-trio", ["logged"]), ("threaded", ["logged"]),
        ):  # fmt: skip
            job = run(home, kind, {"n": 1})
            assert (job["state"], outcomes(job)) == ("succeeded", ["succeeded"]), job
            assert job["result"] == {"payload": {"n": 1}, "attempt": 1}
            assert plain(job["attempts"][0]["log"]).split() == said
            assert "log of attempt 1:" in home.call("job", str(job["id"]), *KINDS).out
        daemon.send(signal.SIGTERM)
        assert daemon.end() == 0


def test_a_users_modules_may_have_the_names_of_ours(home: Home) -> None:
    with home.daemon(*KINDS) as daemon:
        daemon.wait_until_ready()
        for name in ("config", "catalog", "workers", "store", "manager"):
            job = run(home, f"named-{name}", None)
            assert (job["state"], job["result"]) == ("succeeded", name), job
    assert not [line for line in daemon.log if "kind broken" in line]


@pytest.mark.parametrize("kind", ["waits", "waits-task", "waits-thread"])
def test_the_report_shows_how_far_a_handler_is_and_a_drain_lets_it_finish(
    home: Home, tmp_path: Path, kind: str
) -> None:
    with no_leaks(), home.daemon(*KINDS) as daemon:
        job_id = wait_until_running(home, daemon, kind, tmp_path)
        assert "42 %, half way" in home.call("job", str(job_id), *KINDS).out
        daemon.send(signal.SIGTERM)
        daemon.wait_for_line("event=draining")
        assert home.job(job_id)["state"] == "running"
        (tmp_path / "go").touch()
        assert daemon.end() == 0
    job = home.job(job_id)
    assert (outcomes(job), job["result"]) == (["succeeded"], "finished")


@pytest.mark.parametrize("isolation", ["process", "task", "thread"])
def test_a_handler_says_how_its_job_ends(home: Home, isolation: str) -> None:
    with home.daemon(*KINDS) as daemon:
        daemon.wait_until_ready()
        ended = {
            what: run(home, f"ends-{isolation}", what)
            for what in ("Retry", "Retry always", "Fatal", "Snooze", "Cancel", "ValueError")
        }
    assert {what: outcomes(job) for what, job in ended.items()} == {
        "Retry": ["retrying", "succeeded"],
        "Retry always": ["retrying", "retrying", "retrying", "failed"],
        "Fatal": ["failed"],
        "Snooze": ["snoozed", "succeeded"],
        "Cancel": ["canceled"],
        "ValueError": ["failed"],
    }
    assert ended["Snooze"]["max_attempts"] == ended["Retry"]["max_attempts"] + 1
    assert ended["Retry always"]["error"] == {"type": "Retry", "message": "busy"}
    assert ended["Fatal"]["error"] == {"type": "Fatal", "message": "never"}
    assert ended["Cancel"]["reason"] == "not wanted"
    assert ended["ValueError"]["error"] == {"type": "ValueError", "message": "no good"}
    assert "handlers.py" in ended["ValueError"]["attempts"][0]["log"]


def test_a_handler_that_dies_or_hangs_costs_its_own_job_one_attempt(home: Home) -> None:
    """One that holds the interpreter's lock for longer than the lease costs nobody anything."""
    with home.daemon(*KINDS, *SHORT_LEASE) as daemon:
        daemon.wait_until_ready()
        bad = {what: enqueue(home, "misbehaves", what) for what in ("exit", "segfault", "hang")}
        held = enqueue(home, "holds-the-gil", None)
        home.call("enqueue", "plain", "--count", "20", *KINDS)

        def unfinished() -> list[Any]:
            return [job for job in home.call("jobs", "--json").lines if not job["finished_at"]]

        eventually(lambda: not unfinished())
        jobs = {job["id"]: job for job in home.call("jobs", "--json").lines}
        errors = {}
        for what, job_id in bad.items():
            job = home.job(job_id)
            assert (outcomes(job), job["result"]) == (["retrying", "succeeded"], "recovered"), job
            errors[what] = job["attempts"][0]["error"]
        assert outcomes(home.job(held)) == ["succeeded"]
    assert errors["exit"]["message"] == "its child process has ended (exit status 3)"
    assert errors["segfault"]["message"] == "its child process has ended (killed by SIGSEGV)"
    assert errors["hang"]["type"] == "time_limit"
    others = [job for job in jobs.values() if job["kind"] == "plain"]
    assert [(job["state"], job["attempt"]) for job in others] == [("succeeded", 1)] * 20
    assert max(job["finished_at"] for job in others) < jobs[held]["finished_at"]


def test_a_canceled_handler_that_ignores_term_is_killed_after_its_grace(
    home: Home, tmp_path: Path
) -> None:
    with no_leaks(), home.daemon(*KINDS) as daemon:
        job_id = wait_until_running(home, daemon, "ignores-term", tmp_path)
        (pid,) = pids_in(tmp_path)
        assert home.call("cancel", str(job_id)).code == 0
        asked = time.time()
        eventually(lambda: home.job(job_id)["state"] == "canceled")
        assert seconds_since_epoch(home.job(job_id)["finished_at"]) - asked < 0.5 + 1
        assert not is_alive(pid)
        assert run(home, "plain", 1)["state"] == "succeeded"
        daemon.send(signal.SIGTERM)
        assert daemon.end() == 0


def test_a_killed_daemon_leaves_no_children(home: Home, tmp_path: Path) -> None:
    with home.daemon(*KINDS) as daemon:
        for number in (1, 2):
            (tmp_path / str(number)).mkdir()
            wait_until_running(home, daemon, "waits", tmp_path / str(number))
        pids = [*pids_in(tmp_path / "1"), *pids_in(tmp_path / "2")]
        assert len(pids) == 2
        assert all(map(is_alive, pids))
        daemon.send(signal.SIGKILL)
        daemon.end()
        eventually(lambda: not any(map(is_alive, pids)), seconds=2)


def test_what_is_too_much_is_refused_or_cut(home: Home) -> None:
    with home.daemon(*KINDS) as daemon:
        daemon.wait_until_ready()
        spent = run(home, "overspends", None)
        assert (outcomes(spent), spent["error"]["type"]) == (["failed"], "budget_exceeded")
        large = run(home, "returns-much", 100_000)
        assert (outcomes(large), large["error"]["type"]) == (["failed"], "result_invalid")
        assert run(home, "returns-much", 60_000)["state"] == "succeeded"
        printed = run(home, "prints-much", None)
    log = printed["attempts"][0]["log"]
    assert printed["state"] == "succeeded"
    first, *_, last = lines_of(log)
    assert (first.stream, first.text.split(maxsplit=1)[1]) == (
        "musterd",
        "older lines were not kept",
    )
    assert last.text == "end"
    assert MAX_LOG_BYTES / 2 < len(log.encode()) <= MAX_LOG_BYTES + len(log.partition("\n")[0]) + 1


def test_the_daemon_looks_for_garbage_seldom(home: Home) -> None:
    with home.daemon(*KINDS) as daemon:
        daemon.wait_until_ready()
        assert run(home, "garbage", None)["result"] == {"young_max": YOUNG_MAX, "stays": True}
