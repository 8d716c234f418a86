"""The command as people and scripts meet it, on the embedded store, with no daemon about."""

import json
import os
import pty
import re
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.command import COMMAND, Home

OFF = ("--set", "http.listen=")


def test_a_job_from_the_queue_to_its_report(home: Home) -> None:
    assert home.call("enqueue", "report", "--payload", '{"pages": 3}').out == "job 1 queued\n"
    (listed,) = home.call("jobs", "--json").lines
    assert (listed["id"], listed["kind"], listed["state"]) == (1, "report", "queued")
    found = home.call("job", "1", "--json").json
    assert found == listed
    assert home.job(1) == {**found, "max_attempts": None}  # a client has no catalog
    assert (found["payload"], found["attempts"], found["tenant"]) == ({"pages": 3}, [], "default")
    report = home.call("job", "1")
    assert report.out.startswith("job 1 · report · queued\n")
    assert report.err == ""


def test_status_without_a_daemon_says_so_and_what_to_do(home: Home) -> None:
    home.call("enqueue", "noop")
    done = home.call("status", "--set", "http.listen=127.0.0.1:1")
    first = done.out.splitlines()[0]
    assert done.code == 1
    assert first.startswith("NOT healthy: no daemon answers at 127.0.0.1:1")
    assert "`musterd run`" in first
    assert "1 queued" in done.out


def test_status_where_no_daemon_can_be_asked_judges_the_store(home: Home) -> None:
    done = home.call("status", "--json", *OFF)
    assert (done.code, done.json["healthy"], done.json["node"]) == (0, True, None)
    assert done.json["counts"]["jobs"]["queued"] == 0


def test_options_of_a_job_arrive_in_it(home: Home) -> None:
    options = ("--priority", "-7", "--in", "5m", "--max-attempts", "2")
    made = home.call("enqueue", "noop", "--json", *options).json
    assert (made["priority"], made["max_attempts"]) == (-7, 2)
    assert made["run_at"] > made["created_at"]
    at = home.call("--json", "enqueue", "noop", "--at", "2100-01-01T00:00:00+01:00").json
    assert at["run_at"] == "2099-12-31T23:00:00.000000Z"


def test_a_kinds_own_priority_holds_where_none_is_given(home: Home) -> None:
    assert home.call("enqueue", "urgent", "--json").json["priority"] == 100


