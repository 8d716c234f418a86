"""The verbs that follow: `events`, `job --follow`, and how `enqueue --wait` shows what moves."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from musterd import NoSuchJob
from tests.support.command import COMMAND, VERB_SECONDS, Daemon, Home, eventually

HANDLER = """
import time

def copies(job):
    for percent in (10, 40, 80):
        job.progress(percent, f"{percent} of 100 files")
        time.sleep(1.2)
"""
KINDS = """
[kinds.bad]
outcome = "fail"
duration_ms = 50
[kinds.copies]
python = "copying:copies"
"""
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z  (\S+) +job 1 +copies(?:  (.*))?")


@pytest.fixture
def at_work(tmp_path: Path) -> Generator[tuple[Home, Daemon]]:
    (tmp_path / "copying.py").write_text(HANDLER)
    (tmp_path / "kinds.toml").write_text(KINDS)
    home = Home(tmp_path / "state")
    with home.daemon("--set", f"catalog.paths={[str(tmp_path / 'kinds.toml')]}") as daemon:
        daemon.wait_until_ready()
        yield home, daemon


def catalog_of(home: Home) -> tuple[str, str]:
    return ("--set", f"catalog.paths={[str(home.folder.parent / 'kinds.toml')]}")


def on_terminal(home: Home, *arguments: str) -> tuple[int, str]:
    """Gives exit code and what a verb writes to a terminal."""
    ours, theirs = pty.openpty()
    environ = home.environ() | {"TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(
        [*COMMAND, *arguments], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environ
    ) as process:
        os.close(theirs)
        written = b""
        while part := _read(ours):
            written += part
    os.close(ours)
    return process.returncode, written.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that the other side has closed a terminal
        return b""


def test_what_has_happened_for_people_and_for_programs(at_work: tuple[Home, Daemon]) -> None:
    home, _ = at_work
    assert home.call("enqueue", "bad", "--target", "t", "--wait", *catalog_of(home)).code == 1
    home.call("enqueue", "noop", "--wait")
    told = home.call("events", "--json").lines
    assert [one["id"] for one in told] == list(range(1, len(told) + 1))
    assert set(told[0]) == {"id", "at", "type", "tenant", "job_id", "kind", "data"}
    of_first = [one["type"] for one in told if one["job_id"] == 1]
    assert of_first == ["job.enqueued", "job.started", "job.failed"]
    assert {one["type"] for one in told if one["job_id"] is None} >= {
        "node.started",
        "worker.hired",
    }
    for few in (
        ("--job", "1"), ("--kind", "bad"), ("--target", "t"),
        ("--kind", "bad", "--since", "10m"), ("--target", "t", "--since", "0", "--limit", "9"),
    ):  # fmt: skip
        found = home.call("events", "--type", "job", *few, "--json").lines
        assert [one["type"] for one in found] == of_first, few
    newest = home.call("events", "--limit", "1", "--json").lines
    assert newest == told[-1:]
    rest = home.call("events", "--since", str(told[2]["id"]), "--json").lines
    assert rest == told[3:]
    (line,) = home.call("events", "--type", "job.failed").out.splitlines()
    assert re.search(r"Z  job\.failed +job 1 +bad  attempt 1, \S+: ", line)
    assert home.call("events", "--job", "99").out == "no such events\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--type", "job.faild"), "did you mean"),
        (("--since", "soon"), "write 03:12, -2h or"),
        (("--since", "5x"), "write 500ms"),
        (("--limit", "-1"), "range"),
    ],
)
def test_what_cannot_be_meant_is_said(home: Home, words: tuple[str, ...], said: str) -> None:
    done = home.call("events", *words)
    assert done.code == 2
    assert said in done.err


def test_following_goes_on_through_the_death_of_the_daemon(home: Home) -> None:
    home.call("db", "migrate")
    with subprocess.Popen(
        [*COMMAND, "events", "--follow", "--type", "job", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=home.environ(),
    ) as following:  # fmt: skip
        assert following.stdout is not None
        home.call("enqueue", "noop")
        assert '"job.enqueued"' in following.stdout.readline()
        for _ in range(2):
            with home.daemon() as daemon:
                daemon.wait_until_ready()
                home.call("enqueue", "noop", "--wait")
                daemon.send(signal.SIGKILL)
        home.call("enqueue", "sleep", "--in", "1h")
        lines = iter(following.stdout.readline, "")
        told = [next(lines)]
        while '"sleep"' not in told[-1]:
            told.append(next(lines))
        following.send_signal(signal.SIGINT)
        assert following.wait(VERB_SECONDS) == 0
    assert [
        sum(f'"{name}"' in line for line in told) for name in ("job.started", "job.succeeded")
    ] == [3, 3]


def test_a_job_is_followed_to_its_end(at_work: tuple[Home, Daemon]) -> None:
    home, _ = at_work
    home.call("enqueue", "copies", *catalog_of(home))
    done = home.call("job", "1", "--follow")
    assert done.code == 0
    found = [LINE.fullmatch(line) for line in done.out.splitlines()]
    told = [(one[1], one[2]) for one in found if one is not None]
    assert len(told) == len(found)
    assert [name for name, _ in told if name != "job.progress"] == [
        "job.enqueued", "job.started", "job.succeeded",
    ]  # fmt: skip
    assert ("job.progress", "40 %: 40 of 100 files") in told
    assert home.call("job", "1", "--follow", "--json").lines[-1]["type"] == "job.succeeded"
    home.call("enqueue", "bad", *catalog_of(home))
    assert home.call("job", "2", "--follow").code == 1
    assert home.call("job", "99", "--follow").code == 3


def exists(home: Home, job_id: int) -> bool:
    try:
        return bool(home.job(job_id))
    except NoSuchJob:
        return False


def test_progress_moves_in_a_bar_on_a_terminal(at_work: tuple[Home, Daemon]) -> None:
    """Of who waits for the job, and of who follows it meanwhile."""
    home, _ = at_work
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(on_terminal, home, "enqueue", "copies", "--wait", *catalog_of(home))
        eventually(lambda: exists(home, 1))
        code, written = on_terminal(home, "job", "1", "--follow")
    assert code == 0
    assert "job 1 running  ████████████████░░░░ 80 %  80 of 100 files" in written
    assert "job.succeeded" in written.rpartition(" %")[2]
    assert "running" not in written.rpartition("\x1b[K")[2]
    code, written = waiting.result()
    assert code == 0
    bar = "job 1 running  ████████░░░░░░░░░░░░ 40 %  40 of 100 files"
    assert f"\r\x1b[K{bar}" in written
    assert "job 1 succeeded after" in written.rpartition("\x1b[K")[2]


def test_progress_is_told_in_lines_elsewhere_and_not_with_json(
    at_work: tuple[Home, Daemon],
) -> None:
    home, _ = at_work
    wait = ("enqueue", "copies", "--wait", *catalog_of(home))
    with ThreadPoolExecutor(2) as pool:
        told, quiet = pool.submit(home.call, *wait), pool.submit(home.call, *wait, "--json")
    assert re.search(r"^job \d 40 %, 40 of 100 files$", told.result().out, re.MULTILINE)
    assert len(quiet.result().lines) == 1


def test_a_node_tells_of_itself(at_work: tuple[Home, Daemon]) -> None:
    home, daemon = at_work
    home.call("enqueue", "sleep", "--count", "40")
    eventually(lambda: bool(home.call("events", "--type", "scale", "--json").lines))
    (decision, *_) = home.call("events", "--type", "scale.decided", "--json").lines
    assert decision["data"]["hired"] > 0
    assert decision["data"]["node"]
    daemon.send(signal.SIGHUP)
    eventually(lambda: bool(home.call("events", "--type", "config", "--json").lines))
    (reload,) = home.call("events", "--type", "config.reloaded", "--json").lines
    assert (reload["data"]["result"], reload["data"]["changed"]) == ("applied", [])
