"""The daemon as a process: what it does when asked, when told to stop, and when it is killed."""

import signal
import socket
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from tests.support.command import COMMAND, Daemon, Home, eventually
from tests.support.http_client import ask


def run_a_slow_job(home: Home, daemon: Daemon, *options: str) -> None:
    daemon.wait_until_ready()
    home.call("enqueue", "slow", *options)
    eventually(lambda: is_running(home, 1))


def is_running(home: Home, job_id: int) -> bool:
    return bool(home.job(job_id)["state"] == "running")


def test_a_job_is_run_and_waited_for(home: Home) -> None:
    with home.daemon() as daemon:
        daemon.wait_until_ready()
        done = home.call("enqueue", "flaky", "--wait")
        assert done.code == 0
        assert done.out.splitlines()[0] == "job 1 queued"
        assert "job 1 succeeded" in done.out
    found = home.job(1)
    assert [attempt["outcome"] for attempt in found["attempts"]] == ["retrying"] * 2 + ["succeeded"]
    assert (found["progress"]["overall"], found["lease_owner"]) == (100, None)


def test_a_job_that_fails_is_exit_one(home: Home) -> None:
    with home.daemon() as daemon:
        daemon.wait_until_ready()
        done = home.call("enqueue", "broken", "--wait", "--json")
        assert (done.code, done.json["state"]) == (1, "failed")
        many = home.call("enqueue", "noop", "--count", "50", "--wait")
        assert (many.code, many.out.splitlines()[-1]) == (0, "50 succeeded")


def test_the_web_side_of_a_running_daemon(home: Home) -> None:
    with home.daemon() as daemon:
        daemon.wait_until_ready()
        home.call("enqueue", "noop", "--count", "20", "--wait")
        for path in ("/", "/livez", "/readyz", "/metrics", "/status", "/workers", "/scaling"):
            assert ask(daemon.address, path).status == 200, path
        metrics = ask(daemon.address, "/metrics").text
        finished = 'musterd_jobs_finished_total{kind="noop",outcome="succeeded",tenant="default"}'
        assert f"{finished} 20.0" in metrics
        enqueued = 'musterd_jobs_enqueued_total{tenant="default"} 20.0'  # a second old at most
        eventually(lambda: enqueued in ask(daemon.address, "/metrics").text, 5)
        status = home.call("status", "--set", daemon.listen)
        assert status.code == 0, status
        assert status.out.startswith("healthy: running for ")
        eventually(lambda: bool(ask(daemon.address, "/scaling").json["decisions"]))
        scaling = home.call("scaling", "--json", "--set", daemon.listen)
        assert (scaling.code, scaling.lines[-1]["policy"]) == (0, "demand")


def test_status_tells_another_stores_daemon_from_its_own(home: Home, tmp_path: Path) -> None:
    with home.daemon() as daemon:
        daemon.wait_until_ready()
        other = Home(tmp_path / "other").call("status", "--set", daemon.listen)
    assert other.code == 1
    assert "uses another store" in other.out


def test_a_unix_socket_and_a_token(home: Home, tmp_path: Path) -> None:
    settings = (f"http.listen=unix:{tmp_path}/m.sock", "http.token=s3cret")
    given = [part for setting in settings for part in ("--set", setting)]
    with home.daemon(*given) as daemon:
        daemon.wait_until_ready()
        assert home.call("status", *given).code == 0
        refused = home.call("status", *given[:2])
        assert (refused.code, "refuses the token" in refused.out) == (1, True)


def test_told_to_stop_it_lets_running_jobs_finish(home: Home) -> None:
    with home.daemon() as daemon:
        daemon.wait_until_ready()
        home.call("enqueue", "slow", "--count", "2")
        eventually(lambda: is_running(home, 1) and is_running(home, 2))
        home.call("enqueue", "noop", "--in", "1ms")
        daemon.send(signal.SIGTERM)
        daemon.wait_for_line("event=draining")
        late = home.call("enqueue", "noop", "--json").json
        assert daemon.end() == 0
    assert {home.job(job_id)["state"] for job_id in (1, 2)} == {"succeeded"}
    assert home.job(late["id"])["state"] == "queued"  # nothing new is taken while it drains


def test_a_drain_that_interrupts_jobs_names_them_and_exits_1(home: Home) -> None:
    stop = ("--set", "shutdown.grace_period_seconds=0.2", "--set", "shutdown.interrupted_exit=9")
    for form in ((), ("--json",)):
        with home.daemon(*stop) as daemon:
            daemon.wait_until_ready()
            job_id = home.call("enqueue", "slow", "--json").json["id"]
            eventually(partial(is_running, home, job_id))
            done = home.call("drain", "--wait", "--set", daemon.listen, *form)
            assert daemon.end() == 9
        assert done.code == 1
        if form:
            told = done.json
            assert (told["phase"], told["jobs"], told["abandoned"]) == ("stopped", 1, 0)
            assert (told["interrupted"], told["interrupted_jobs"]) == (1, [job_id])
        else:
            assert f"1 job interrupted: {job_id}" in done.out
        home.call("cancel", str(job_id))
    stopped = home.call("events", "--json", "--type", "node.stopped").lines
    assert [one["data"]["interrupted"] for one in stopped] == [1, 1]


def test_a_drain_that_all_jobs_end_in_exits_0(home: Home) -> None:
    with home.daemon() as daemon:
        daemon.wait_until_ready()
        home.call("enqueue", "noop", "--wait")
        done = home.call("drain", "--wait", "--json", "--set", daemon.listen)
        assert (done.code, done.json["jobs"], done.json["interrupted_jobs"]) == (0, 0, [])