def test_the_payload_from_a_file_and_from_standard_input(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "payload.json"
    file.write_text('["ä"]')
    assert home.call("enqueue", "noop", "--json", "--payload", f"@{file}").json["payload"] == ["ä"]
    piped = home.call("enqueue", "noop", "--json", "--payload", "-", given='{"from": "stdin"}')
    assert piped.json["payload"] == {"from": "stdin"}


def test_ten_thousand_at_once(home: Home) -> None:
    done = home.call("enqueue", "noop", "--count", "10000", "--json")
    assert done.json == {"count": 10000, "first_id": 1, "last_id": 10000}
    assert done.err == ""  # no progress bar where nobody looks
    counts = home.call("status", "--json", *OFF).json["counts"]
    assert counts["jobs"]["queued"] == counts["enqueued_total"] == 10000


def test_jobs_are_filtered_and_limited(home: Home) -> None:
    home.call("enqueue", "noop", "--count", "3")
    home.call("enqueue", "report", "--count", "2")
    assert [job["id"] for job in home.call("jobs", "--json", "--limit", "2").lines] == [5, 4]
    assert [job["id"] for job in home.call("jobs", "--json", "--kind", "noop").lines] == [3, 2, 1]
    assert home.call("jobs", "--json", "--state", "failed").out == ""
    assert home.call("jobs", "--state", "failed").out == "no such jobs\n"


def test_jobs_are_found_by_key_error_and_time(home: Home) -> None:
    home.call("enqueue", "noop", "--dedup", "invoice/7")
    home.call("enqueue", "report", "--dedup", "invoice/8")

    def found(*wanted: str) -> list[int]:
        done = home.call("jobs", "--json", *wanted)
        assert (done.code, done.err) == (0, "")
        return [job["id"] for job in done.lines]

    assert found("--key", "invoice/8") == [2]
    assert found("--since", "-1h", "--until", "-0s") == found("--before", "3") == [2, 1]
    assert found("--until", "-1h") == found("--error", "away") == []
    assert found("--since", "-1h", "--time", "ended") == []
    assert home.call("jobs", "--since", "soon").code == 2
    assert "found 0 characters, wanted a text" in home.call("jobs", "--error", "").err


def test_a_search_that_ends_early_says_how_far_it_came(home: Home) -> None:
    home.call("enqueue", "report", "--hold")
    with closing(sqlite3.connect(home.folder / "musterd.db")) as store, store:
        store.execute(
            "insert into job_rows (kind, created_at, run_at) with recursive n(i) as ("
            "select 1 union all select i + 1 from n where i < 120000)"
            " select 'noop', 1800000000000000, 1800000000000000 from n"
        )
    done = home.call("jobs", "--kind", "report")
    assert (done.code, done.out) == (0, "no such jobs\n")
    assert done.err.startswith("musterd: 101,000 jobs looked at, back to 2027-01-15T08:00:00")
    further = re.search(r"--before (\d+)\n", done.err)
    assert further is not None
    again = home.call("jobs", "--kind", "report", "--json", "--before", further[1])
    assert ([job["id"] for job in again.lines], again.err) == ([1], "")
    assert [job["id"] for job in home.call("jobs", "--state", "pending", "--json").lines] == [1]


def test_the_queue_is_paused_once_and_resumed_once(home: Home) -> None:
    assert home.call("queue", "pause").out.startswith("queue paused")
    assert home.call("queue", "pause").out.startswith("the queue was paused already, by ")
    assert "PAUSED" in home.call("status", *OFF).out
    assert home.call("queue", "resume").out == "queue resumed\n"
    assert home.call("queue", "resume", "--json").json == {"paused": False, "changed": False}


@pytest.mark.parametrize("key", ["http.token", "http.token_file"])
def test_the_check_refuses_the_tokens_that_the_daemon_refuses(
    home: Home, tmp_path: Path, key: str
) -> None:
    (tmp_path / "token").write_text("fifteen-letters")
    value = tmp_path / "token" if key == "http.token_file" else "fifteen-letters"
    beyond = ("--set", f"{key}={value}", "--set", "http.listen=0.0.0.0:0")
    said = [home.call(*verb, *beyond) for verb in (("config", "check"), ("run",))]
    assert [one.code for one in said] == [78, 78]
    assert said[0].err == said[1].err
    assert "at least 16 characters to listen beyond loopback" in said[0].err
    assert "fifteen" not in said[0].err


def test_the_check_leaves_alone_what_only_the_daemon_can_read(home: Home) -> None:
    elsewhere = ("--set", "http.token_file=musterd.http-token", "--set", "http.listen=0.0.0.0:0")
    assert home.call("config", "check", *elsewhere).code == 0


def test_a_lease_with_time_for_one_renewal_is_warned_of(home: Home) -> None:
    done = home.call("config", "check", "--set", "leases.heartbeat_seconds=15")
    assert (done.code, "a lease of 30 s" in done.err, "time for 1 renewal" in done.err) == (
        (0, True, True)
    )
    fine = home.call("config", "check", "--json", "--set", "leases.heartbeat_seconds=10")
    assert (fine.code, fine.err, fine.json["warnings"]) == (0, "", [])


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("job", "99"), 3, "there is no job 99"),
        (("enqueue", "reprot"), 3, "did you mean report?"),
        (("enqueue", "noop", "--payload", "{"), 2, "payload"),
        (("job", "x"), 2, "not a valid integer"),
        (("config", "check", "--set", "workers.max_count=x"), 78, "workers.max_count"),
        (("jobs", "--config", "/no/such.toml"), 78, "/no/such.toml"),
        (("jobs", "--set", "store.url=sqlite:////proc/none/x.db"), 78, "/proc/none"),
        (("jobs", "--set", "store.url=postgresql://x@127.0.0.1:1/x"), 69, "127.0.0.1"),
        (("status", "--set", "store.url=postgresql://x@127.0.0.1:1/x"), 69, ""),
        (("scaling", "--set", "store.url=postgresql://x@127.0.0.1:1/x"), 69, "127.0.0.1"),
    ],
)
def test_complaints_go_to_stderr_with_their_exit_code(
    home: Home, arguments: tuple[str, ...], code: int, said: str
) -> None:
    started = time.monotonic()
    done = home.call(*arguments)
    assert (done.code, said in done.err) == (code, True), done
    assert "Traceback" not in done.out + done.err
    assert time.monotonic() - started < 20


