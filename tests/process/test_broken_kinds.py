"""Kinds that can't run here: the daemon says so at its start, serves the others, and their jobs
wait.
"""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.children import is_alive
from tests.support.command import Daemon, Home, eventually, kinds_in

KINDS = """
[kinds.fine]
command = ["true"]
[kinds.gone]
python = "no_such_module:f"
[kinds.absent]
command = ["no-such-program"]
"""


@contextmanager
def one_waiting(home: Home, kinds: tuple[str, str]) -> Generator[tuple[Daemon, int]]:
    """A daemon, and a job that it says it cannot run."""
    with home.daemon(*kinds) as daemon:
        daemon.wait_until_ready()
        job_id = home.call("enqueue", "gone", "--json", *kinds).json["id"]
        eventually(lambda: home.job(job_id)["reason"] is not None)
        yield daemon, job_id


def test_a_broken_kind_is_one_warning_and_its_jobs_wait(home: Home, tmp_path: Path) -> None:
    kinds = kinds_in(tmp_path, KINDS)
    with one_waiting(home, kinds) as (daemon, job_id):
        assert home.call("enqueue", "fine", "--wait", *kinds).code == 0
        job, report = home.job(job_id), home.call("job", str(job_id), *kinds).out
    warnings = [line for line in daemon.log if "kind broken" in line]
    assert len(warnings) == 2
    assert all("level=warning" in line for line in warnings)
    assert f"{tmp_path}/kinds.toml:4: kinds.gone.python: cannot import no_such" in warnings[0]
    assert f"{tmp_path}/kinds.toml:6: kinds.absent.command: there is no program" in warnings[1]
    assert job["state"] == "queued"
    assert "1 of 5" in report  # no attempt was burnt
    assert f"{tmp_path}/kinds.toml:4: kinds.gone.python: cannot import no_such" in report


def test_what_was_broken_runs_when_it_is_there(home: Home, tmp_path: Path) -> None:
    kinds = kinds_in(tmp_path, KINDS)
    with one_waiting(home, kinds) as (_, job_id):
        pass
    (tmp_path / "no_such_module.py").write_text("def f(job): return 'here'\n")
    with home.daemon(*kinds) as daemon:
        daemon.wait_until_ready()
        eventually(lambda: home.job(job_id)["state"] == "succeeded")
    assert home.job(job_id)["result"] == "here"
    assert not [line for line in daemon.log if "kind=gone" in line]


def test_many_broken_kinds_are_all_named(home: Home, tmp_path: Path) -> None:
    kinds = "".join(f'[kinds.k{n}]\ncommand = ["no-such-program"]\n' for n in range(30))
    with home.daemon(*kinds_in(tmp_path, kinds)) as daemon:
        daemon.wait_until_ready()
    assert len([line for line in daemon.log if "kind broken" in line]) == 30


def test_config_check_asks_no_module(home: Home, tmp_path: Path) -> None:
    (tmp_path / "tells.py").write_text("open(__file__ + '.seen', 'w').close()\n")
    kinds = kinds_in(tmp_path, '[kinds.x]\npython = "tells:f"\n')
    assert home.call("config", "check", *kinds).code == 0
    assert not (tmp_path / "tells.py.seen").exists()
    assert home.call("kinds", "--check", *kinds).code == 78
    assert (tmp_path / "tells.py.seen").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_daemon_that_still_checks_ends_when_told(
    home: Home, tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "hangs.py").write_text(
        "import os, time\n"
        "open(os.path.dirname(__file__) + f'/pid-{os.getpid()}', 'w').close()\n"
        "time.sleep(600)\n"
    )
    with home.daemon(*kinds_in(tmp_path, '[kinds.x]\npython = "hangs:f"\n')) as daemon:
        eventually(lambda: bool(list(tmp_path.glob("pid-*"))))
        daemon.send(number)
        assert daemon.end() == 0
    assert daemon.log == []
    (pid,) = (int(path.name[4:]) for path in tmp_path.glob("pid-*"))
    assert not is_alive(pid)