def test_not_ready_while_it_drains(home: Home) -> None:
    with home.daemon() as daemon:
        run_a_slow_job(home, daemon)
        daemon.send(signal.SIGTERM)
        daemon.wait_for_line("event=draining")
        assert ask(daemon.address, "/readyz").status == 503
        assert ask(daemon.address, "/livez").status == 200
        assert home.call("status", "--set", daemon.listen).out.startswith("NOT healthy: draining")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_twice_it_gives_its_jobs_back_at_once(home: Home, number: signal.Signals) -> None:
    with home.daemon() as daemon:
        run_a_slow_job(home, daemon, "--max-attempts", "1")
        daemon.send(number)
        daemon.wait_for_line("event=draining")
        started = time.monotonic()
        daemon.send(number)
        assert daemon.end() == 0
        assert time.monotonic() - started < 3
    found = home.job(1)
    assert (found["state"], found["attempts"][0]["outcome"]) == ("queued", "released")
    assert (found["attempt"], found["max_attempts"]) == (1, 2)  # it burned no attempt


def test_signals_that_come_too_late_change_nothing(home: Home) -> None:
    with home.daemon() as daemon:
        daemon.wait_until_ready()
        while daemon.process.poll() is None:  # through the drain, the end of the loop, the exit
            daemon.send(signal.SIGTERM)
            time.sleep(0.002)
        assert daemon.end() == 0


def test_killed_and_started_again_it_takes_its_jobs_up_at_once(home: Home) -> None:
    with home.daemon() as daemon:
        run_a_slow_job(home, daemon)
        daemon.send(signal.SIGKILL)
        assert daemon.end() == -signal.SIGKILL
    with home.daemon() as daemon:  # its lease would have lasted for thirty seconds
        daemon.wait_until_ready()
        started = time.monotonic()
        eventually(lambda: bool(home.job(1)["attempt"] == 2), seconds=5)
        assert time.monotonic() - started < 5
        outcomes = [attempt["outcome"] for attempt in home.job(1)["attempts"]]
        assert outcomes == ["lost", None]


def test_a_second_daemon_on_the_same_file_is_refused(home: Home) -> None:
    with home.daemon() as first:
        first.wait_until_ready()
        with home.daemon() as second:
            assert second.end() == 78
            said = "\n".join(second.log)
        assert str(first.process.pid) in said
        assert "Traceback" not in said


def test_a_taken_port_is_named_with_its_key(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = home.call("run", "--set", f"http.listen=127.0.0.1:{port}")
    assert (done.code, done.err.count("http.listen: cannot listen at 127.0.0.1")) == (78, 1)
    assert "Traceback" not in done.err


def test_a_store_that_is_away_is_waited_for(home: Home) -> None:
    away = ("--set", "store.url=postgresql://x@127.0.0.1:1/x")
    with home.daemon(*away) as daemon:
        daemon.wait_for_line('event="waiting for the store"')
        answer = ask(daemon.address, "/readyz")
        assert (answer.status, "cannot be reached" in answer.json["detail"]) == (503, True)
        assert ask(daemon.address, "/livez").status == 200
        assert "musterd_build_info" in ask(daemon.address, "/metrics").text
        daemon.send(signal.SIGTERM)
        assert daemon.end() == 0


def test_all_faults_are_named_before_anything_starts(home: Home) -> None:
    done = home.call("run", "--set", "workers.max_count=0", "--set", "log.level=loud")
    assert done.code == 78
    assert "workers.max_count" in done.err
    assert "log.level" in done.err
    assert not home.folder.exists()


def test_the_log_may_be_json(home: Home) -> None:
    settings = ("--set", "log.format=json", "--set", "http.listen=")
    with home.daemon(*settings) as daemon:
        daemon.wait_for_line('"event": "ready"')
        daemon.send(signal.SIGTERM)
        assert daemon.end() == 0
    assert all(line.startswith("{") and line.endswith("}") for line in daemon.log)


def test_the_demo_grows_and_shrinks_a_crew_and_leaves_nothing(home: Home, tmp_path: Path) -> None:
    started = time.monotonic()
    done = home.call("demo", "--json", TMPDIR=str(tmp_path))
    assert (done.code, done.err) == (0, "")
    assert time.monotonic() - started < 40
    found = done.json
    assert found["crew_peak"] == 8
    assert sum(found["outcomes"].values()) == found["enqueued"]
    assert set(found["outcomes"]) == {"succeeded", "failed", "canceled"}
    assert found["retries"] > 0
    assert 0 < found["pickup_p50_ms"] <= found["pickup_p95_ms"]
    assert list(tmp_path.iterdir()) == []
    assert not home.folder.exists()


def test_the_demo_tells_its_story(home: Home) -> None:
    out = home.call("demo").out
    assert "wave 1" in out
    assert "8/8 workers" in out
    assert "pick-up" in out


@pytest.mark.parametrize("seconds", [0.4, 1.5])
def test_a_demo_that_is_stopped_ends_with_its_summary(home: Home, seconds: float) -> None:
    with subprocess.Popen(
        [*COMMAND, "demo"], env=home.environ(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as demo:
        time.sleep(seconds)  # wherever it is by then
        demo.send_signal(signal.SIGTERM)
        out, err = demo.communicate(timeout=20)
    assert demo.returncode in {0, -signal.SIGTERM}  # the latter: it had not begun yet
    assert err == b""
    assert demo.returncode != 0 or b"pick-up" in out


def test_a_fixture_daemon_never_outlives_its_test(home: Home) -> None:
    with home.daemon() as daemon:
        assert isinstance(daemon, Daemon)
        daemon.wait_until_ready()
    assert daemon.process.returncode == -signal.SIGKILL