def test_the_schema_is_told_and_made(home: Home) -> None:
    assert home.call("db", "status").code == 78
    made = home.call("db", "migrate", "--json").json
    assert made["applied"][0].startswith("0001_")
    assert home.call("db", "migrate", "--json").json["applied"] == []
    assert home.call("db", "status", "--json").json["current"] is True


def test_help_is_quick_and_loads_nothing_large() -> None:
    program = (
        "import sys, musterd.console; large = {'trio', 'psycopg', 'prometheus_client',"
        " 'hypercorn', 'starlette', 'cattrs', 'sqlite3'} & set(sys.modules); sys.exit(str(large))"
    )
    done = subprocess.run([COMMAND[0], "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr == "set()\n"


def on_terminal(home: Home, *arguments: str, **environ: str) -> str:
    """Gives what a verb writes to a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env=home.environ() | environ,
    ):
        os.close(theirs)
        written = b""
        while part := _read(ours):
            written += part
    os.close(ours)
    return written.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that the other side has closed a terminal
        return b""


def test_colour_only_on_a_terminal_and_never_against_no_color(home: Home) -> None:
    assert "\x1b[" in on_terminal(home, "status", *OFF, TERM="xterm")
    assert "\x1b[" not in on_terminal(home, "status", *OFF, TERM="xterm", NO_COLOR="1")
    assert "\x1b[" not in home.call("status", *OFF).out


def test_many_jobs_have_a_progress_bar_on_a_terminal(home: Home) -> None:
    written = on_terminal(home, "enqueue", "noop", "--count", "3000", TERM="xterm")
    assert "enqueueing noop" in written
    assert "100%" in written
    assert "3,000 jobs queued: 1 to 3000" in written


def test_a_shown_configuration_masks_its_secrets(home: Home) -> None:
    url = "store.url=postgresql://me:hunter2@db/x"
    done = home.call(
        "config", "show", "--json", "--origin", "--set", url, MUSTERD_HTTP__TOKEN="t0k"
    )
    assert "hunter2" not in done.out
    assert "t0k" not in done.out
    assert json.loads(done.out)["http"]["token"]["origin"] == "env MUSTERD_HTTP__TOKEN"


def test_a_typo_in_settings_locks_nobody_out_of_what_does_not_need_them(
    home: Home, tmp_path: Path
) -> None:
    (tmp_path / "kinds.toml").write_text("[kinds.a]\nduration = 1\n", "utf-8")
    file = tmp_path / "musterd.toml"
    file.write_text("[workers]\nmax_cuont = 9\n[catalog]\npaths = ['kinds.toml']\n", "utf-8")
    assert home.call("enqueue", "report").code == 0
    config = ("--config", str(file))
    for verb in ("jobs", "job 1", "why 1", "status", "top --once", "nodes", "duties", "events",
        "queue pause", "queue resume", "cancel 1"):  # fmt: skip
        done = home.call(*verb.split(), *config)
        assert done.out, verb
        assert done.code in (0, 1), (verb, done.err)
        assert "max_cuont: unknown key - did you mean max_count?" in done.err, verb
    assert "FAIL  files: 3 faults, the first: " in home.call("doctor", *config).out
    for verb in ("enqueue report", "config check", "run"):
        done = home.call(*verb.split(), *config)
        assert done.code == 78, verb


def test_who_enqueues_beside_the_daemon_is_told_that_it_works_on_another_store(
    home: Home, tmp_path: Path
) -> None:
    with home.daemon() as daemon:
        there = ("--set", f"http.listen={daemon.address.removeprefix('http://')}")
        job = home.call("enqueue", "report", "--json", *there)
        assert (job.code, job.err) == (0, "")
        beside = Home(tmp_path / "other")
        done = beside.call("enqueue", "report", *there)
        assert done.code == 0
        assert f"works on another store: sqlite:///{home.folder}/musterd.db" in done.err
        for verb in ("job 99", "why 99", "cancel 99"):
            done = beside.call(*verb.split(), *there)
            assert done.code == 3
            assert "works on another store" in done.err
        (tmp_path / "kinds.toml").write_text("[kinds.mine]\nduration_ms = 1\n", "utf-8")
        paths = ("--set", f"catalog.paths=['{tmp_path}/kinds.toml']")
        done = home.call("enqueue", "mine", *there, *paths)
        assert done.code == 0
        assert "no live node knows kind mine" in done.err
