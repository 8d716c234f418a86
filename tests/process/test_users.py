"""Handlers under a user of their own: what they are, what they no longer reach, and that the daemon
still has them in hand.
"""

from __future__ import annotations

import os
import pwd
import shutil
import sys
import tempfile
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Daemon, Home, eventually, kinds_in

PYTHON = Path("/usr/bin") / f"python3.{sys.version_info.minor}"  # one that all users may run
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user"),
    pytest.mark.skipif(not PYTHON.exists(), reason=f"there is no {PYTHON}"),
]
RUN = [str(PYTHON), "-m", "musterd", "run", "--set", "http.listen=127.0.0.1:0"]
USER = "nobody"
ROOT = Path(__file__).parents[2]
WHO = "[os.getuid(), os.getgid(), os.getgroups(), os.environ['HOME'], os.environ['USER']]"
MODULE = f"""
import os, time

def who(job):
    with open("/proc/self/status") as status:
        lines = [line.split() for line in status]
    caps = [line[1] for line in lines if line[0] in ("CapPrm:", "CapEff:", "CapAmb:")]
    try:
        open(job.payload["secret"]).read()
        found = "read"
    except PermissionError:
        found = "closed"
    try:
        os.kill(os.getppid(), 0)
        sent = "sent"
    except PermissionError:
        sent = "refused"
    return {{"who": {WHO}, "secret": found, "signal": sent, "caps": caps}}

def sleeps(job):
    job.progress(1)
    time.sleep(600)
"""
PROGRAM = f"import json, os; print(json.dumps({WHO}))"
KINDS = f"""
[kinds.who]
python = "users:who"
[kinds.sleeps]
python = "users:sleeps"
grace_seconds = 0.2
[kinds.program]
command = ["/usr/bin/env", "python3", "-c", {PROGRAM!r}]
[kinds.sleeping_program]
command = ["sleep", "600"]
[kinds.as_root]
command = ["/usr/bin/env", "python3", "-c", {PROGRAM!r}]
user = "root"
[kinds.as_nobody_else]
command = ["true"]
user = "there-is-none"
[kinds.in_thread]
python = "users:who"
isolation = "thread"
user = "{USER}"
"""


@pytest.fixture
def open_folder() -> Generator[Path]:
    """That others may read, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="users-"))
    folder.chmod(0o755)
    (folder / "users.py").write_text(MODULE)
    (folder / "users.py").chmod(0o644)
    yield folder
    shutil.rmtree(folder)


def daemon_of(home: Home, given: tuple[str, ...], *before: str) -> Daemon:
    """Its packages are those of this interpreter."""
    path = os.pathsep.join([str(ROOT), *(each for each in sys.path if each.endswith("-packages"))])
    return Daemon([*before, *RUN, *given], {**home.environ(), "PYTHONPATH": path})


def options(folder: Path) -> tuple[str, ...]:
    path = f'catalog.python_path=["{folder}"]'
    return (*kinds_in(folder, KINDS), "--set", path, "--set", f'executor.user="{USER}"')


def ended(home: Home, *kind: str, given: tuple[str, ...]) -> dict[str, Any]:
    job_id = home.call("enqueue", *kind, "--json", *given).json["id"]
    eventually(lambda: home.job(job_id)["state"] in ("succeeded", "failed"))
    return home.job(job_id)


def nobody() -> list[Any]:
    it = pwd.getpwnam(USER)
    return [it.pw_uid, it.pw_gid, os.getgrouplist(USER, it.pw_gid), it.pw_dir, USER]


def test_handlers_run_as_the_user_whom_the_settings_name(home: Home, open_folder: Path) -> None:
    secret = open_folder / "secret"
    secret.write_text("told to the daemon alone")
    secret.chmod(0o600)
    given = options(open_folder)
    with daemon_of(home, given) as daemon:
        daemon.wait_until_ready()
        job = ended(home, "who", "--payload", f'{{"secret": "{secret}"}}', given=given)
        assert job["error"] is None, job
        assert job["result"] == {
            "who": nobody(), "secret": "closed", "signal": "refused", "caps": ["0" * 16] * 3,
        }  # fmt: skip
        assert ended(home, "program", given=given)["result"] == nobody()
        assert ended(home, "as_root", given=given)["result"][:2] == [0, 0]


@pytest.mark.parametrize("kind", ["sleeps", "sleeping_program"])
def test_a_handler_of_another_user_is_ended_all_the_same(
    home: Home, open_folder: Path, kind: str
) -> None:
    given = options(open_folder)
    with daemon_of(home, given) as daemon:
        daemon.wait_until_ready()
        job_id = home.call("enqueue", kind, "--json", *given).json["id"]
        eventually(lambda: home.job(job_id)["state"] == "running")
        eventually(lambda: processes_of(USER) != [])
        assert home.call("cancel", str(job_id)).code == 0
        eventually(lambda: home.job(job_id)["state"] == "canceled")
        if kind == "sleeping_program":
            eventually(lambda: processes_of(USER) == [])


def processes_of(name: str) -> list[str]:
    found = map(partial(command_of, pwd.getpwnam(name).pw_uid), Path("/proc").glob("[0-9]*"))
    return [said for said in found if "sleep" in said or "musterd" in said]


def command_of(uid: int, process: Path) -> str:
    """ "" where it is another user's, or has ended."""
    try:
        return (process / "cmdline").read_text() if process.stat().st_uid == uid else ""
    except OSError:
        return ""


def test_a_kind_says_why_it_cannot_run_as_its_user(home: Home, open_folder: Path) -> None:
    done = home.call("kinds", "--check", *options(open_folder))
    assert done.code == 78
    assert "kinds.as_nobody_else.user: there is no user there-is-none" in done.out + done.err
    assert "only a child process can run as nobody" in done.out + done.err


def test_without_the_right_to_it_a_kind_waits_and_says_so(home: Home, open_folder: Path) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("root cannot give up rights here")
    given = options(open_folder)
    with daemon_of(home, given, "setpriv", "--bounding-set=-setuid,-setgid") as daemon:
        daemon.wait_until_ready()
        assert "may not become nobody" in "\n".join(daemon.log)
