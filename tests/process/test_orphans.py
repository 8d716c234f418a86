"""What a program leaves behind outside its group ends with its attempt, and harms nobody before."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from musterd import Client
from tests.support.children import is_alive
from tests.support.command import COMMAND, Daemon, Home, eventually, kinds_in
from tests.support.http_client import ask
from tests.support.narrow import Group, pids_group

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans down")

MODULE = """
import os, subprocess, sys, time

def leaves(job):
    subprocess.run(["sh", "-c", job.payload], check=True)

def hangs(job):
    leaves(job)
    time.sleep(60)
"""
KINDS = """
[kinds.shell]
command = ["sh", "-c", "eval \\"$(cat | tr -d '\\"')\\""]
time_limit_seconds = 20
grace_seconds = 0.1
[kinds.bomb]
command = ["sh", "-c", "sh {folder}/bomb.sh; sleep 60"]
time_limit_seconds = 1
grace_seconds = 0.1
[kinds.runner]
command = ["sh", "-c", "python3 {folder}/runner.py; sleep 60"]
time_limit_seconds = 1
grace_seconds = 0.1
[kinds.hangs]
python = "leaving:hangs"
time_limit_seconds = 1
grace_seconds = 0.1
[kinds.quick]
command = ["true"]
"""
# Each leaves its session, and its parent, and does so twice again.
BOMB = "setsid sh $0 >/dev/null 2>&1 &\nsetsid sh $0 >/dev/null 2>&1 &\n"
# Is another process every few hundred microseconds.
RUNNER = """
import os
while True:
    if os.fork():
        os._exit(0)
    os.setsid()
"""
STAYS = (
    "setsid sh -c 'echo $$ > {note}; exec sleep 60' & while ! [ -s {note} ]; do sleep 0.01; done"
)
PROCESSES = 250
PROBE_SECONDS_MAX = 2.0


@pytest.fixture
def kinds(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "leaving.py").write_text(MODULE)
    (tmp_path / "bomb.sh").write_text(BOMB)
    (tmp_path / "runner.py").write_text(RUNNER)
    options = kinds_in(tmp_path, KINDS.replace("{folder}", str(tmp_path)))
    return (*options, "--set", f'catalog.python_path=["{tmp_path}"]')


def enqueued(home: Home, kind: str, payload: object = None) -> int:
    with Client(f"sqlite:///{home.folder.resolve()}/musterd.db") as client:
        return client.enqueue(kind, payload)


def ended(home: Home, job_id: int) -> str:
    eventually(lambda: home.job(job_id)["state"] in ("succeeded", "failed"))
    return str(home.job(job_id)["state"])


@pytest.mark.parametrize(("kind", "how"), [("shell", "succeeded"), ("hangs", "failed")])
def test_who_leaves_the_session_of_an_attempt_ends_with_it(
    home: Home, tmp_path: Path, kinds: tuple[str, ...], kind: str, how: str
) -> None:
    """That of a program that ends by itself, and that of a handler past its time."""
    note = tmp_path / "note"
    with home.daemon(*kinds) as daemon:
        daemon.wait_until_ready()
        assert ended(home, enqueued(home, kind, STAYS.format(note=note))) == how
        assert not is_alive(int(note.read_text()))


def test_who_has_left_works_on_while_its_attempt_does_and_leaves_no_zombie(
    home: Home, tmp_path: Path, kinds: tuple[str, ...]
) -> None:
    """Other attempts end meanwhile; one that ends by itself is waited for by the daemon."""
    note, brief, go = tmp_path / "note", tmp_path / "brief", tmp_path / "go"
    leaves = STAYS.format(note=note) + "; " + STAYS.format(note=brief).replace("sleep 60", "true")
    with home.daemon(*kinds, "--set", "workers.default_count=2") as daemon:
        daemon.wait_until_ready()
        job_id = enqueued(home, "shell", f"{leaves}; while ! [ -e {go} ]; do sleep 0.01; done")
        eventually(lambda: note.exists() and brief.exists() and brief.read_text() != "")
        assert ended(home, enqueued(home, "quick")) == "succeeded"
        assert is_alive(int(note.read_text()))
        eventually(lambda: not Path(f"/proc/{int(brief.read_text())}").exists())
        go.touch()
        assert ended(home, job_id) == "succeeded"
        assert not is_alive(int(note.read_text()))


@contextmanager
def confined(home: Home, kinds: tuple[str, ...]) -> Generator[tuple[Group, Daemon]]:
    """A daemon that may have so many processes, with all that it starts."""
    words = [*COMMAND, "run", "--set", "http.listen=127.0.0.1:0", *kinds]
    with (
        pids_group(PROCESSES) as group,
        Daemon(group.command(words), home.environ()) as daemon,
    ):
        daemon.wait_until_ready()
        yield group, daemon


def test_a_fork_bomb_that_leaves_its_session_ends_with_its_attempt(
    home: Home, kinds: tuple[str, ...]
) -> None:
    with confined(home, kinds) as (group, daemon):
        job_id = enqueued(home, "bomb")
        eventually(lambda: int(group.read("pids.events").split()[1]) > 0)
        began = time.monotonic()
        assert ask(daemon.address, "/livez").status == 200
        assert time.monotonic() - began < PROBE_SECONDS_MAX
        assert ended(home, job_id) in ("succeeded", "failed")
        eventually(lambda: group.processes == [daemon.process.pid])
        assert ended(home, enqueued(home, "quick")) == "succeeded"
        assert daemon.process.poll() is None


def test_nor_does_it_help_to_be_another_process_all_the_time(
    home: Home, kinds: tuple[str, ...]
) -> None:
    with confined(home, kinds) as (group, daemon):
        assert ended(home, enqueued(home, "runner")) == "failed"
        eventually(lambda: group.processes == [daemon.process.pid])
